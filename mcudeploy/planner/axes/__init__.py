"""Analysis of what can be cut together, from loop nests alone: axis connections, components."""

from mcudeploy.planner.axes.axes import AxisGraph, AxisNode, Edge, axis_graph
from mcudeploy.planner.axes.components import (
    Reachability,
    components,
    connections,
    convex,
    cuttable,
    find_components,
    reachability,
    takes_parts,
)
from mcudeploy.planner.axes.explain import explain
from mcudeploy.planner.axes.window import AnyWindow, TableWindow, Window

__all__ = [
    "AnyWindow",
    "AxisGraph",
    "AxisNode",
    "Edge",
    "Reachability",
    "TableWindow",
    "Window",
    "axis_graph",
    "components",
    "connections",
    "convex",
    "cuttable",
    "explain",
    "find_components",
    "reachability",
    "takes_parts",
]
