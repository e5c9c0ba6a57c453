"""What a model can be rewritten to, and the kernels of its operators."""
