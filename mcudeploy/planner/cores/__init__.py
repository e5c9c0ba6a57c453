"""Compute units and cores: who runs an operator, and who waits for whom."""
