"""Operators that are rewritten as others."""
