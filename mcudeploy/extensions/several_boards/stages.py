"""A graph cut into parts, one for each board: the graph of each part, and the payloads between them.

A payload contains all tensors that earlier parts write and later parts read. A tensor that passes a board is
in the payload that it receives and in the payload that it sends. The first payload has the graph's inputs,
the last its outputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.ir.graph import Graph, GraphIO, Operator, Tensor
from mcudeploy.planner.model.model import Model
from mcudeploy.tiling.dataflow import Dataflow


@dataclass(frozen=True, slots=True)
class Payload:
    """The tensors that one board sends to the next, in sequence, in stored form."""

    tensors: tuple[Tensor, ...]

    @property
    def size_bytes(self) -> int:
        return sum(tensor.size_bytes for tensor in self.tensors)

    def span(self, name: str) -> slice:
        """Return the bytes of a tensor. Raises KeyError if it is missing."""
        first = 0
        for tensor in self.tensors:
            if tensor.name == name:
                return slice(first, first + tensor.size_bytes)
            first += tensor.size_bytes
        raise KeyError(name)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The work of one board: a model, and the payloads that the board receives and sends."""

    model: Model
    received: Payload
    sent: Payload

    @property
    def passed(self) -> tuple[str, ...]:
        """The tensors of both payloads, which the board does not write. It may read them."""
        known = {tensor.name for tensor in self.received.tensors}
        return tuple(tensor.name for tensor in self.sent.tensors if tensor.name in known)


def operators_without_views(graph: Graph) -> list[int]:
    """Return the numbers of the operators that compute. A graph can be cut between any two of them."""
    return [place for place, operator in enumerate(graph.operators) if not operator.op.is_view]


def stages_of(model: Model, parts: Sequence[Sequence[int]], boards: Sequence[Board]) -> tuple[Stage, ...]:
    """Return the stage of each board. `parts`: its operators, numbered without views, in turn.

    No part reads what a later part writes.
    """
    flow = Dataflow.of(model.graph)
    places = operators_without_views(model.graph)
    done: set[int] = set()
    payloads = [_payload(flow, places, done)]
    stages = []
    for part, board in zip(parts, boards, strict=True):
        part_places = [places[number] for number in part]
        done.update(part_places)
        payloads.append(_payload(flow, places, done))
        received, sent = payloads[-2:]
        graph = _part(flow, part_places, sent)
        digest = hashlib.sha256(f"{model.sha256} {sorted(part_places)}".encode()).hexdigest()
        stages.append(Stage(model.of_graph(graph, digest, isa=board.isa), received, sent))
    return tuple(stages)


def _payload(flow: Dataflow, places: Sequence[int], done: Set[int]) -> Payload:
    """Return the payload after the operators that are done."""
    graph = flow.graph
    available = {io.tensor for io in graph.resident_inputs()}
    available |= {graph.operators[place].output for place in done}
    left = [place for place in places if place not in done]
    read = {flow.roots[name] for place in left for name in graph.operators[place].inputs}
    read |= {flow.roots[io.tensor] for io in graph.outputs}
    return Payload(tuple(graph.tensors[name] for name in graph.tensors if name in available & read))


def _part(flow: Dataflow, places: Sequence[int], sent: Payload) -> Graph:
    """Return the graph of some operators, with the views that they read through."""
    graph, chosen = flow.graph, set(places)
    operators: list[Operator] = []
    needed: set[str] = set()
    for place in reversed(range(len(graph.operators))):
        operator = graph.operators[place]
        if place in chosen or (operator.op.is_view and operator.output in needed):
            operators.insert(0, operator)
            needed.update(operator.inputs)
    written = {operator.output for operator in operators}
    inputs = [name for name in graph.tensors if name in needed - written]
    return Graph(
        graph.name,
        {name: graph.tensors[name] for name in graph.tensors if name in written or name in inputs},
        tuple(operators),
        tuple(_io(graph.tensors[name]) for name in inputs),
        tuple(_io(tensor) for tensor in sent.tensors if tensor.name in written),
    )


def _io(tensor: Tensor) -> GraphIO:
    order = np.arange(tensor.elements, dtype=np.int32)
    return GraphIO(tensor.name, tensor.name, (tensor.elements,), tensor.dtype.value, order)
