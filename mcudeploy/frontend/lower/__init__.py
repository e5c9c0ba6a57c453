"""Lowering of nodes to operators of the graph."""
