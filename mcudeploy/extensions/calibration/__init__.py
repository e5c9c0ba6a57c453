"""Factors of a board: times of kernels on the chip, divided by the estimates."""
