"""Reports of commands: JSON objects and charts."""
