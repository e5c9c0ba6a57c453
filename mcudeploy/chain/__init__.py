"""A model on several boards in a row, joined by serial lines: each computes its own part of every frame."""
