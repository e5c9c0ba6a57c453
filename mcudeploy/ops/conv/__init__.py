"""Convolutions: definitions, the constants and the counts of their kernels."""
