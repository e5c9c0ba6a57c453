"""Reductions, norms and Softmax."""
