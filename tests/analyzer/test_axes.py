"""Connections and windows of single operators and small graphs, computed by hand."""

from __future__ import annotations

import pytest

from mcudeploy.ir.graph import Shape
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import AxisKind
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.matrix.matmul import MatMul
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Pad, Slice
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.pool.pool import AveragePool
from mcudeploy.ops.reduce.reduce import Reduce
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.planner.axes import TableWindow, Window, axis_graph, connections
from tests.analyzer.build import conv, global_pool, graph, max_pool, named, resize, row_edge


def _after_lut(op: object, shape: Shape = (8, 8, 4)) -> object:
    """The axis graph of `op` reading a lookup: axes row, col, ch of "x" are those of the producer."""
    return axis_graph(graph({"in": shape}, [("x", Lut(), "in"), ("y", op, "x")]))


def test_matrix_product_of_the_method() -> None:
    """C[m, n] = sum over k of A[m, k] * B[k, n]: A.s1->C.s1, A.s2->C.t1, B.s1->C.t1, B.s2->C.s2."""
    axes = axis_graph(
        graph(
            {"a": (5, 1, 7), "b": (7, 1, 3)},
            [("A", Lut(), "a"), ("B", Lut(), "b"), ("C", MatMul(), "A B")],
        )
    )
    heads = {("A.col", "C.h"), ("B.col", "C.h")}  # a product of one pair of matrices has one column
    assert named(axes) - heads == {("A.row", "C.m"), ("A.ch", "C.k"), ("B.row", "C.k"), ("B.ch", "C.n")}
    kinds = {node.name: (node.size, node.kind) for node in axes.nodes if node.operator == 2}
    assert kinds == {
        "h": (1, AxisKind.SPATIAL),
        "m": (5, AxisKind.SPATIAL),
        "n": (3, AxisKind.SPATIAL),
        "k": (7, AxisKind.REDUCED),
    }
    assert named(axes, connections(axes)) == {("A.row", "C.m")}


def test_batched_product_connects_heads_of_both_operands() -> None:
    axes = axis_graph(
        graph(
            {"a": (2, 5, 7), "b": (2, 3, 7)},
            [("A", Lut(), "a"), ("B", Lut(), "b"), ("C", MatMul(True, True), "A B")],
        )
    )
    assert named(axes, axes.along(0)) == {("A.row", "C.h"), ("B.row", "C.h")}
    assert named(axes, axes.along(1)) == {("A.col", "C.m"), ("B.col", "C.n")}
    assert named(axes, axes.along(2)) == {("A.ch", "C.k"), ("B.ch", "C.k")}


def test_convolution_has_windows_on_rows_and_columns_and_sums_channels() -> None:
    axes = _after_lut(Conv2d(6, (3, 5), (2, 1), (1, 2), (0, 4, 1, 4)))
    assert named(axes) == {("x.row", "y.oh"), ("x.col", "y.ow"), ("x.ch", "y.c")}
    windows = {edge.dimension: edge.window for edge in axes.edges if edge.source}
    assert windows == {0: Window(2, 0, 3, 1), 1: Window(1, -4, 5, 2), 2: Window(1, 0, 1, 1)}
    assert windows[1].extent == 9
    assert row_edge(axes, "y").needed(Interval(0, 2)) == Interval(0, 5)
    assert row_edge(axes, "y").needed(Interval(3, 4)) == Interval(6, 8)


def test_depthwise_keeps_channels_apart() -> None:
    axes = _after_lut(conv(4, groups=4))
    assert ("x.ch", "y.g") in named(axes, axes.along(2))
    wide = _after_lut(conv(8, groups=2))
    (edge,) = (edge for edge in wide.along(2) if edge.source)
    assert (edge.target.name, edge.window) == ("g", Window(2, 0, 2, 1))


def test_channels_written_by_groups_and_kernels_are_digits() -> None:
    """Channel 3 * g + k of 2 groups of 3: the needs of a reader, in groups and in kernels of a group."""
    axes = axis_graph(
        graph({"in": (4, 4, 4)}, [("x", conv(6, groups=2), "in"), ("y", conv(6, 1, groups=6), "x")])
    )
    by_source = {edge.source.name: edge for edge in axes.along(2) if edge.source}
    assert set(by_source) == {"g", "k"}


@pytest.mark.parametrize(
    ("op", "window", "shared"),
    [
        (conv(4), Window(1, -1, 3, 1), 2),
        (conv(4, stride=2), Window(2, -1, 3, 1), 1),
        (conv(4, dilation=2), Window(1, -2, 3, 2), 4),
        (conv(4, kernel=1, stride=2), Window(2, 0, 1, 1), 0),
        (Conv2d(4, (4, 1), (2, 1), pads=(2, 0, 1, 0)), Window(2, -2, 4, 1), 2),
        (max_pool(2, 2, (0, 0), 4), Window(2, 0, 2, 1), 0),
        (max_pool(3, 3, (0, 0), 3), Window(3, 0, 3, 1), 0),  # ceil_mode: the last window is cut off
        (max_pool(3, 2, (1, 0), 5), Window(2, -1, 3, 1), 1),
        (Slice((6, 0, 0), (-2, 1, 1), (3, 8, 4)), Window(-2, 6, 1, 1), 0),
        (Slice((1, 0, 0), (3, 1, 1), (3, 8, 4)), Window(3, 1, 1, 1), 0),
        (Pad((2, 0, 0), (1, 0, 0)), Window(1, -2, 1, 1), 0),
        (Pad((-2, 0, 0), (0, 0, 0)), Window(1, 2, 1, 1), 0),
        (Softmax(2), Window(), 0),
        (Binary("add", 1, (1, 1, 4)), Window(), 0),
    ],
)
def test_windows_along_rows(op: object, window: Window, shared: int) -> None:
    edge = row_edge(_after_lut(op), "y")
    assert (edge.window, edge.halo) == (window, shared)
    assert edge.target.kind is AxisKind.SPATIAL


def test_ceil_mode_reads_no_rows_that_are_not_there() -> None:
    edge = row_edge(_after_lut(max_pool(3, 3, (0, 0), 3)), "y")
    assert [edge.needed(Interval(row, row + 1)) for row in range(3)] == [
        Interval(0, 3),
        Interval(3, 6),
        Interval(6, 8),
    ]


def test_resize_nearest_carries_its_table() -> None:
    edge = row_edge(_after_lut(resize("nearest", 8, 2)), "y")
    assert isinstance(edge.window, TableWindow)
    assert edge.needed(Interval(2, 6)) == Interval(1, 3)
    assert edge.halo == 1


def test_resize_linear_needs_a_neighbour() -> None:
    """Half-pixel, factor 2: row o lies at o / 2 - 1 / 4."""
    edge = row_edge(_after_lut(resize("linear", 8, 2)), "y")
    assert [edge.needed(Interval(row, row + 1)) for row in (0, 1, 2, 15)] == [
        Interval(0, 1),
        Interval(0, 2),
        Interval(0, 2),
        Interval(7, 8),
    ]
    assert edge.halo == 2


@pytest.mark.parametrize(
    ("op", "target"),
    [
        (global_pool(8, 8), "r"),
        (AveragePool((8, 1), (1, 1), (1, 1), (0, 0, 0, 0), (1, 8), False), "r"),
        (Conv2d(3, (8, 8)), "r"),
        (Reduce((0, 2)), "row"),
        (Softmax(0), "all"),
    ],
)
def test_what_takes_all_rows_is_connected_to_a_temporal_axis(op: object, target: str) -> None:
    axes = _after_lut(op)
    edge = row_edge(axes, "y")
    assert (edge.target.name, edge.target.kind) == (target, AxisKind.REDUCED)
    assert edge.needed(Interval(2, 5)) == Interval(2, 5)
    assert connections(axes) == ()


def test_concat_of_channels_connects_rows_and_shifts_channels() -> None:
    axes = axis_graph(
        graph(
            {"a": (6, 2, 3), "b": (6, 2, 5)},
            [("A", Lut(), "a"), ("B", Lut(), "b"), ("C", Concat(2), "A B")],
        )
    )
    assert named(axes, connections(axes)) == {("A.row", "C.row"), ("B.row", "C.row")}
    assert [edge.needed(Interval(2, 4)) for edge in axes.along(2) if edge.target.operator == 2] == [
        Interval(2, 3),
        Interval(0, 1),
    ]


def test_concat_of_rows_takes_each_operand_in_its_own_part() -> None:
    axes = axis_graph(
        graph(
            {"a": (3, 2, 4), "b": (5, 2, 4)},
            [("A", Lut(), "a"), ("B", Lut(), "b"), ("C", Concat(0), "A B")],
        )
    )
    first, second = row_edge(axes, "C", 0), row_edge(axes, "C", 1)
    assert (first.needed(Interval(2, 5)), second.needed(Interval(2, 5))) == (Interval(2, 3), Interval(0, 2))
    assert len(second.needed(Interval(0, 3))) == 0
    assert len(connections(axes)) == 2


def test_broadcast_operand_has_no_edge() -> None:
    axes = axis_graph(
        graph(
            {"x": (8, 8, 4), "s": (1, 1, 4)},
            [("S", Lut(), "s"), ("X", Lut(), "x"), ("Y", Binary("mul"), "X S")],
        )
    )
    assert named(axes) == {("X.row", "Y.row"), ("X.col", "Y.col"), ("X.ch", "Y.ch"), ("S.ch", "Y.ch")}


def test_transposes_connect_what_they_turn() -> None:
    rows_and_cols = _after_lut(Transpose((8, 6, 4), (1, 0, 2), (6, 8, 4)), (8, 6, 4))
    targets = {
        dimension: [
            position
            for position in range(3)
            for edge in rows_and_cols.along(dimension)
            if edge.source and edge.target.name in rows_and_cols.writes(1, position)
        ]
        for dimension in range(3)
    }
    assert targets == {0: [1], 1: [0], 2: [2]}
    assert connections(rows_and_cols) == ()
    kept = _after_lut(Transpose((8, 6, 4), (0, 2, 1), (8, 4, 6)), (8, 6, 4))
    assert len(connections(kept)) == 1


@pytest.mark.parametrize(
    ("shape", "connected"), [((8, 1, 32), True), ((8, 4, 8), True), ((4, 8, 8), False), ((1, 1, 256), False)]
)
def test_a_view_is_connected_where_rows_stay_what_they_are(shape: Shape, connected: bool) -> None:
    axes = _after_lut(Reshape(shape))
    assert bool(connections(axes)) is connected
    kind = AxisKind.SPATIAL if connected else AxisKind.REDUCED
    assert {edge.target.kind for edge in axes.along(0) if edge.source} == {kind}


def test_graph_inputs_have_edges_without_a_source() -> None:
    axes = axis_graph(graph({"in": (8, 8, 4)}, [("y", conv(4), "in")]))
    assert {(edge.source, edge.tensor) for edge in axes.edges} == {(None, "in")}
