"""Which blocks leave the fast memory, and when."""
