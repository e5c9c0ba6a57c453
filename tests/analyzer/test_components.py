"""Components: hand-worked graphs, and random ones against a plain definition of convexity."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.ir.graph import Graph
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.matrix.matmul import MatMul
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.pool.pool import AveragePool
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.planner.axes import axis_graph, components, connections, convex, cuttable
from tests.analyzer.build import conv, global_pool, graph, names


@dataclass(frozen=True, slots=True)
class Accumulating(AveragePool):
    """A global pool that takes its rows in parts."""

    accumulates: ClassVar[bool] = True


SUM_OF_8_ROWS = Accumulating((8, 8), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), False)


def test_residual_block_is_one_component() -> None:
    built = graph(
        {"image": (8, 8, 4)},
        [
            ("a", conv(4), "image"),
            ("b", conv(4), "a"),
            ("c", conv(4), "b"),
            ("sum", Binary("add"), "c a"),
        ],
    )
    assert names(built, components(built)) == ["a b c sum"]


def test_residual_block_with_stride_and_projection() -> None:
    built = graph(
        {"image": (16, 16, 4)},
        [
            ("stem", conv(4), "image"),
            ("skip", conv(8, kernel=1, stride=2), "stem"),
            ("b", conv(8, stride=2), "stem"),
            ("c", conv(8), "b"),
            ("sum", Binary("add"), "c skip"),
            ("pool", global_pool(8, 8), "sum"),
            ("dense", conv(10, kernel=1), "pool"),
        ],
    )
    assert names(built, components(built)) == ["stem skip b c sum", "pool", "dense"]
    assert cuttable(axis_graph(built)) == (True, True, True, True, True, False, False)


def test_squeeze_and_excitation_lies_between() -> None:
    """The product takes x in parts, but its other operand needs all of x: x is cut with its predecessors."""
    built = graph(
        {"image": (8, 8, 4)},
        [
            ("x", conv(4), "image"),
            ("pool", global_pool(8, 8), "x"),
            ("fc", conv(4, kernel=1), "pool"),
            ("mul", Binary("mul"), "x fc"),
            ("y", conv(4), "mul"),
        ],
    )
    assert names(built, components(built)) == ["x", "pool", "fc", "mul y"]
    assert not convex(built, {0, 3})
    assert convex(built, {0, 1, 2, 3})


def test_what_needs_a_tensor_whole_is_not_in_its_component() -> None:
    """Without operators in between, {x, pool, mul} would be convex, but mul needs the pool's result."""
    built = graph(
        {"image": (8, 8, 4)},
        [("x", conv(4), "image"), ("pool", SUM_OF_8_ROWS, "x"), ("mul", Binary("mul"), "x pool")],
    )
    assert convex(built, {0, 1, 2})
    assert names(built, components(built)) == ["x pool", "mul"]


def test_an_accumulating_pool_ends_a_component_from_inside() -> None:
    built = graph(
        {"image": (8, 8, 4)},
        [("x", conv(4), "image"), ("pool", SUM_OF_8_ROWS, "x"), ("dense", conv(10, kernel=1), "pool")],
    )
    assert names(built, components(built)) == ["x pool", "dense"]


def test_flatten_and_dense() -> None:
    built = graph(
        {"image": (8, 8, 4)},
        [
            ("x", conv(4), "image"),
            ("dense", Conv2d(10, (8, 8)), "x"),
            ("flat", Reshape((1, 1, 256)), "x"),
            ("other", conv(10, kernel=1), "flat"),
        ],
    )
    assert names(built, components(built)) == ["x", "dense", "flat", "other"]


def test_views_that_keep_rows_and_views_that_do_not() -> None:
    built = graph(
        {"image": (8, 8, 4)},
        [
            ("x", conv(4), "image"),
            ("kept", Reshape((8, 4, 8)), "x"),
            ("y", conv(4), "kept"),
            ("broken", Reshape((16, 4, 2)), "y"),
            ("z", conv(4), "broken"),
        ],
    )
    assert names(built, components(built)) == ["x kept y", "broken", "z"]
    assert cuttable(axis_graph(built)) == (True, True, True, False, True)


def test_a_transpose_begins_a_component() -> None:
    built = graph(
        {"image": (8, 8, 4)},
        [
            ("x", conv(4), "image"),
            ("turned", Transpose((8, 8, 4), (1, 0, 2), (8, 8, 4)), "x"),
            ("y", conv(4), "turned"),
        ],
    )
    assert names(built, components(built)) == ["x", "turned y"]


def test_attention_cuts_queries_with_scores() -> None:
    built = graph(
        {"tokens": (16, 1, 8)},
        [
            ("x", Lut(), "tokens"),
            ("q", conv(8, kernel=1), "x"),
            ("k", conv(8, kernel=1), "x"),
            ("v", conv(8, kernel=1), "x"),
            ("scores", MatMul(transpose_b=True), "q k"),
            ("soft", Softmax(2), "scores"),
            ("mixed", MatMul(), "soft v"),
            ("out", Binary("add"), "mixed x"),
        ],
    )
    assert names(built, components(built)) == ["x k v", "q scores soft mixed out"]


def test_a_window_over_everything_ends_a_component() -> None:
    built = graph({"image": (3, 8, 4)}, [("x", Lut(), "image"), ("y", conv(4), "x"), ("z", Lut(), "y")])
    assert names(built, components(built)) == ["x", "y z"]


def _paths_leave(graph: Graph, members: frozenset[int]) -> bool:
    """The plain definition: a path that leaves the members and returns."""
    producers = graph.producers()
    readers: dict[int, set[int]] = {position: set() for position in range(len(graph.operators))}
    for position, operator in enumerate(graph.operators):
        for name in operator.inputs:
            if name in producers:
                readers[producers[name]].add(position)
    stack = [outside for member in members for outside in readers[member] if outside not in members]
    while stack:
        here = stack.pop()
        if here in members:
            return True
        stack += readers[here]
    return False


@st.composite
def dags(draw: st.DrawFn, largest: int = 8) -> Graph:
    """Operators over (8, 8, 4) or (1, 1, 4) that keep rows, window them, sum them or broadcast."""
    operators: list[tuple[str, object, str]] = []
    tall, flat = ["in"], []
    for number in range(draw(st.integers(1, largest))):
        name = f"o{number}"
        kind = draw(st.sampled_from(["lut", "conv", "turn", "pool", "sum", "add", "mul", "concat"]))
        source = draw(st.sampled_from(tall[-4:]))
        match kind:
            case "pool" | "sum":
                operators.append((name, SUM_OF_8_ROWS if kind == "sum" else global_pool(8, 8), source))
                flat.append(name)
                continue
            case "mul" if flat:
                operators.append((name, Binary("mul"), f"{source} {draw(st.sampled_from(flat))}"))
            case "add":
                operators.append((name, Binary("add"), f"{source} {draw(st.sampled_from(tall))}"))
            case "concat":
                operators.append((f"{name}c", Concat(0), f"{source} {draw(st.sampled_from(tall))}"))
                operators.append((name, Conv2d(4, (1, 1), (2, 1)), f"{name}c"))
            case "turn":
                operators.append((name, Transpose((8, 8, 4), (1, 0, 2), (8, 8, 4)), source))
            case "conv":
                operators.append((name, conv(4), source))
            case _:
                operators.append((name, Lut(), source))
        tall.append(name)
    return graph({"in": (8, 8, 4)}, operators)


@settings(max_examples=60, deadline=None)
@given(dags())
def test_components_are_convex_connected_and_complete(found: Graph) -> None:
    groups = components(found)
    assert sorted(member for members in groups for member in members) == list(range(len(found.operators)))
    axes = axis_graph(found)
    joined = {(edge.source.operator, edge.target.operator) for edge in connections(axes) if edge.source}
    links = {
        (producer, reader)
        for reader, operator in enumerate(found.operators)
        for name, producer in found.producers().items()
        if name in operator.inputs
    }
    for members in groups:
        assert convex(found, members)
        assert not _paths_leave(found, members)
        inner = {link for link in links if set(link) <= members}
        assert inner <= joined
        reached = {min(members)}
        for _ in members:
            reached |= {end for link in inner if reached & set(link) for end in link}
        assert reached == members


@settings(max_examples=25, deadline=None)
@given(dags(largest=6))
def test_convex_is_what_its_definition_says(found: Graph) -> None:
    count = len(found.operators)
    for size in range(1, min(count, 4) + 1):
        for chosen in combinations(range(count), size):
            assert convex(found, chosen) is not _paths_leave(found, frozenset(chosen))


def test_500_operators_take_less_than_a_second() -> None:
    operators: list[tuple[str, object, str]] = [("o0", Lut(), "in")]
    for number in range(1, 500):
        far = max(0, number - 1 - number % 7)
        operators.append((f"o{number}", Binary("add"), f"o{number - 1} o{far}"))
    built = graph({"in": (64, 8, 4)}, operators)
    start = time.process_time()
    assert len(components(built)) == 1
    assert time.process_time() - start < 1
