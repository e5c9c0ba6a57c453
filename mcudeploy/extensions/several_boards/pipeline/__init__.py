"""Regions of a graph on a topology of compute units, simulated."""
