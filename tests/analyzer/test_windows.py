"""Rows that parts need: against the loop nests on random chains, and halos."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.ir.graph import Graph, Shape
from mcudeploy.ir.interval import Interval
from mcudeploy.ops.conv.conv import Conv2d, window_positions
from mcudeploy.ops.move.move import Pad, Slice
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.pool.pool import MaxPool
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Lut
from mcudeploy.planner.axes import axis_graph
from tests.analyzer.build import conv, graph, resize, row_edge


@st.composite
def chains(draw: st.DrawFn) -> Graph:
    """A chain of one to four operators, with every kind of row index."""
    rows, cols, channels = shape = (draw(st.integers(1, 12)), 2, 2)
    start: Shape = shape
    operators: list[tuple[str, object, str]] = []
    previous = "in"
    for number in range(draw(st.integers(1, 4))):
        kind = draw(
            st.sampled_from(["conv", "pool", "slice", "pad", "resize", "softmax", "view", "turn", "lut"])
        )
        op: object = Lut()
        if kind in ("conv", "pool"):
            kernel, stride, dilation = (draw(st.integers(1, most)) for most in (4, 3, 2))
            pads = (draw(st.integers(0, 2)), 0, draw(st.integers(0, 2)), 0)
            if rows + pads[0] + pads[2] > dilation * (kernel - 1):
                count = window_positions(rows, kernel, stride, dilation, (pads[0], pads[2]))
                inside = (rows - 1 + pads[0]) // stride + 1  # windows that begin before the last row ends
                if kind == "conv":
                    op = Conv2d(channels, (kernel, 1), (stride, 1), (dilation, 1), pads)
                else:
                    op = MaxPool(
                        (kernel, 1), (stride, 1), (dilation, 1), pads, (min(count + 1, inside), cols)
                    )
        elif kind == "slice":
            step = draw(st.sampled_from([-2, -1, 1, 2]))
            first = draw(st.integers(0, rows - 1))
            most = first // -step + 1 if step < 0 else (rows - 1 - first) // step + 1
            op = Slice((first, 0, 0), (step, 1, 1), (draw(st.integers(1, most)), cols, channels))
        elif kind == "pad":
            op = Pad((draw(st.integers(0, 3)), 0, 0), (draw(st.integers(0, 3)), 0, 0))
        elif kind == "resize":
            op = resize(draw(st.sampled_from(["nearest", "linear"])), rows, draw(st.integers(1, 3)), cols)
        elif kind == "softmax":
            op = Softmax(draw(st.integers(0, 2)))
        elif kind == "view":
            op = Reshape(draw(st.sampled_from([(rows, 1, cols * channels), (1, rows, cols * channels)])))
        elif kind == "turn":
            op = Transpose((rows, cols, channels), (1, 0, 2), (cols, rows, channels))
        operators.append((f"o{number}", op, previous))
        previous = f"o{number}"
        rows, cols, channels = op.loops(((rows, cols, channels),)).output_shape()  # type: ignore[attr-defined]
        if rows > 40:
            break
    return graph({"in": start}, operators)


def _intervals(size: int) -> list[Interval]:
    return [Interval(lo, hi) for lo, hi in combinations(range(size + 1), 2)]


@settings(max_examples=120, deadline=None)
@given(chains())
def test_windows_agree_with_the_loop_nests(found: Graph) -> None:
    axes = axis_graph(found)
    for edge in axes.along(0):
        operator = edge.target.operator
        nest, rows = axes.nests[operator], found.tensors[found.operators[operator].output].shape[0]
        if edge.target.name in axes.writes(operator, 0):
            for part in _intervals(rows):
                expected = nest.rows_read(edge.operand, part, edge.positions)
                assert edge.needed(part) == expected
        else:  # rows do not matter: the whole of the other axis reads them all
            expected = nest.rows_read(edge.operand, Interval(0, 1), edge.positions)
            assert edge.needed(Interval(0, edge.target.size)) == expected


@settings(max_examples=60, deadline=None)
@given(chains(), st.integers(1, 4))
def test_neighbours_share_no_more_than_the_halo(found: Graph, part_rows: int) -> None:
    for edge in axis_graph(found).along(0):
        cuts = range(part_rows, edge.target.size, part_rows)
        shared = [edge.needed(Interval(cut - part_rows, cut)).clip(0, edge.positions) for cut in cuts]
        following = [edge.needed(Interval(cut, min(cut + part_rows, edge.target.size))) for cut in cuts]
        for one, other in zip(shared, following, strict=True):
            assert min(one.hi, other.hi) - max(one.lo, other.lo) <= edge.halo


def test_halo_is_what_is_needed_beyond_stride_times_rows() -> None:
    axes = axis_graph(
        graph({"in": (64, 8, 4)}, [("x", Lut(), "in"), ("y", conv(4, kernel=5, stride=2), "x")])
    )
    edge = row_edge(axes, "y")
    for rows in (1, 2, 5):
        assert len(edge.needed(Interval(10, 10 + rows))) == 2 * rows + edge.halo
