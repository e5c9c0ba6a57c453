"""Orders of steps with the least peak."""
