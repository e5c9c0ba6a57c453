"""Slice, Pad and Transpose: elements move, none changes."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from harness import check_graph, graph_of
from hypothesis import given
from hypothesis import strategies as st
from single_node import (
    Quantized,
    bounded,
    check_float,
    check_quantized,
    node,
    normal,
    quantized_types,
    seeds,
    shapes,
)

from mcudeploy.ir.graph import DType, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ops.move.move import Pad, Slice
from mcudeploy.ops.move.transpose import Transpose


@st.composite
def slices(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[int, int, int]]]:
    """A shape [1, C, H, W], and (start, end, step) of its last three axes, never empty."""
    shape = draw(shapes)
    parts = []
    for size in shape[1:]:
        step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        first = draw(st.integers(0, size - 1))
        last = draw(st.integers(first, size - 1) if step > 0 else st.integers(0, first))
        end = last + (1 if step > 0 else -1)
        parts.append((first, end if end >= 0 else -size - 1, step))
    return shape, parts


@given(drawn=slices(), dtype=quantized_types, seed=seeds)
@bounded
def test_slice(drawn: tuple[tuple[int, ...], list[tuple[int, int, int]]], dtype: type, seed: int) -> None:
    shape, parts = drawn
    rng = np.random.default_rng(seed)
    columns = [np.array(column, np.int64) for column in zip(*parts, strict=True)]
    names = ("starts", "ends", "axes", "steps")
    constants = dict(zip(names, (columns[0], columns[1], np.array([1, 2, 3]), columns[2]), strict=True))
    what = node("Slice", "x", *names, constants=constants)
    check_float(what, {"x": normal(rng, shape)}, float_tolerance=0)
    x = Quantized.draw(rng, shape, dtype)
    check_quantized(what, {"x": x}, output=(x.scale, x.zero_point), few=0, equal_share=1)


images = st.tuples(st.just(1), st.integers(1, 9), st.integers(2, 7), st.integers(2, 7))


@given(
    shape=images,
    before=st.tuples(*[st.integers(0, 3)] * 3),
    after=st.tuples(*[st.integers(0, 3)] * 3),
    value=st.floats(-2, 2, width=32),
    dtype=quantized_types,
    seed=seeds,
)
@bounded
def test_pad(
    shape: tuple[int, ...],
    before: tuple[int, ...],
    after: tuple[int, ...],
    value: float,
    dtype: type,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    pads = {"pads": np.array([0, *before, 0, *after], np.int64), "value": np.float32(value)}
    what = node("Pad", "x", "pads", "value", constants=pads)
    check_float(what, {"x": normal(rng, shape)}, float_tolerance=0)
    x = Quantized.draw(rng, shape, dtype)
    check_quantized(what, {"x": x}, output=(x.scale, x.zero_point), few=0, equal_share=1)


def test_negative_pads_crop() -> None:
    x = np.arange(5 * 6 * 7, dtype=np.float32).reshape(5, 6, 7)
    computed = _run(Pad((-1, 2, -1), (1, -3, 4), 0.5), x)
    cropped = x[1:, :-3, 1:]
    assert np.array_equal(computed, np.pad(cropped, ((0, 1), (2, 0), (0, 4)), constant_values=0.5))


def _run(op: Pad | Slice | Transpose, x: np.ndarray) -> np.ndarray:
    """The operator alone, whole and in pieces."""
    shape = op.loops((x.shape,)).output_shape()
    graph = graph_of(op, Tensor("x", x.shape, DType.FLOAT32), Tensor("y", shape, DType.FLOAT32))
    return check_graph(graph, {"x": x})["y"]


@given(shape=shapes, perm=st.permutations([1, 2, 3]), dtype=quantized_types, seed=seeds)
@bounded
def test_transpose_of_an_image(shape: tuple[int, ...], perm: list[int], dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    what = node("Transpose", "x", perm=[0, *perm])
    check_float(what, {"x": normal(rng, shape)}, float_tolerance=0)
    x = Quantized.draw(rng, shape, dtype)
    check_quantized(what, {"x": x}, output=(x.scale, x.zero_point), few=0, equal_share=1)


@st.composite
def views(draw: st.DrawFn) -> Transpose:
    """Any view of up to five dimensions, its permutation, and a shape for the result."""
    dims = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    perm = draw(st.permutations(range(len(dims))))
    rows = draw(st.integers(0, len(dims)))
    cols = draw(st.integers(rows, len(dims)))
    result = [dims[axis] for axis in perm]
    shape = prod(result[:rows]), prod(result[rows:cols]), prod(result[cols:])
    return Transpose(tuple(dims), tuple(perm), shape)


@given(op=views(), cut=st.tuples(st.integers(1, 4), st.integers(1, 4)), seed=seeds)
@bounded
def test_transpose_of_a_view(op: Transpose, cut: tuple[int, int], seed: int) -> None:
    """The input's own shape may cut through the view's dimensions."""
    count = prod(op.dims)
    rows = next(size for size in range(cut[0], 0, -1) if count % size == 0)
    cols = next(size for size in range(cut[1], 0, -1) if count // rows % size == 0)
    x = normal(np.random.default_rng(seed), (rows, cols, count // rows // cols))
    assert np.array_equal(_run(op, x), x.reshape(op.dims).transpose(op.perm).reshape(op.out_shape))


def test_transposed_heads_read_one_row_each() -> None:
    """(T, 1, heads * D) -> (heads, T, D): every head needs all tokens, every token of the result one row."""
    split = Transpose((8, 4, 16), (1, 0, 2), (4, 8, 16)).loops(((8, 1, 64),))
    assert split.rows_read(0, Interval(1, 2), 8) == Interval(0, 8)
    merge = Transpose((4, 8, 16), (1, 0, 2), (8, 1, 64)).loops(((4, 8, 16),))
    assert merge.output_shape() == (8, 1, 64)
    shuffle = Transpose((5, 6, 2, 4), (0, 1, 3, 2), (5, 6, 8)).loops(((5, 6, 8),))
    assert shuffle.rows_read(0, Interval(3, 4), 5) == Interval(3, 4)


def test_rows_of_blocks_read_one_row_each() -> None:
    """(rows, cols, blocks of 2x3 pixels) -> pixels: row 7 lies in the second row of the blocks in row 3."""
    pixels = Transpose((4, 5, 2, 3, 8), (0, 2, 1, 3, 4), (8, 15, 8)).loops(((4, 5, 48),))
    assert pixels.output_shape() == (8, 15, 8)
    assert [pixels.rows_read(0, Interval(row, row + 1), 4).lo for row in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert pixels.rows_read(0, Interval(3, 5), 4) == Interval(1, 3)
    joined = Transpose((8, 1, 4), (0, 1, 2), (4, 1, 8)).loops(((8, 1, 4),))
    assert joined.rows_read(0, Interval(1, 2), 8) == Interval(2, 4)


@given(op=views(), cut=st.tuples(st.integers(1, 4), st.integers(1, 4)))
@bounded
def test_a_transpose_declares_the_rows_that_it_reads(op: Transpose, cut: tuple[int, int]) -> None:
    count = prod(op.dims)
    rows = next(size for size in range(cut[0], 0, -1) if count % size == 0)
    cols = next(size for size in range(cut[1], 0, -1) if count // rows % size == 0)
    shape = (rows, cols, count // rows // cols)
    source = np.arange(count) // (count // rows)
    read = source.reshape(op.dims).transpose(op.perm).reshape(op.out_shape)
    nest = op.loops((shape,))
    for row, places in enumerate(read):
        declared = nest.rows_read(0, Interval(row, row + 1), rows)
        assert declared.lo <= places.min() and places.max() < declared.hi


def test_a_slice_beyond_the_input_is_refused() -> None:
    with pytest.raises(ValueError, match="axis 1"):
        Slice((0, 2, 0), (1, 2, 1), (4, 3, 1)).loops(((4, 6, 1),))
