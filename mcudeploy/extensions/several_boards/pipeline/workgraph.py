"""The graph that a pipeline divides: operators without views, and the values between them."""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.tiling.dataflow import Dataflow


@dataclass(frozen=True, slots=True)
class WorkValue:
    """A value that an operator writes and others read; operators are indices of `WorkGraph.names`.

    `producer`: None for an input of the graph; `kept`: whether it is an output of the graph.
    """

    name: str
    size_bytes: int
    producer: int | None
    readers: tuple[int, ...]
    kept: bool = False


@dataclass(frozen=True, slots=True)
class WorkGraph:
    """Operators in a valid order, and their values. Raises ValueError for a value that is read too early."""

    names: tuple[str, ...]
    values: tuple[WorkValue, ...]

    def __post_init__(self) -> None:
        for value in self.values:
            if value.producer is not None and any(reader <= value.producer for reader in value.readers):
                raise ValueError(f"{value.name} is read before it is made")

    def successors(self) -> list[set[int]]:
        """Return the operators that read the values of each operator."""
        readers: list[set[int]] = [set() for _ in self.names]
        for value in self.values:
            if value.producer is not None:
                readers[value.producer] |= set(value.readers)
        return readers


def work_graph(flow: Dataflow) -> tuple[WorkGraph, tuple[int, ...]]:
    """Return the graph of a model without views, and the number of each operator in the model.

    The readers of a view read the viewed tensor.
    """
    graph = flow.graph
    positions = tuple(at for at, operator in enumerate(graph.operators) if not operator.op.is_view)
    producers: dict[str, int] = {}
    readers: dict[str, set[int]] = {io.tensor: set() for io in graph.resident_inputs()}
    for place, at in enumerate(positions):
        operator = graph.operators[at]
        for name in operator.inputs:
            readers[flow.roots[name]].add(place)
        producers[operator.output] = place
        readers[operator.output] = set()
    outputs = {flow.roots[io.tensor] for io in graph.outputs}
    values = tuple(
        WorkValue(
            name, graph.tensors[name].size_bytes, producers.get(name), tuple(sorted(places)), name in outputs
        )
        for name, places in readers.items()
    )
    return WorkGraph(tuple(graph.operators[at].name for at in positions), values), positions
