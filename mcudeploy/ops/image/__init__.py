"""Operators that sample images, and boxes in them."""
