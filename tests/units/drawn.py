"""Random graphs, boards and assignments for the tests of several compute units."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from mcudeploy.boards.board import Board, Memory, Unit
from mcudeploy.boards.catalogue import load_board
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Tensor
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.unary import Unary
from mcudeploy.planner.cores.functions import Assignment

bounded = settings(deadline=None)  # other work on the machine is not a failure

SHAPE, TURNED = (4, 2, 3), (4, 3, 2)


def graph_io(name: str, shape: tuple[int, int, int]) -> GraphIO:
    return GraphIO(name, name, shape, "float32", np.arange(np.prod(shape), dtype=np.int32))


def board(*units: Unit, memories: tuple[str, ...] = ("ram",)) -> Board:
    """The host with these units and memories of 1 MiB."""
    ram = tuple(
        Memory(name=name, origin=0x10000000 + (at << 24), bytes=1 << 20, alignment=8)
        for at, name in enumerate(memories)
    )
    return load_board("host").model_copy(update={"units": units, "memories": ram})


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to ten additions, sigmoids and views with random inputs; unread tensors are outputs."""
    shapes = {"x": SHAPE}
    operators: list[Operator] = []
    for number in range(draw(st.integers(1, 10))):
        name = f"t{number}"
        source = draw(st.sampled_from(sorted(shapes)))
        alike = sorted(other for other, shape in shapes.items() if shape == shapes[source])
        kind = draw(st.sampled_from(["add", "add", "sigmoid", "view"]))
        if kind == "view":
            shapes[name] = TURNED if shapes[source] == SHAPE else SHAPE
            operators.append(Operator(f"op_{name}", Reshape(shapes[name]), (source,), name))
        elif kind == "add":
            shapes[name] = shapes[source]
            operators.append(
                Operator(f"op_{name}", Binary("add"), (source, draw(st.sampled_from(alike))), name)
            )
        else:
            shapes[name] = shapes[source]
            operators.append(Operator(f"op_{name}", Unary("sigmoid"), (source,), name))
    read = {name for operator in operators for name in operator.inputs}
    outputs = [name for name in shapes if name not in read]
    return Graph(
        "drawn",
        {name: Tensor(name, shape, DType.FLOAT32) for name, shape in shapes.items()},
        tuple(operators),
        (graph_io("x", SHAPE),),
        tuple(graph_io(name, shapes[name]) for name in outputs),
    )


@st.composite
def boards(draw: st.DrawFn) -> Board:
    """One to three units; the first reaches all memories, others may lack some, or access some through a
    cache.
    """
    memories = ("one", "two", "three")[: draw(st.integers(1, 3))]
    units = []
    for number in range(draw(st.integers(1, 3))):
        reached = memories if number == 0 else draw(st.sets(st.sampled_from(memories), min_size=1))
        cached = draw(st.sets(st.sampled_from(sorted(reached))))
        units.append(
            Unit(
                name=f"u{number}",
                alignment=draw(st.sampled_from([1, 4, 16, 32])),
                memories=tuple(sorted(reached)),
                cached=tuple(sorted(cached)),
            )
        )
    return board(*units, memories=memories)


@st.composite
def assigned(draw: st.DrawFn) -> tuple[Graph, Board, Assignment]:
    """A graph, a board, and the unit of each operator."""
    graph, board = draw(graphs()), draw(boards())
    names = [unit.name for unit in board.units]
    units = {it.name: draw(st.sampled_from(names)) for it in graph.operators if not it.op.is_view}
    elsewhere = {name: unit for name, unit in units.items() if unit != names[0]}
    return graph, board, Assignment(names[0], elsewhere)
