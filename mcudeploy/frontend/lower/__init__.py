"""Nodes to operators of the graph."""
