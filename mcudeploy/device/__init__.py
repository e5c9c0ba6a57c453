"""The measurer on a board: its firmware, the line to it, sessions, timed tiles."""
