"""Cycle models of cores, and counts by the emulator."""
