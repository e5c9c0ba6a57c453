"""Take and Gather: elements by constant positions; the nodes that become them."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from harness import check_against_onnx, check_graph, graph_of
from hypothesis import given
from hypothesis import strategies as st
from single_node import (
    Node,
    Quantized,
    bounded,
    check_float,
    check_quantized,
    kinds,
    node,
    normal,
    seeds,
    sizes,
)

from mcudeploy.ir.graph import DType, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ops.move.take import Gather, Take, runs
from tests.networks.onnx_files import build

stored = st.tuples(sizes, sizes, sizes)
dtypes = st.sampled_from([each for each in DType if each is not DType.INT16])


def _run(
    op: Take | Gather, shape: tuple[int, int, int], dtype: DType, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Random values, and the operator's result on them, whole and in pieces."""
    x = np.random.default_rng(seed).integers(-128, 128, shape).astype(dtype.value)
    meaning = Quantization(0.5, 3) if dtype is DType.INT8 else None
    graph = graph_of(op, Tensor("x", shape, dtype, meaning), Tensor("y", op.out_shape, dtype, meaning))
    return x, check_graph(graph, {"x": x})["y"]


@st.composite
def takes(draw: st.DrawFn) -> tuple[Take, tuple[int, int, int]]:
    """Positions of every dimension: any, or stretches in order."""
    shape = draw(stored)
    tables = []
    for size in shape:
        anywhere = st.lists(st.integers(0, size - 1), min_size=1, max_size=9)
        ends = st.tuples(st.integers(0, size - 1), st.integers(1, size))
        stretch = ends.map(lambda pair: list(range(pair[0], max(pair[1], pair[0] + 1))) * 2)
        tables.append(tuple(draw(anywhere | stretch)))
    return Take(*tables), shape


@given(drawn=takes(), dtype=dtypes, seed=seeds)
@bounded
def test_take(drawn: tuple[Take, tuple[int, int, int]], dtype: DType, seed: int) -> None:
    op, shape = drawn
    x, computed = _run(op, shape, dtype, seed)
    assert np.array_equal(computed, x[np.ix_(op.rows, op.cols, op.channels)])


@given(shape=stored, result=stored, unit=sizes, dtype=dtypes, seed=seeds)
@bounded
def test_gather(
    shape: tuple[int, int, int], result: tuple[int, int, int], unit: int, dtype: DType, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    places = rng.integers(0, prod(shape), prod(result))
    if shape[1] * shape[2] % unit == result[1] * result[2] % unit == 0:
        together = rng.integers(0, prod(shape) // unit, (prod(result) // unit, 1)) * unit
        places = (together + np.arange(unit)).reshape(-1)
    x, computed = _run(Gather(tuple(places.tolist()), result), shape, dtype, seed)
    assert np.array_equal(computed, x.reshape(-1)[places].reshape(result))


def test_rows_are_read_through_the_tables() -> None:
    take = Take((2, 1, 0, 1, 2), (0, 1), (0,)).loops(((3, 2, 1),))
    assert take.rows_read(0, Interval(0, 2), 3) == Interval(1, 3)
    gather = Gather((0, 5, 4, 7), (2, 1, 2)).loops(((4, 1, 2),))
    assert [gather.rows_read(0, Interval(row, row + 1), 4) for row in (0, 1)] == [
        Interval(0, 3),
        Interval(2, 4),
    ]


def test_runs_end_where_positions_jump() -> None:
    assert runs((4, 5, 6, 6, 1, 2)) == ((4, 6, 1), (3, 1, 2))


def test_what_tables_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="65535"):
        Take((0,), (0,), (0,)).loops(((2**16, 1, 1),))
    with pytest.raises(ValueError, match="beyond"):
        Take((3,), (0,), (0,)).loops(((3, 1, 1),))
    with pytest.raises(ValueError, match="beyond"):
        Gather((6,), (1, 1, 1)).loops(((3, 1, 2),))


def _check(what: Node, shape: tuple[int, ...], dtype: type = np.int8) -> set[str]:
    """In float and on integers as ONNX Runtime does it; the kinds of operators."""
    rng = np.random.default_rng(0)
    graph = check_float(what, {"x": normal(rng, shape)}, float_tolerance=0)
    x = Quantized.draw(rng, shape, dtype)
    check_quantized(what, {"x": x}, output=(x.scale, x.zero_point), few=0, equal_share=1)
    return kinds(graph)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize(
    ("shape", "pads"),
    [
        ((1, 3, 4, 5), [0, 0, 2, 1, 0, 0, 1, 3]),
        ((1, 3, 4, 5), [0, 1, -1, 2, 0, 0, 2, -2]),
        ((1, 2, 9), [0, 0, 4, 0, 1, 0]),
        ((2, 3, 4), [1, 0, 2, 0, 1, 1]),
        ((7,), [3, 2]),
    ],
)
def test_pads_by_elements(mode: str, shape: tuple[int, ...], pads: list[int]) -> None:
    what = node("Pad", "x", "pads", constants={"pads": np.array(pads, np.int64)}, mode=mode)
    assert _check(what, shape, np.uint8) == {"Take"}


@pytest.mark.parametrize(
    ("op", "shape", "constant", "attributes", "kind"),
    [
        ("Tile", (1, 3, 4, 5), [1, 2, 1, 3], {}, "Take"),
        ("Tile", (2, 3), [3, 2], {}, "Take"),
        ("Expand", (1, 6, 1, 1), [1, 6, 3, 4], {}, "Take"),
        ("Expand", (1, 3, 4, 1, 5, 1), [1, 3, 4, 2, 5, 2], {}, "Take"),
        ("Expand", (5,), [4, 1, 5], {}, "Take"),
        ("Gather", (1, 8, 4, 5), [6, 0, 0, 5, 7], {"axis": 1}, "Take"),
        ("Gather", (6, 5), [[0, 4], [-1, 1]], {"axis": 0}, "Take"),
        ("Gather", (1, 4, 3), [0, 0, 1], {"axis": 2}, "Take"),
        ("GatherElements", (3, 3), [[1, 2, 0], [2, 0, 0]], {"axis": 0}, "Gather"),
        ("GatherND", (3, 3, 4), [[1], [2], [0]], {"batch_dims": 1}, "Take"),
        ("GatherND", (4, 5, 6), [[1, 2], [3, 0], [0, -1]], {}, "Take"),
    ],
)
def test_what_takes_elements(
    op: str, shape: tuple[int, ...], constant: list[int], attributes: dict[str, int], kind: str
) -> None:
    what = node(op, "x", "k", constants={"k": np.array(constant, np.int64)}, **attributes)
    assert _check(what, shape) - {"Reshape", "Transpose"} == {kind}


@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_integers_move_as_they_are(mode: str) -> None:
    x = np.random.default_rng(0).integers(-(2**31), 2**31, (1, 3, 4, 5)).astype(np.int32)
    pads = {"pads": np.array([0, 0, 2, 1, 0, 0, 1, 3], np.int64)}
    nodes = [node("Pad", "x", "pads", constants=pads, mode=mode).proto("out")]
    model = build(nodes, {"x": x}, {"out": (np.int32, (1, 3, 7, 9))}, pads, 21)
    assert kinds(check_against_onnx(model, {"x": x})) == {"Take"}


def test_reversed_sequences() -> None:
    lengths = {"k": np.array([3, 1, 4], np.int64)}
    what = node("ReverseSequence", "x", "k", constants=lengths, time_axis=0, batch_axis=1)
    graph = check_float(what, {"x": normal(np.random.default_rng(0), (4, 3, 2))}, float_tolerance=0)
    assert kinds(graph) == {"Gather"}
