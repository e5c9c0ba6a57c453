"""C code from a plan."""
