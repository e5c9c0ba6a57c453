"""Memory over time: what leaves the fast memory between two uses and comes back, or is made again."""
