"""The shares of a step: complete, without overlap, and even as far as slices can be cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from graphs import Q, conv, graph_io, pooled, residual
from hypothesis import given
from hypothesis import strategies as st

from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Rewrites
from mcudeploy.ops.scalar.unary import Unary
from mcudeploy.planner.cores.parts import Slice, WorkSharing
from mcudeploy.planner.model.forms import in_form
from mcudeploy.planner.model.model import kernel_variants
from mcudeploy.tiling.dataflow import Dataflow

GRAIN = 4
"""The alignment in bytes of a slice within its row."""


def division_of(graph: Graph, cores: int) -> WorkSharing:
    calls = {name: candidates[0] for name, candidates in kernel_variants(graph).items()}
    return WorkSharing.of(Dataflow.of(graph), calls, cores)


def convolution(rows: int, cols: int, channels: tuple[int, int], kernel: int) -> Graph:
    """One convolution of an int8 image."""
    shapes = {"image": (rows, cols, channels[0]), "made": (rows, cols, channels[1])}
    return Graph(
        name="one",
        tensors={name: Tensor(name, shape, DType.INT8, Q) for name, shape in shapes.items()},
        operators=(conv("conv", "image", "made", channels, kernel),),
        inputs=(graph_io("image", shapes["image"]),),
        outputs=(graph_io("made", shapes["made"]),),
    )


def functions(shape: tuple[int, int, int]) -> Graph:
    """Two elementwise float functions, each of which may overwrite its input."""
    return Graph(
        name="functions",
        tensors={name: Tensor(name, shape, DType.FLOAT32, None) for name in ("x", "a", "b")},
        operators=(
            Operator("first", Unary("sigmoid"), ("x",), "a"),
            Operator("second", Unary("sigmoid"), ("a",), "b"),
        ),
        inputs=(graph_io("x", shape),),
        outputs=(graph_io("b", shape),),
    )


def written_by(slices: list[list[Slice]], rows: Interval, width: int) -> np.ndarray:
    """The number of times that each pixel of the rows is computed."""
    written = np.zeros((len(rows), width), np.int32)
    for part_rows, columns in (piece for mine in slices for piece in mine):
        span = columns or Interval(0, width)
        written[part_rows.lo - rows.lo : part_rows.hi - rows.lo, span.lo : span.hi] += 1
    return written


def cells_of(graph: Graph) -> int:
    """Columns, or channels of a single pixel."""
    _, columns, channels = graph.tensors["made"].shape
    return columns if columns > 1 else channels


def pixels(mine: list[Slice], width: int) -> int:
    return sum(len(rows) * (width if columns is None else len(columns)) for rows, columns in mine)


@given(
    size=st.tuples(st.integers(1, 24), st.integers(1, 40)),
    channels=st.tuples(st.integers(1, 5), st.integers(1, 9)),
    kernel=st.sampled_from([1, 3]),
    cores=st.integers(2, 8),
    data=st.data(),
)
def test_shares_are_all_of_a_step_once_and_even(
    size: tuple[int, int], channels: tuple[int, int], kernel: int, cores: int, data: st.DataObject
) -> None:
    graph = convolution(*size, channels, kernel)
    (operator,) = graph.operators
    rows = Interval(lo := data.draw(st.integers(0, size[0] - 1)), data.draw(st.integers(lo + 1, size[0])))
    division = division_of(graph, cores)
    slices = division.slices(operator, rows)
    width = cells_of(graph)
    assert len(slices) <= cores and (written_by(slices, rows, width) == 1).all()
    granule = GRAIN if size[1] == 1 else GRAIN // np.gcd(GRAIN, channels[1])
    for part_rows, columns in (piece for mine in slices for piece in mine):
        assert len(part_rows) > 0 and (columns is None or (len(part_rows) == 1 and len(columns) > 0))
        assert columns is None or columns.lo % granule == 0
        assert columns is None or columns.hi % granule == 0 or columns.hi == width
        assert columns is None or len(columns) < width  # else it is the whole row
    shares = [pixels(mine, width) for mine in slices]
    assert division.largest_share(operator, rows) == pytest.approx(max(shares) / sum(shares))
    if len(slices) > 1:
        even = sum(shares) / len(slices)
        # Even except for a granule at each end; whole rows if those are no worse, or if rows are not cut.
        by_rows = -(-len(rows) // len(slices)) * width
        slack = 2 * granule if granule < width else width
        assert max(shares) <= max(even + slack, min(by_rows, 1.02 * even))
    # The slices of the cores are adjacent.
    order = [(part.lo, columns.lo if columns else 0) for mine in slices for part, columns in mine]
    assert order == sorted(order)


@given(rows=st.integers(1, 64), cores=st.integers(2, 8))
def test_whole_rows_are_even_within_one(rows: int, cores: int) -> None:
    """Functions may overwrite their input: their rows are not cut."""
    graph = functions((rows, 16, 200))
    slices = division_of(graph, cores).slices(graph.operators[0], Interval(0, rows))
    counts = [sum(len(part) for part, _ in mine) for mine in slices]
    assert sum(counts) == rows and max(counts) <= -(-rows // cores)
    assert all(columns is None for mine in slices for _, columns in mine)


def test_rows_that_do_not_go_round_are_cut_in_columns() -> None:
    graph = convolution(3, 16, (4, 4), 3)
    (operator,) = graph.operators
    slices = division_of(graph, 2).slices(operator, Interval(0, 3))
    assert slices == [
        [(Interval(0, 1), None), (Interval(1, 2), Interval(0, 8))],
        [(Interval(1, 2), Interval(8, 16)), (Interval(2, 3), None)],
    ]


def test_what_overwrites_its_input_is_not_cut_in_columns() -> None:
    graph = functions((3, 16, 200))
    division = division_of(graph, 2)
    assert division.in_place == {"first", "second"}
    for operator in graph.operators:
        slices = division.slices(operator, Interval(0, 3))
        assert sorted(len(part) for mine in slices for part, _ in mine) == [1, 2]
        assert all(columns is None for mine in slices for _, columns in mine)


def test_channels_of_a_single_pixel_are_shared_out() -> None:
    graph = convolution(1, 1, (300, 20), 1)
    slices = division_of(graph, 2).slices(graph.operators[0], Interval(0, 1))
    assert [[len(cells) for _, cells in mine if cells is not None] for mine in slices] == [[8], [12]]


def test_an_operator_that_accumulates_stays_on_one_core() -> None:
    graph = pooled()
    division = division_of(graph, 4)
    assert division.slices(graph.operators[1], Interval(0, 8)) == [[(Interval(0, 8), None)]]


def test_feeds_stay_on_one_core() -> None:
    graph = in_form(residual(), Rewrites(), Rewrites(streamed=True))
    feed = next(operator for operator in graph.operators if not operator.inputs)
    assert division_of(graph, 4).slices(feed, Interval(0, 8)) == [[(Interval(0, 8), None)]]


def test_little_work_is_not_shared_out() -> None:
    graph = convolution(8, 8, (4, 4), 3)
    (operator,) = graph.operators
    counts = {}
    for rows in range(1, 9):
        slices = division_of(graph, 8).slices(operator, Interval(0, rows))
        counts[rows] = len(slices)
    assert [low <= high for low, high in pairwise(counts.values())] == [True] * 7
    tiny = convolution(1, 4, (1, 4), 1)
    assert len(division_of(tiny, 8).slices(tiny.operators[0], Interval(0, 1))) == 1
