"""Operators that take in their input by blocks of rows: the bits of the unsplit ones, for every cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from harness import graph_of, run_accumulating, run_operator
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from single_node import bounded, seeds

from mcudeploy.ir.graph import DType, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import AxisKind, ConstantArray, LoopNest
from mcudeploy.ops.conv.conv import Conv2d, Conv2dByRows
from mcudeploy.ops.pool.pool import AveragePool, AveragePoolByRows

Array = NDArray[Any]
DTYPES = st.sampled_from([DType.INT8, DType.FLOAT32])


def mean_of(shape: Shape) -> AveragePool:
    """The mean over all rows and columns."""
    return AveragePool(shape[:2], (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), False)


def _tensors(dtype: DType, shape: Shape, channels: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    def quantization(low: float, high: float) -> Quantization | None:
        if dtype is DType.FLOAT32:
            return None
        return Quantization(float(np.float32(rng.uniform(low, high))), int(rng.integers(-128, 128)))

    output = Tensor("y", (1, 1, channels), dtype, quantization(0.02, 0.2))
    return Tensor("x", shape, dtype, quantization(0.02, 0.2)), output


def _values(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Any int8, or floats of such different sizes that another order of additions would show."""
    if dtype is DType.INT8:
        return rng.integers(-128, 128, shape).astype(np.int8)
    return (rng.normal(size=shape) * 2.0 ** rng.integers(-12, 13, shape)).astype(np.float32)


def _cuts(rows: int, rng: np.random.Generator) -> list[Interval]:
    """Steps between random rows; they may cross blocks of the input."""
    inside = rng.choice(np.arange(1, rows), int(rng.integers(0, rows)), replace=False)
    ends = sorted({0, rows, *map(int, inside)})
    return [Interval(lo, hi) for lo, hi in pairwise(ends)]


def _check(op: AveragePool | Conv2d, source: Tensor, output: Tensor, constants: dict[str, ConstantArray],
           seed: int) -> Array:  # fmt: skip
    """The output has the same bits unsplit and by rows: in one step, in random ones and in the smallest."""
    rng = np.random.default_rng(seed)
    rows = source.shape[0]
    x = _values(source.dtype, source.shape, rng)
    unsplit = graph_of(op, source, output, constants=constants)
    whole = run_operator(unsplit, unsplit.operators[0], {"x": x}, seed=seed).reshape(-1)
    accumulating = op.by_rows((source.shape,))
    assert accumulating is not None
    split = graph_of(accumulating, source, output, constants=constants)
    height = int(rng.integers(1, rows + 1))
    single = [Interval(row, row + 1) for row in range(rows)]
    whole_step = [Interval(0, rows)]
    cuts = ((whole_step, rows), (whole_step, height), (_cuts(rows, rng), height), (single, rows))
    for steps, blocks in cuts:
        for isa in (Isa.ANY, Isa.MVE, Isa.RVV):
            computed = run_accumulating(
                split, split.operators[0], {"x": x}, steps, height=blocks, seed=seed, isa=isa
            )
            assert computed.tobytes() == whole.tobytes(), (
                f"differs by {isa} for steps {list(map(str, steps))}"
            )
    return whole


@given(shape=st.tuples(st.integers(2, 9), st.integers(1, 6), st.integers(1, 11)), dtype=DTYPES, seed=seeds)
@bounded
def test_average(shape: Shape, dtype: DType, seed: int) -> None:
    source, output = _tensors(dtype, shape, shape[2], np.random.default_rng(seed))
    _check(mean_of(shape), source, output, {}, seed)


@given(
    shape=st.tuples(st.integers(2, 9), st.integers(1, 5), st.integers(1, 9)),
    channels=st.integers(1, 11),
    clipped=st.booleans(),
    dtype=DTYPES,
    nine_bits=st.booleans(),
    seed=seeds,
)
@bounded
def test_convolution(
    shape: Shape, channels: int, clipped: bool, dtype: DType, nine_bits: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    source, output = _tensors(dtype, shape, channels, rng)
    conv = Conv2d(channels, shape[:2], low=0.0 if clipped else -np.inf, high=6.0 if clipped else np.inf)
    bias = rng.integers(-3000, 3000, channels).astype(np.int32) if dtype is DType.INT8 else None
    constants = {
        "weights": _values(dtype, (channels, *shape), rng),
        "bias": _values(dtype, (channels,), rng) if bias is None else bias,
        "weight_scale": rng.uniform(0.0005, 0.002, channels).astype(np.float32),
    }
    if nine_bits and dtype is DType.INT8:  # uint8 less a zero point
        constants["weights"] = constants["weights"].astype(np.int16) + int(rng.integers(-127, 128))
    _check(conv, source, output, constants, seed)


def test_the_order_of_additions_shows_in_the_samples() -> None:
    """Otherwise equal bits would prove nothing."""
    x = _values(DType.FLOAT32, (64, 8), np.random.default_rng(1))
    forward, backward = np.zeros(8, np.float32), np.zeros(8, np.float32)
    for row in range(64):
        forward, backward = forward + x[row], backward + x[63 - row]
    assert (forward != backward).any()


# Operators with an accumulating form, derived by hand.


@pytest.mark.parametrize(
    ("pool", "rows"),
    [
        (mean_of((6, 5, 3)), True),
        (AveragePool((6, 5), (6, 5), (1, 1), (0, 0, 0, 0), (1, 1), True), True),
        (AveragePool((8, 7), (1, 1), (1, 1), (1, 1, 1, 1), (1, 1), False), True),
        (AveragePool((8, 7), (1, 1), (1, 1), (1, 1, 1, 1), (1, 1), True), False),
        (AveragePool((5, 5), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), False), False),
        (AveragePool((6, 4), (1, 2), (1, 1), (0, 0, 0, 0), (1, 1), False), False),
        (AveragePool((3, 5), (1, 1), (2, 1), (0, 0, 0, 0), (1, 1), False), False),
        (AveragePool((6, 1), (1, 1), (1, 1), (0, 0, 0, 0), (1, 5), False), False),
        (AveragePool((3, 5), (3, 1), (1, 1), (0, 0, 0, 0), (2, 1), False), False),
    ],
)
def test_which_averages(pool: AveragePool, rows: bool) -> None:
    assert pool.by_rows(((6, 5, 3),)) == (AveragePoolByRows() if rows else None)


def test_one_row_gains_nothing() -> None:
    assert mean_of((1, 5, 3)).by_rows(((1, 5, 3),)) is None
    assert Conv2d(4).by_rows(((1, 1, 30),)) is None
    assert Conv2d(4, (1, 5)).by_rows(((1, 5, 30),)) is None


@pytest.mark.parametrize(
    ("conv", "rows"),
    [
        (Conv2d(4, (6, 5), low=0.0, high=6.0), True),
        (Conv2d(4, (6, 5), stride=(2, 3)), True),
        (Conv2d(4, (6, 5), pads=(1, 0, 1, 0)), False),
        (Conv2d(3, (6, 5), groups=3), False),
        (Conv2d(4, (6, 4)), False),
        (Conv2d(4, (3, 3), dilation=(2, 2)), False),
        (Conv2d(4), False),
    ],
)
def test_which_convolutions(conv: Conv2d, rows: bool) -> None:
    expected = Conv2dByRows(conv.out_channels, (6, 5), conv.low, conv.high) if rows else None
    assert conv.by_rows(((6, 5, 3),)) == expected


@pytest.mark.parametrize(
    ("nest", "axes", "macs"),
    [
        (AveragePoolByRows().loops(((6, 5, 3),)), {"r": 6, "s": 5}, 0),
        (Conv2dByRows(4, (6, 5)).loops(((6, 5, 3),)), {"r": 6, "s": 5, "c": 3}, 4 * 6 * 5 * 3),
    ],
)
def test_steps_run_along_the_rows_of_the_input(nest: LoopNest, axes: dict[str, int], macs: int) -> None:
    assert {axis.name: axis.size for axis in nest.axes if axis.kind is AxisKind.REDUCED} == axes
    assert nest.macs() == macs and nest.output_shape()[:2] == (1, 1)
    assert nest.rows_taken(0, Interval(2, 4), 6) == Interval(2, 4)
    assert nest.rows_taken(0, Interval(4, 8), 6) == Interval(4, 6)
    assert nest.rows_read(0, Interval(0, 1), 6) == Interval(0, 6)


def test_others_take_nothing_by_rows() -> None:
    for nest in (Conv2d(4, (3, 3)).loops(((6, 5, 3),)), mean_of((6, 5, 3)).loops(((6, 5, 3),))):
        with pytest.raises(ValueError, match="along one reduced axis"):
            nest.rows_taken(0, Interval(0, 1), 6)


def test_a_kernel_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kernel \(6, 5\)"):
        Conv2dByRows(4, (6, 5)).loops(((6, 4, 3),))
    conv = Conv2dByRows(4, (2, 1))
    x, y = Tensor("x", (2, 1, 3), DType.FLOAT32), Tensor("y", (1, 1, 4), DType.FLOAT32)
    constants = {"weights": np.zeros((4, 2, 1, 2), np.float32), "bias": np.zeros(4, np.float32)}
    with pytest.raises(ValueError, match="weights"):
        conv.kernel(Operator("conv", conv, ("x",), "y", constants), (x,), y)
