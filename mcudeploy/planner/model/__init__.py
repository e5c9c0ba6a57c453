"""Rewrites of a model, and the kernels of its operators."""
