"""Blocks and how long they live: each count stands here once."""
