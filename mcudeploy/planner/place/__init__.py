"""Offsets of blocks in memories."""
