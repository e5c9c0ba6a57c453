"""What copies bytes between memories, by name."""

CPU = "cpu"
"""The engine that the first compute unit is: it copies at once."""
