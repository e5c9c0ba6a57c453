"""Rewrites of the model before it is lowered."""
