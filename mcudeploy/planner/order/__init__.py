"""Orders of steps."""
