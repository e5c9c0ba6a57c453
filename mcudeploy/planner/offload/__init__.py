"""Offloading: the blocks that leave the fast memory, and the times at which they do."""
