"""Components of the axis connection graph: the operators that can be cut together.

Rule, along rows:
- An operator can be cut if its output has more than one row, since a kernel computes any run of rows. An
  operator that accumulates can be cut too: it reads its input in parts. A view has no steps; it is cut with
  its input if the rows stay the same.
- An edge u -> v is connected if both can be cut, u's rows exist before its last step, and v reads them in
  parts. That is so if every row of v needs fewer than all rows of u, or if v accumulates over them.
- Connected edges link the operators of a component. It is convex and contains no other edge: a tensor that
  one of its operators needs whole is computed outside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from mcudeploy.ir.graph import Graph
from mcudeploy.ir.opdef import AxisKind
from mcudeploy.planner.axes.axes import ROWS, AxisGraph, Edge, axis_graph, index_axes


@dataclass(frozen=True, slots=True)
class Reachability:
    """The ancestors and descendants of each operator, as bits of an int; the operator itself is excluded."""

    descendants: tuple[int, ...]
    ancestors: tuple[int, ...]

    def between(self, operators: Iterable[int]) -> int:
        """Return bits of the operators outside that lie on a path from one of `operators` to another."""
        descendants = ancestors = inside = 0
        for operator in operators:
            descendants |= self.descendants[operator]
            ancestors |= self.ancestors[operator]
            inside |= 1 << operator
        return descendants & ancestors & ~inside


@dataclass(frozen=True, slots=True)
class OperandLink:
    """A read of the output of `producer` by operator `reader`, as operand number `operand`."""

    producer: int
    reader: int
    operand: int


def reachability(graph: Graph) -> Reachability:
    """Return the transitive dependencies; operators are in execution order, so one pass each way suffices."""
    count = len(graph.operators)
    producers = graph.producers()
    ancestors, descendants = [0] * count, [0] * count
    for position, operator in enumerate(graph.operators):
        for producer in _producers_of(operator.inputs, producers):
            ancestors[position] |= ancestors[producer] | 1 << producer
    for position in reversed(range(count)):
        for producer in _producers_of(graph.operators[position].inputs, producers):
            descendants[producer] |= descendants[position] | 1 << position
    return Reachability(tuple(descendants), tuple(ancestors))


def _producers_of(inputs: tuple[str, ...], producers: dict[str, int]) -> Iterator[int]:
    return (producers[name] for name in dict.fromkeys(inputs) if name in producers)


def convex(graph: Graph, operators: Collection[int], reach: Reachability | None = None) -> bool:
    """Return True if no path between two of `operators` leaves them. Passing `reach` saves time."""
    return (reach or reachability(graph)).between(operators) == 0


def takes_parts(axes: AxisGraph, edge: Edge) -> bool:
    """Return True if the reader needs only a part of the tensor at a time, along an edge of rows.

    The tensor may be a graph input: one that all its readers take in parts can be streamed.
    """
    if axes.graph.operators[edge.target.operator].op.accumulates:
        # The steps run along the reduced axis that indexes the rows of the first input.
        rows = index_axes(axes.nests[edge.target.operator].reads[0][0])
        return edge.target.kind is AxisKind.REDUCED and edge.target.name in rows
    if edge.target.name not in axes.writes(edge.target.operator, ROWS):
        return False
    return not edge.window.covers_all(edge.target.size, edge.positions)


def cuttable(axes: AxisGraph) -> tuple[bool, ...]:
    """Return, for each operator, whether it can be cut: output or input in parts, by the rule above."""
    by_parts = {edge.target.operator for edge in axes.along(ROWS) if takes_parts(axes, edge)}
    return tuple(
        operator.op.accumulates
        or (
            axes.graph.tensors[operator.output].shape[ROWS] > 1
            and (not operator.op.is_view or position in by_parts)
        )
        for position, operator in enumerate(axes.graph.operators)
    )


def connections(axes: AxisGraph) -> tuple[Edge, ...]:
    """Return the edges along which producer and reader can be cut together, in the order of the readers."""
    cut = cuttable(axes)
    return tuple(edge for edge in axes.along(ROWS) if _connects(axes, edge, cut))


def _connects(axes: AxisGraph, edge: Edge, cut: tuple[bool, ...]) -> bool:
    if edge.source is None or not (cut[edge.source.operator] and cut[edge.target.operator]):
        return False
    return not axes.graph.operators[edge.source.operator].op.accumulates and takes_parts(axes, edge)


def links(graph: Graph) -> tuple[OperandLink, ...]:
    """Return every read of one operator's output by another, in the order of the readers."""
    producers = graph.producers()
    return tuple(
        OperandLink(producers[tensor], reader, operand)
        for reader, operator in enumerate(graph.operators)
        for operand, tensor in enumerate(operator.inputs)
        if tensor in producers
    )


def components(graph: Graph) -> tuple[frozenset[int], ...]:
    """Return groups of operators that are cut together; see the rule above.

    Every operator is in one group, possibly alone; groups are ordered by their first operator.
    """
    return find_components(axis_graph(graph))


def find_components(axes: AxisGraph) -> tuple[frozenset[int], ...]:
    """Return the `components` of a graph whose axes are known.

    Union-find in topological order. Tensors with one reader go first. A fork then joins the reader that does
    not need the tensor whole: the queries of an attention join its scores, keys and values stay with their
    producers.
    """
    joined = {
        OperandLink(edge.source.operator, edge.target.operator, edge.operand)
        for edge in connections(axes)
        if edge.source is not None
    }
    pairs: list[OperandLink] = []
    groups = _Groups(reachability(axes.graph))
    for link in links(axes.graph):
        if link in joined:
            pairs.append(link)
        else:
            groups.forbid(link.producer, link.reader)
    readers = axes.graph.readers()
    single = {
        position
        for position, operator in enumerate(axes.graph.operators)
        if len(readers[operator.output]) == 1
    }
    for link in sorted(pairs, key=lambda link: link.producer not in single):
        groups.merge(link.producer, link.reader)
    return groups.partition()


class _Groups:
    """Union-find whose groups store their members, ancestors and descendants as bits."""

    def __init__(self, reach: Reachability) -> None:
        count = len(reach.descendants)
        self._parent = list(range(count))
        self._members = [1 << operator for operator in range(count)]
        self._descendants = list(reach.descendants)
        self._ancestors = list(reach.ancestors)
        self._forbidden = [0] * count

    def forbid(self, producer: int, reader: int) -> None:
        """Keep two operators in different groups; must be called before any merge."""
        self._forbidden[producer] |= 1 << reader

    def find(self, operator: int) -> int:
        while self._parent[operator] != operator:
            self._parent[operator] = self._parent[self._parent[operator]]
            operator = self._parent[operator]
        return operator

    def merge(self, first: int, second: int) -> None:
        """Join two groups unless the union is not convex or contains a forbidden pair."""
        one, other = sorted((self.find(first), self.find(second)))
        if one == other:
            return
        members = self._members[one] | self._members[other]
        descendants = self._descendants[one] | self._descendants[other]
        ancestors = self._ancestors[one] | self._ancestors[other]
        forbidden = self._forbidden[one] | self._forbidden[other]
        if descendants & ancestors & ~members or forbidden & members:
            return
        self._parent[other] = one
        self._members[one], self._descendants[one] = members, descendants
        self._ancestors[one], self._forbidden[one] = ancestors, forbidden

    def partition(self) -> tuple[frozenset[int], ...]:
        components: dict[int, list[int]] = {}
        for operator in range(len(self._parent)):
            components.setdefault(self.find(operator), []).append(operator)
        return tuple(frozenset(members) for members in components.values())
