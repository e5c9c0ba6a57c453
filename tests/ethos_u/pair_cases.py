"""Random operations of two operands that a unit computes, and the bytes that their streams touch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mcudeploy.extensions.ethos_u.stream_judge import TouchedPair
from mcudeploy.extensions.ethos_u.unit_offers import reason_against, unit_calls
from mcudeploy.extensions.ethos_u.unit_steps import UnitRows, elementwise_parts, words_of
from mcudeploy.extensions.int16.int16 import SUM_BITS, BinaryInt16, Bounds, SigmoidInt16, TwiceScale
from mcudeploy.ir.graph import DType, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.conv.affine import Affine
from mcudeploy.ops.scalar.elementwise import Binary, Lut

SHAPE = (5, 16, 24)
"""Enough values for every pair of most bytes."""
OTHERS: dict[str, Shape] = {
    "whole": SHAPE,
    "channels": (1, 1, 24),
    "row": (1, 16, 24),
    "column": (5, 1, 24),
    "map": (5, 16, 1),
    "value": (1, 1, 1),
}
Case = tuple[Operator, tuple[Tensor, ...], Tensor]


def binary(seed: int, other: str = "whole", *, constant: bool = False, function: str = "") -> Case:
    """A random operation of an input of SHAPE and another operand, which is the first one at some seeds."""
    rng = np.random.default_rng(seed)
    function = function or ("add", "sub", "mul")[seed % 3]
    scales = np.exp(rng.uniform(-2, 2, 3)) if seed % 4 else np.full(3, 0.05)
    if function == "mul":
        scales[2] = scales[0] * scales[1] * np.exp(rng.uniform(2, 6))
    points = [Quantization(float(np.float32(it)), int(rng.integers(-128, 128))) for it in scales]
    y = Tensor("y", SHAPE, DType.INT8, points[2])
    x, second = Tensor("x", SHAPE, DType.INT8, points[0]), Tensor("z", OTHERS[other], DType.INT8, points[1])
    swapped = (
        bool(seed // 3 % 2)
        and (function != "sub" or not constant)
        and (function != "sub" or other == "whole")
    )
    clip = {"low": -1.0, "high": 2.0} if seed % 5 == 0 else {}
    op = Binary(function, rounding="tflite" if seed // 6 % 2 else "once", **clip)
    if not constant:
        inputs = (second, x) if swapped else (x, second)
        return Operator("op", op, tuple(it.name for it in inputs), "y"), inputs, y
    op = replace(
        op,
        constant_operand=0 if swapped else 1,
        constant_shape=second.shape,
        constant_quantization=second.quantization,
    )
    values = rng.integers(-128, 128, second.shape).astype(np.int8)
    return Operator("op", op, ("x",), "y", {"constant": values}), (x,), y


def binary_int16(seed: int, other: str = "whole", *, constant: bool = False) -> Case:
    """A random operation of 16-bit values, as TFLite rounds it."""
    rng = np.random.default_rng(seed)
    function, scales = ("add", "sub", "mul")[seed % 3], np.exp(rng.uniform(-2, 2, 3))
    if seed % 4 == 0:
        scales[1] = scales[0]
    common = 2 * max(scales[:2])
    factors = scales[0] / common, scales[1] / common, common / (2.0**SUM_BITS * scales[2])
    a, b, result = map(TwiceScale.of, factors)
    if function == "mul":
        result = TwiceScale.of(2.0 ** -int(rng.integers(8, 20)) * float(rng.uniform(1, 2)))
    op = BinaryInt16(function, a, b, result)  # type: ignore[arg-type]
    if seed % 5 == 0:
        op = replace(op, bounds=Bounds(-3000, 9000))
    x, y = (Tensor(name, SHAPE, DType.INT16) for name in "xy")
    second = Tensor("z", OTHERS[other], DType.INT16)
    if not constant:
        return Operator("op", op, ("x", "z"), "y"), (x, second), y
    values = rng.integers(-(2**15), 2**15, second.shape).astype(np.int16)
    op = replace(op, constant_operand=1, constant_shape=second.shape)
    return Operator("op", op, ("x",), "y", {"constant": values}), (x,), y


def curve(seed: int) -> Case:
    """A logistic function, or a tangent, of 16-bit values."""
    rng = np.random.default_rng(seed)
    op = SigmoidInt16(bool(seed % 2), int(rng.integers(1 << 14, 1 << 15)), int(rng.integers(5, 17)))
    x = Tensor("x", SHAPE, DType.INT16)
    return Operator("op", op, ("x",), "y"), (x,), replace(x, name="y")


def affine(seed: int) -> Case:
    """Random factors and offsets by channel, some of which saturate."""
    pytest.importorskip("ethosu", reason="Vela is not installed: pip install ethos-u-vela")
    rng = np.random.default_rng(seed)
    low, high = (-1.0, 2.0) if seed % 2 else (-np.inf, np.inf)
    x, y = (
        Tensor(
            name, SHAPE, DType.INT8, Quantization(float(rng.uniform(0.02, 0.1)), int(rng.integers(-128, 128)))
        )
        for name in "xy"
    )
    constants = {
        "factor": (rng.normal(0, 1.0, SHAPE[2]) * (rng.random(SHAPE[2]) < 0.9)).astype(np.float32),
        "offset": rng.normal(0, 2.0, SHAPE[2]).astype(np.float32),
    }
    return Operator("op", Affine(low, high), ("x",), "y", constants), (x,), y


def clip(seed: int) -> Case:
    """A table that scales values and clips them, as a ReLU does."""
    rng = np.random.default_rng(seed)
    points = [Quantization(float(it), int(rng.integers(-128, 128))) for it in rng.uniform(0.02, 0.1, 2)]
    x, y = (Tensor(name, SHAPE, DType.INT8, it) for name, it in zip("xy", points, strict=True))
    low, high = ((0.0, np.inf), (-1.0, 1.5), (0.0, 3.0))[seed % 3]
    real = np.clip((np.arange(-128, 128) - points[0].zero_point) * points[0].scale, low, high)
    table = np.clip(np.rint(real / points[1].scale) + points[1].zero_point, -128, 127).astype(np.int8)
    return Operator("op", Lut(), ("x",), "y", {"table": table}), (x,), y


def both(case: Case, isa: Isa = Isa.U55_128) -> tuple[KernelCall, KernelCall]:
    core = case[0].op.kernel(*case)
    calls = unit_calls(*case, core.variants(Isa.ANY), isa)
    assert calls, reason_against(*case)
    return core, calls[0]


ALONE = ("affine", "clip", "curve")
"""The cases of one operand."""
CASES = {
    "sum": lambda: binary(1),
    "in the place of the second": lambda: binary(3),
    "channels": lambda: binary(4, "channels"),
    "constant": lambda: binary(0, "column", constant=True),
    "constant channels": lambda: binary(2, "channels", constant=True),
    "value": lambda: binary(0, "value", constant=True),
    "affine": lambda: affine(0),
    "clip": lambda: clip(0),
    "curve": lambda: curve(0),
    "sum of int16": lambda: binary_int16(0),
    "product of int16": lambda: binary_int16(2, "channels"),
    "int16 constant": lambda: binary_int16(3, "column", constant=True),
    "int16 value": lambda: binary_int16(3, "value", constant=True),
}
STARTS = (512, 8192)
OUT_AT = 16384


def touched_by(case: Case, call: KernelCall) -> tuple[list[int], TouchedPair]:
    """The words of all rows, and the bytes of their step."""
    operator, inputs, y = case
    places = tuple(
        lambda row, start=start, it=it: start + row * it.row_bytes
        for start, it in zip(STARTS, inputs, strict=False)
    )
    (part,) = elementwise_parts(call, Interval(0, SHAPE[0]), places, lambda row: OUT_AT + row * y.row_bytes)
    assert isinstance(part, UnitRows)

    value_bytes = y.dtype.size_bytes

    def rows(begin: int, shape: Shape) -> tuple[Interval, ...]:
        size = shape[1] * shape[2] * value_bytes
        return tuple(Interval(begin + row * size, begin + (row + 1) * size) for row in range(shape[0]))

    first = next(number for number, it in enumerate(inputs) if it.shape == SHAPE)
    others, second = (), SHAPE
    constant = operator.constants.get("constant")
    if len(inputs) > 1:
        second = inputs[1 - first].shape
        others = rows(STARTS[1 - first], second)
    elif constant is not None:
        second = constant.shape
        others = rows(0, second) if constant.size > 1 else ()
    reads, writes = rows(STARTS[first], SHAPE), rows(OUT_AT, SHAPE)
    words = words_of(call, part, places, lambda row: OUT_AT + row * y.row_bytes)
    touched = TouchedPair(writes, reads, others, SHAPE, second, constant is not None, value_bytes)
    return words, touched
