"""Splits along channels: a vector between fully connected layers becomes rows of a few channels.

The layer before it computes a row with the weights of its channels; the layer after it reads the rows as they
arrive. The vector then need not exist whole, with the same steps, blocks and search as rows of an image. The
cost is the state of the reading layer: one 32-bit sum for every channel of its output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mcudeploy.ir.graph import Graph, Operator, Shape
from mcudeploy.ops.common import SUM_BYTES

_KERNEL_CHANNELS = 4
"""The number of channels that kernels compute at a time; a row has a multiple of it."""
_LEAST_CHANNELS = 8
"""The minimum number of channels of a row; shorter rows mostly add overhead of kernel calls."""
_LEAST_ROWS = 4
_MOST_ROWS = 64
"""The maximum number of rows of a vector; the search proposes parts of up to half of them."""


@dataclass(frozen=True, slots=True)
class Vector:
    """Vectors of equal length, linked by elementwise operators, as rows of `channels`.

    `producers` and `readers` are positions of the operators at both ends. `gain_bytes` is the memory that the
    layers around it save if it is written and read row by row.
    """

    tensors: frozenset[str]
    producers: frozenset[int]
    readers: frozenset[int]
    rows: int
    channels: int
    gain_bytes: int

    @property
    def shape(self) -> Shape:
        return self.rows, 1, self.channels


def channels_as_rows(graph: Graph) -> Graph:
    """Return the graph with vectors as rows if that needs less memory; the values are the same.

    A layer either writes rows or reads them. If two vectors compete for a layer, the larger gain wins.
    """
    chosen = choose(graph)
    if not chosen:
        return graph
    shapes = {name: vector.shape for vector in chosen for name in vector.tensors}
    tensors = {
        name: replace(tensor, shape=shapes.get(name, tensor.shape)) for name, tensor in graph.tensors.items()
    }
    operators = tuple(
        operator.op.in_rows(
            operator, shapes.get(operator.output), shapes.get(operator.inputs[0]) if operator.inputs else None
        )
        for operator in graph.operators
    )
    return replace(graph, tensors=tensors, operators=operators)


def choose(graph: Graph) -> tuple[Vector, ...]:
    """Return the vectors that become rows, the largest gain first."""
    vectors = sorted(_vectors(graph), key=lambda one: (-one.gain_bytes, min(one.producers)))
    chosen: list[Vector] = []
    writing: set[int] = set()
    reading: set[int] = set()
    for vector in vectors:
        if vector.gain_bytes > 0 and not (vector.producers & reading or vector.readers & writing):
            chosen.append(vector)
            writing |= vector.producers
            reading |= vector.readers
    return tuple(chosen)


def row_channels(channels: int) -> int | None:
    """Return the channels of a row for a vector; None if the vector is too short or not divisible."""
    sizes = range(_LEAST_CHANNELS, channels // _LEAST_ROWS + 1, _KERNEL_CHANNELS)
    return next((size for size in sizes if channels % size == 0 and channels // size <= _MOST_ROWS), None)


def _vectors(graph: Graph) -> Iterator[Vector]:
    """Yield every group of vectors that could become rows, regardless of the gain."""
    ios = {io.tensor for io in graph.outputs}
    ios |= {io.tensor for io in graph.resident_inputs()}
    producer_of, readers = graph.producers(), graph.readers()
    for tensors in _linked(graph):
        *pixels, length = graph.tensors[next(iter(tensors))].shape
        channels = row_channels(length)
        if pixels != [1, 1] or channels is None or tensors & ios:
            continue
        inside = {at for at, operator in enumerate(graph.operators) if _links(operator, tensors)}
        producers = {producer_of[name] for name in tensors} - inside
        ends = {at for name in tensors for at in readers[name]} - inside
        others = [graph.operators[at] for at in producers | ends]
        whole = [it for it in others if not it.op.is_dense(it, graph.input_tensors(it))]
        if not ends or producers & ends or any(operator.inputs for operator in whole):
            continue
        gain = _gain(graph, tensors, producers, ends, length // channels)
        yield Vector(tensors, frozenset(producers), frozenset(ends), length // channels, channels, gain)


def _linked(graph: Graph) -> Iterable[frozenset[str]]:
    """Return all tensors in groups: elementwise operators link their inputs and output of one shape."""
    group = {name: {name} for name in graph.tensors}
    for operator in graph.operators:
        if not operator.op.links_vectors:
            continue
        for name in operator.inputs:
            joined, other = group[operator.output], group[name]
            if joined is not other and graph.tensors[name].shape == graph.tensors[operator.output].shape:
                joined |= other
                group |= dict.fromkeys(other, joined)
    distinct = {id(tensors): tensors for tensors in group.values()}
    return [frozenset(tensors) for tensors in distinct.values()]


def _links(operator: Operator, tensors: frozenset[str]) -> bool:
    """Return True for operators inside a group; an operator whose inputs all broadcast is not."""
    return (
        operator.op.links_vectors
        and operator.output in tensors
        and any(name in tensors for name in operator.inputs)
    )


def _gain(graph: Graph, tensors: frozenset[str], producers: set[int], readers: set[int], rows: int) -> int:
    """Return the saved bytes: those of the vector, less one row of it and the sums of its readers."""
    written_bytes = sum(graph.tensors[graph.operators[at].output].size_bytes for at in producers)
    vector = max(written_bytes, *(graph.tensors[name].size_bytes for name in tensors))
    sums = sum(graph.tensors[graph.operators[at].output].elements for at in readers)
    return vector - vector // rows - sums * SUM_BYTES
