"""The arithmetic of TFLite's reference kernels for int16 activations, as ONNX functions.

Docstrings list the inputs of a function, which `Formula.given` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mcudeploy.extensions.int16.conv_int16 import SumScales, SumTies
from mcudeploy.extensions.int16.int16 import (
    INT16,
    SUM_BITS,
    UNBOUNDED,
    Bounds,
    Int16Function,
    SigmoidInt16,
    TwiceScale,
    exponential_table,
    logistic_table,
    reciprocal_table,
)
from mcudeploy.extensions.int16.resize_int16 import ONE, ResizeSamplesInt16
from mcudeploy.frontend.tflite.formula import Expression, Formula

_BYTE, _WORD = 2**8, 2**32
_MIDDLE = 2**7
_LEAST_BITS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """The last step of a convolution or product: from the sums of channels to int16 results."""

    scales: SumScales
    ties: SumTies
    bounds: Bounds


def convolution(f: Formula, finish: Finish, window: dict[str, Any], groups: int) -> Expression:
    """Inputs x [N, H, W, C], weights [K, R, S, C / groups] and bias [K]."""
    sums = _channels_last(f, products(f, f.given("x"), f.given("weights"), window, groups))
    return _finished(f, sums + f.given("bias"), finish)


def dense(f: Formula, finish: Finish, shape: tuple[int, int], result: Sequence[int]) -> Expression:
    """Inputs x, taken as rows of D values, weights [K, D] and bias [K]. `shape`: (K, D); `result`: shape."""
    channels, depth = shape
    x, weights = f.given("x").reshaped(-1, 1, 1, depth), f.given("weights").reshaped(channels, 1, 1, depth)
    sums = products(f, x, weights, {}, 1).reshaped(-1, channels)
    return _finished(f, sums + f.given("bias"), finish).reshaped(*result)


def products(
    f: Formula, x: Expression, weights: Expression, window: dict[str, Any], groups: int
) -> Expression:
    """The sums of products [N, K, OH, OW] of int16 x [N, H, W, C] by int8 weights [K, R, S, C / groups].

    The upper and the lower bytes of x are convolved separately, which ONNX Runtime does exactly.
    """
    low = x % _BYTE
    high = (x - low) // _BYTE + _MIDDLE
    kernel = _bytes(f, weights + _MIDDLE)

    def convolved(part: Expression, zero: int) -> Expression:
        zeros = [f.constant(value, np.uint8).name for value in (zero, _MIDDLE)]
        names = [_bytes(f, part).name, kernel.name, *zeros]
        (sums,) = f.results("ConvInteger", names, 1, group=groups, **window)
        return f.cast(sums, "int64")

    return convolved(high, _MIDDLE) * _BYTE + convolved(low, 0)


def _bytes(f: Formula, value: Expression) -> Expression:
    return f.node("Transpose", f.cast(value, "uint8"), perm=[0, 3, 1, 2])


def _channels_last(f: Formula, value: Expression) -> Expression:
    return f.node("Transpose", value, perm=[0, 2, 3, 1])


def _finished(f: Formula, sums: Expression, finish: Finish) -> Expression:
    """The int16 results of sums [..., K]."""
    scales = finish.scales
    if finish.ties == "twice":
        return _clipped(f, rounded_twice(f, sums, scales.multipliers, scales.shifts), finish.bounds)
    sums = sums * (1 << scales.left_shift)
    if finish.ties == "up":
        return _clipped(f, rounded_up(f, sums, scales), finish.bounds)
    negative = sums < 0
    rounded = rounded_up(f, negative.choose(-sums, sums), scales)
    return _clipped(f, negative.choose(-rounded, rounded), finish.bounds)


def rounded_up(f: Formula, sums: Expression, scales: SumScales) -> Expression:
    """Sums * multiplier / 2^shift, ties rounded up. The 32-bit halves of sums are multiplied separately."""
    multipliers = f.constant(scales.multipliers.astype(np.int64))
    low = sums % _WORD
    upper = (sums - low) // _WORD * multipliers + low * multipliers // _WORD
    bits = scales.shifts.astype(np.int64) - _LEAST_BITS
    return (upper + f.constant(_powers(bits - 1))) // f.constant(_powers(bits))


def _powers(bits: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(np.left_shift(np.int64(1), bits))


def divided(f: Formula, value: Expression, bits: int) -> Expression:
    """Value / 2^bits, ties rounded away from zero; bits >= 1."""
    below = (value < 0).choose(f.constant(-1), 0)
    return (value + (1 << (bits - 1)) + below) >> bits


def rounded_twice(f: Formula, value: Expression, multiplier: ArrayLike, exponent: ArrayLike) -> Expression:
    """Value * multiplier * 2^exponent / 2^31 as mcud_scale_twice rounds; one factor, or one for each channel.
    """
    exponents = np.asarray(exponent, np.int64)
    left, right = np.maximum(exponents, 0), np.maximum(-exponents, 0)
    once = (value * f.constant(_powers(left)) * f.constant(multiplier) + (1 << 30)) >> 31
    shifted = right > 0
    halves = np.where(shifted, _powers(np.maximum(right - 1, 0)), 0)
    below = (once < 0).choose(f.constant(np.where(shifted, -1, 0)), 0)
    return (once + f.constant(halves) + below) // f.constant(_powers(right))


def _scaled(f: Formula, value: Expression, scale: TwiceScale) -> Expression:
    return rounded_twice(f, value, scale.multiplier, scale.exponent)


def _clipped(f: Formula, value: Expression, bounds: Bounds, dtype: str = "int16") -> Expression:
    return f.cast(value.clipped(bounds.low, bounds.high), dtype)


def binary(
    f: Formula, function: Int16Function, scales: tuple[TwiceScale, TwiceScale, TwiceScale], bounds: Bounds
) -> Expression:
    """Inputs a and b. `scales`: of a, of b, and of the result."""
    a, b = f.given("a"), f.given("b")
    if function == "mul":
        return _clipped(f, _scaled(f, a * b, scales[2]), bounds)
    a, b = (_scaled(f, it * (1 << SUM_BITS), scale) for it, scale in zip((a, b), scales, strict=False))
    return _clipped(f, _scaled(f, a + b if function == "add" else a - b, scales[2]), bounds)


@dataclass(frozen=True, slots=True)
class Rescaling:
    """The attributes of RescaleInt16; `zero_points`: of input and output."""

    above: TwiceScale
    below: TwiceScale
    negated: bool = False
    zero_points: tuple[int, int] = (0, 0)
    bounds: Bounds = UNBOUNDED


def rescaled(f: Formula, rescaling: Rescaling, dtype: str) -> Expression:
    """Input x, int16 or int8."""
    steps = f.given("x") - rescaling.zero_points[0]
    above = _scaled(f, steps, rescaling.above)
    below = _scaled(f, -steps if rescaling.negated else steps, rescaling.below)
    scaled = (steps < 0).choose(below, above)
    return _clipped(f, scaled + rescaling.zero_points[1], rescaling.bounds, dtype)


def sigmoid(f: Formula, op: SigmoidInt16) -> Expression:
    """Input x."""
    return f.cast(sigmoid_of(f, f.given("x"), op), "int16")


def sigmoid_of(f: Formula, x: Expression, op: SigmoidInt16) -> Expression:
    """The int64 result for `x` of one dimension or more."""
    half = 1 << (op.shift - 1) if op.shift else 0
    value = (x * op.multiplier + half) >> op.shift
    bits, limit = (8, 0xFFFF << 8) if op.tangent else (9, 0x7FFF << 10)
    negative = value < 0
    magnitude = negative.choose(-value, value)
    place, rest = (magnitude >> bits).clipped(0, 255), magnitude % (1 << bits)
    table = f.constant(logistic_table().astype(np.int64))
    first, last = table.at(place), table.at((place + 1).clipped(0, 255))
    curve = (place < 255).choose(first * (1 << bits) + rest * (last - first), limit)
    if op.tangent:
        half = 1 << 7
        curve = negative.choose(-curve + ((1 << 23) + half - 1), curve - ((1 << 23) - half))
        return curve >> 8
    half = 1 << 9
    curve = negative.choose(-curve + ((1 << 25) + half - 1), curve + half)
    return curve >> 10


def softmax(f: Formula, scale: TwiceScale) -> Expression:
    """Input x, along the last axis."""
    x = f.given("x")
    differences = x - f.node("ReduceMax", x, axes=[-1], keepdims=1)
    places = (_scaled(f, differences, scale) + INT16.max).clipped(INT16.min, INT16.max)
    values = _interpolated(f, exponential_table(), places)
    sums = f.node("ReduceSum", values, f.constant([-1]), keepdims=1)
    bits = f.node("Reshape", f.bit_length(sums.reshaped(-1)), f.node("Shape", sums))
    normal = (sums * f.power_of_two(-bits + 31) + (1 << 13)) >> 14
    reciprocals = _interpolated(f, reciprocal_table(), (normal - 0x18000).clipped(INT16.min, INT16.max))
    divisor = f.power_of_two(bits - 1)
    return _clipped(f, (values * reciprocals + divisor // 2) // divisor, Bounds(0))


def _interpolated(f: Formula, table: np.ndarray[Any, np.dtype[np.int16]], value: Expression) -> Expression:
    entries = f.constant(table.astype(np.int64))
    place, rest = (value >> 7) + 256, value % 128
    first = entries.at(place)
    return first + (((entries.at(place + 1) - first) * rest + 64) >> 7)


def maxima(f: Formula, window: dict[str, Any]) -> Expression:
    """Input x [N, H, W, C]."""
    x = f.node("Transpose", f.cast(f.given("x"), "float32"), perm=[0, 3, 1, 2])
    return f.cast(_channels_last(f, f.node("MaxPool", x, **window)), "int16")


def means(f: Formula, window: dict[str, Any], channels: int, counts: ArrayLike) -> Expression:
    """Input x [N, H, W, C]. `counts` [OH, OW]: number of values under a window. Ties round away from 0."""
    ones = f.constant(np.ones((channels, *window["kernel_shape"], 1)))
    sums = _channels_last(f, products(f, f.given("x"), ones, window, channels))
    count = f.constant(np.asarray(counts, np.int64)[..., np.newaxis])
    negative = sums < 0
    rounded = (negative.choose(-sums, sums) + count // 2) // count
    return f.cast(negative.choose(-rounded, rounded), "int16")


def extremum(f: Formula, *, least: bool) -> Expression:
    """Inputs a and b."""
    return f.cast(f.node("Min" if least else "Max", f.given("a"), f.given("b")), "int16")


def looked_up(f: Formula, table: np.ndarray[Any, np.dtype[np.int16]]) -> Expression:
    """Input x."""
    return f.cast(_interpolated(f, table, f.given("x")), "int16")


def matrix_product(f: Formula, scales: SumScales, shape: Sequence[int]) -> Expression:
    """Inputs a [..., M, K] and b [..., K, N]."""
    sums = f.node("MatMul", f.given("a"), f.given("b")) * (1 << scales.left_shift)
    return _clipped(f, rounded_up(f, sums, scales), UNBOUNDED).reshaped(*shape)


def mean(f: Formula, axes: Sequence[int], scale: TwiceScale, shape: Sequence[int]) -> Expression:
    """Input x."""
    sums = f.node("ReduceSum", f.given("x"), f.constant(list(axes)), keepdims=0)
    return _clipped(f, _scaled(f, sums, scale), UNBOUNDED).reshaped(*shape)


def padded(f: Formula) -> Expression:
    """Inputs x and pads."""
    return f.cast(f.node("Pad", f.given("x"), f.given("pads")), "int16")


def resized(f: Formula, rows: ResizeSamplesInt16, cols: ResizeSamplesInt16) -> Expression:
    """Input x [N, H, W, C]."""
    value = f.given("x")
    for axis, samples in ((1, rows), (2, cols)):
        weights = f.constant(np.array(samples.weight).reshape(-1, *[1] * (3 - axis)))
        first, second = value.at(samples.first, axis), value.at(samples.second, axis)
        value = first * (f.constant(ONE) - weights) + second * weights
    half = f.constant(ONE * ONE // 2)
    negative = value < 0
    rounded = (negative.choose(-value, value) + half) // (ONE * ONE)
    return f.cast(negative.choose(-rounded, rounded), "int16")


def quantized(f: Formula, scale: float) -> Expression:
    """Input x, float32; a formula of floats."""
    steps = f.node("Div", f.given("x"), scale)
    size = f.node("Abs", steps)
    whole = f.node("Floor", size)
    size = f.node("GreaterOrEqual", size - whole, 0.5).choose(whole + 1, whole)
    rounded = f.node("Sign", steps) * size
    return f.cast(f.node("Clip", rounded, float(INT16.min), float(INT16.max)), "int16")
