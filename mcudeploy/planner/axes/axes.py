"""The axis connection graph, from the loop nests alone.

Nodes are the axes of all operators. An edge <u, i> -> <v, j> joins a spatial axis i of u to an axis j of v.
Axis i indexes a dimension of u's output, and axis j runs through that dimension when v reads the tensor.
Method: axis connection graph of MAGIS and of Peking University's patent; windows on the edges are our
addition.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.ir.graph import Graph
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import AnyIndex, Axis, AxisKind, LoopNest, TableIndex
from mcudeploy.planner.axes.window import AnyWindow, window_of

DIMENSIONS = ("row", "col", "channel")
"""The dimensions of a tensor, by their position in its shape."""
ROWS = 0
"""The dimension along which operators are cut."""


@dataclass(frozen=True, slots=True)
class AxisNode:
    """An axis of an operator, by number: spatial if it indexes the output, else reduced (temporal)."""

    operator: int
    name: str
    size: int
    kind: AxisKind


@dataclass(frozen=True, slots=True)
class Edge:
    """A connection: axis `source` of a producer is read by axis `target` of a reader.

    `tensor` is operand number `operand` of the reader, `positions` its size along `dimension`. `source` is
    None if the tensor is a graph input. `window` maps values of `target` to positions of the dimension.
    """

    source: AxisNode | None
    target: AxisNode
    tensor: str
    operand: int
    dimension: int
    positions: int
    window: AnyWindow

    def needed(self, part: Interval) -> Interval:
        """Return the positions of the tensor's dimension that `part` of the target axis needs, unpadded."""
        return self.window.needed(part).clip(0, self.positions)

    @property
    def halo(self) -> int:
        """The maximum number of positions that two neighbouring parts of the target axis share.

        Borders may need less, since padding replaces positions.
        """
        return min(self.window.overlap, self.positions)


@dataclass(frozen=True, slots=True, eq=False)
class AxisGraph:
    """Axes and connections of a graph.

    Nodes are ordered by operator, edges by reader; `nests` contains one loop nest per operator.
    """

    graph: Graph
    nests: tuple[LoopNest, ...]
    nodes: tuple[AxisNode, ...]
    edges: tuple[Edge, ...]

    def along(self, dimension: int) -> tuple[Edge, ...]:
        """Return the edges along one dimension of the tensors: 0 rows, 1 cols, 2 channels."""
        return tuple(edge for edge in self.edges if edge.dimension == dimension)

    def writes(self, operator: int, dimension: int) -> tuple[str, ...]:
        """Return the axes by which an operator writes a dimension of its output."""
        return index_axes(self.nests[operator].write[dimension])


def axis_graph(graph: Graph) -> AxisGraph:
    """Return the axis connection graph.

    An index of reduced axes only (the k of a matrix product, the rows of a global pool) connects to these. If
    a spatial axis takes part, reduced ones are its window. A broadcast operand has no index and no edge. Axes
    of size 1 are ignored unless there is no other.
    """
    nests = tuple(graph.loops(operator) for operator in graph.operators)
    nodes = [_nodes(position, nest) for position, nest in enumerate(nests)]
    producers = graph.producers()
    edges: list[Edge] = []
    for position, operator in enumerate(graph.operators):
        nest = nests[position]
        axes = {axis.name: axis for axis in nest.axes}
        for operand, tensor in enumerate(operator.inputs):
            producer = producers.get(tensor)
            for dimension, index in enumerate(nest.reads[operand]):
                sources: list[AxisNode | None] = [None]
                if producer is not None:
                    sources = _sources(nests[producer].write[dimension], nodes[producer])
                edges += [
                    Edge(
                        source=source,
                        target=nodes[position][name],
                        tensor=tensor,
                        operand=operand,
                        dimension=dimension,
                        positions=graph.tensors[tensor].shape[dimension],
                        window=window_of(index, name, axes),
                    )
                    for source in sources
                    for name in _targets(index, nodes[position])
                ]
    flat = tuple(node for of_operator in nodes for node in of_operator.values())
    return AxisGraph(graph, nests, flat, tuple(edges))


def _nodes(position: int, nest: LoopNest) -> dict[str, AxisNode]:
    written = {name for index in nest.write for name in index_axes(index)}

    def kind(axis: Axis) -> AxisKind:
        return AxisKind.SPATIAL if axis.name in written else AxisKind.REDUCED

    return {axis.name: AxisNode(position, axis.name, axis.size, kind(axis)) for axis in nest.axes}


def index_axes(index: AnyIndex) -> tuple[str, ...]:
    """Return the names of the axes in an index."""
    return (index.axis,) if isinstance(index, TableIndex) else tuple(name for name, _ in index.steps)


def _sources(index: AnyIndex, nodes: dict[str, AxisNode]) -> list[AxisNode | None]:
    """Return the axes that write a dimension."""
    if isinstance(index, TableIndex) or index.offset or any(step < 0 for _, step in index.steps):
        raise ValueError(f"an output is written from 0 upwards, not through {index}")
    moving = [nodes[name] for name, _ in index.steps if nodes[name].size > 1]
    return [*moving] or [nodes[name] for name, _ in index.steps[:1]]


def _targets(index: AnyIndex, nodes: dict[str, AxisNode]) -> tuple[str, ...]:
    names = index_axes(index)
    moving = tuple(name for name in names if nodes[name].size > 1) or names
    spatial = tuple(name for name in moving if nodes[name].kind is AxisKind.SPATIAL)
    chosen = spatial or moving
    return tuple(name for name in chosen if nodes[name].size > 1) or chosen[:1]
