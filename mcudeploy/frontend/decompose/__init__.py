"""Rules that replace composite operators by operators that `lower` handles."""
