"""Operators that move, copy or convert elements."""
