"""Operators that compute element by element."""
