"""Maximum and average pools, against ONNX Runtime and by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from single_node import (
    Quantized,
    bounded,
    check_float,
    check_quantized,
    kinds,
    node,
    normal,
    quantized_types,
    seeds,
)

from mcudeploy.ir.graph import DType, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ops.pool.pool import AveragePool, MaxPool, Ties


@dataclass(frozen=True, slots=True)
class Case:
    """ONNX attributes of a pool and the shape [1, C, H, W] of its input."""

    x: tuple[int, ...]
    attributes: dict[str, Any]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any attributes ONNX Runtime accepts: pads are smaller than the kernel.

    With ceil_mode ONNX Runtime omits a last window that begins beyond the input, but the shape inference of
    ONNX does not: no model has one.
    """
    rank = draw(st.sampled_from([1, 2, 2, 2]))
    kernel = [draw(st.integers(1, 4)) for _ in range(rank)]
    dilation = [draw(st.sampled_from([1, 1, 2])) for _ in range(rank)]
    pads = [draw(st.integers(0, kernel[i % rank] - 1)) for i in range(2 * rank)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [draw(st.integers(reach[i], reach[i] + 5)) for i in range(rank)]
    strides = [draw(st.integers(1, 3)) for _ in range(rank)]
    begins_inside = all(
        -(-(size[i] + pads[i] + pads[i + rank] - reach[i]) // strides[i]) * strides[i] < size[i] + pads[i]
        for i in range(rank)
    )
    attributes = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilation,
        "pads": pads,
        "ceil_mode": int(begins_inside and draw(st.booleans())),
    }
    return Case((1, draw(st.integers(1, 9)), *size), attributes)


@given(case=cases(), dtype=quantized_types, seed=seeds)
@bounded
def test_max(case: Case, dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    what = node("MaxPool", "x", **case.attributes)
    assert kinds(check_float(what, {"x": normal(rng, case.x)}, float_tolerance=0)) == {"MaxPool"}
    x = Quantized.draw(rng, case.x, dtype)
    check_quantized(what, {"x": x}, output=(x.scale, x.zero_point), few=0, max_lsb=0)


@given(case=cases(), counted=st.integers(0, 1), dtype=quantized_types, seed=seeds)
@bounded
def test_average(case: Case, counted: int, dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    what = node("AveragePool", "x", count_include_pad=counted, **case.attributes)
    assert kinds(check_float(what, {"x": normal(rng, case.x)})) == {"AveragePool"}
    check_quantized(what, {"x": Quantized.draw(rng, case.x, dtype)})


@given(shape=st.tuples(*[st.integers(1, 9)] * 3), op=st.sampled_from(["Max", "Average"]), seed=seeds)
@bounded
def test_global(shape: tuple[int, ...], op: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    what = node(f"Global{op}Pool", "x")
    check_float(what, {"x": normal(rng, (1, *shape))})
    check_quantized(what, {"x": Quantized.draw(rng, (1, *shape), np.int8)})


@pytest.mark.parametrize(("kernel", "stride", "size"), [(2, 2, (6, 8)), (4, 4, (8, 12)), (8, 1, (8, 8))])
def test_ties_of_an_average_go_to_even(kernel: int, stride: int, size: tuple[int, int]) -> None:
    """With a scale that is a power of two the reference's floats are exact, and ties are frequent."""
    rng = np.random.default_rng(kernel)
    x = Quantized(Quantized.draw(rng, (1, 32, *size), np.int8).values, 0.25, 3)
    what = node("AveragePool", "x", kernel_shape=[kernel] * 2, strides=[stride] * 2)
    check_quantized(what, {"x": x}, output=(x.scale, 3), few=0, max_lsb=0)


@pytest.mark.parametrize(("ties", "origin"), [("away", 0), ("up", -128)])
@pytest.mark.parametrize("taps", [2, 3, 4, 6, 49, 64])
def test_multipliers_separate_ties_from_other_means(ties: Ties, origin: int, taps: int) -> None:
    """A mean is its distance from the origin, with halves away from it."""
    x = Tensor("x", (taps, 1, 1), DType.INT8, Quantization(0.1, 5))
    y = Tensor("y", (1, 1, 1), DType.INT8, Quantization(0.1, 5))
    op = AveragePool((taps, 1), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), False, ties)
    call = op.kernel(Operator("pool", op, ("x",), "y"), (x,), y)
    assert (call.params["input_zero_point"], call.params["output_zero_point"]) == (origin, origin)
    shift = int(call.params["shift"])
    sums = taps * -origin + np.arange(-128 * taps, 127 * taps + 1)
    products = sums * int(np.ravel(call.params["multipliers"])[0])
    means = (products + (1 << (shift - 1)) - 1 + ((products >> shift) & 1)) >> shift  # mcud_scale_even
    assert np.array_equal(means, np.sign(sums) * ((2 * np.abs(sums) + taps) // (2 * taps)))


# Loop nests and divisors, worked by hand.


def _average(**changes: Any) -> AveragePool:
    window: dict[str, Any] = {
        "kernel_shape": (3, 3),
        "stride": (2, 2),
        "dilation": (1, 1),
        "pads": (1, 1, 1, 1),
        "out_size": (3, 3),
        "count_include_pad": False,
    }
    return AveragePool(**(window | changes))


def test_shape_and_rows_read() -> None:
    nest = MaxPool((3, 2), (2, 2), (1, 1), (1, 0, 1, 0), (4, 3)).loops(((7, 6, 5),))
    assert nest.output_shape() == (4, 3, 5) and nest.macs() == 0
    assert nest.rows_read(0, Interval(0, 1), 7) == Interval(0, 2)
    assert nest.rows_read(0, Interval(1, 3), 7) == Interval(1, 6)
    assert nest.rows_read(0, Interval(3, 4), 7) == Interval(5, 7)
    dilated = MaxPool((2, 1), (1, 1), (3, 1), (0, 0, 0, 0), (4, 1)).loops(((7, 1, 1),))
    assert dilated.rows_read(0, Interval(2, 3), 7) == Interval(2, 6)


@pytest.mark.parametrize(
    ("pool", "wanted"),
    [
        (_average(), (2, 3, 2)),
        (_average(count_include_pad=True), (3, 3, 3)),
        (_average(out_size=(4, 4), pads=(1, 1, 1, 1), count_include_pad=True), (3, 3, 3, 1)),
        (_average(dilation=(2, 2), out_size=(2, 2), stride=(1, 1)), (2, 3)),
        (_average(kernel_shape=(5, 5), pads=(0, 0, 0, 0), out_size=(1, 1)), (5,)),
    ],
)
def test_the_divisor_counts_taps(pool: AveragePool, wanted: tuple[int, ...]) -> None:
    assert pool.taps_counted(0, 5) == wanted


def test_one_multiplier_for_every_pair_of_counts() -> None:
    q = Quantization(0.5, 3)
    x, y = Tensor("x", (5, 5, 2), DType.INT8, q), Tensor("y", (3, 3, 2), DType.INT8, q)
    pool = _average()
    params = pool.kernel(Operator("pool", pool, ("x",), "y"), (x,), y).params
    exact = np.array([[1 / 4, 1 / 6], [1 / 6, 1 / 9]]) * 2**32
    assert np.array_equal(params["multipliers"], np.rint(exact)) and params["shift"] == 32
    assert (params["least_rows"], params["least_cols"], params["factor_cols"]) == (2, 2, 2)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="begins beyond"):
        _average(out_size=(5, 3)).loops(((5, 5, 2),))
    with pytest.raises(ValueError, match="negative pads"):
        _average(pads=(-1, 0, 0, 0)).loops(((5, 5, 2),))
    x = Tensor("x", (5, 5, 2), DType.FLOAT32)
    pool = _average(pads=(5, 0, 0, 0))
    with pytest.raises(ValueError, match="undefined"):
        pool.kernel(Operator("pool", pool, ("x",), "y"), (x,), Tensor("y", (3, 3, 2), DType.FLOAT32))
    maximum = MaxPool((2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (2, 2))
    q = (Quantization(0.5, 3), Quantization(0.5, 4))
    source, output = Tensor("x", (4, 4, 1), DType.INT8, q[0]), Tensor("y", (2, 2, 1), DType.INT8, q[1])
    with pytest.raises(ValueError, match="keeps dtype and quantisation"):
        maximum.kernel(Operator("pool", maximum, ("x",), "y"), (source,), output)
