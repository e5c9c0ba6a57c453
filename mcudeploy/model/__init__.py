"""A model in each of its forms, with the kernels of its operators."""
