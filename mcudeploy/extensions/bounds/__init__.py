"""Bounds of a program's instructions and cycles over all values of its data."""
