"""A small .tflite file for every operator and its ways, int8 and float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from flat_files import NONE, RELU, RELU6, RELU_N1_TO_1, SAME, VALID, FlatFile
from flat_recurrent import lstm, svdf
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A file with one operator: fills a FlatFile, and returns its inputs and outputs."""

    op: str
    make: Callable[[FlatFile], tuple[Sequence[int], Sequence[int]]]
    lsb: int = 1
    """How far an int8 output may be from LiteRT's, which rounds twice."""
    oracle: bool = True
    """Whether the numpy oracle of graphs knows the operator; test_tflite_programs.py runs the others."""
    reference: bool = True
    """Whether LiteRT's reference kernels are right: those of version 2.3.0 give wrong sums of int8."""


CASES: dict[str, Case] = {}


def case(op: str, name: str, **facts: Any) -> Callable[[Any], Any]:
    """Enters a function into the table."""

    def enter(make: Any) -> Any:
        CASES[f"{op}-{name}"] = Case(op, make, **facts)
        return make

    return enter


def window(padding: int, stride: int, act: int = NONE, dilation: int | None = 1) -> dict[str, int]:
    options = {"Padding": padding, "StrideH": stride, "StrideW": stride, "FusedActivationFunction": act}
    return (
        options if dilation is None else {**options, "DilationHFactor": dilation, "DilationWFactor": dilation}
    )


def convolutions() -> None:
    for padding, stride, dilation, act in (
        (SAME, 1, 1, RELU), (SAME, 2, 1, RELU6), (VALID, 1, 2, NONE), (VALID, 2, 1, RELU_N1_TO_1)
    ):  # fmt: skip
        name = f"{'same' if padding == SAME else 'valid'}-{stride}-{dilation}"
        size = -(-9 // stride) if padding == SAME else (9 - 2 * dilation - 1) // stride + 1

        def conv(f: FlatFile, size: int = size, args: Any = (padding, stride, act, dilation)) -> Any:
            x, w = f.int8(1, 9, 9, 6), f.weights(8, 3, 3, 6)
            y = f.int8(1, size, size, 8, scale=0.4, zero=5)
            f.operator("CONV_2D", [x, w, f.bias(x, w, 8)], y, **window(*args))
            return [x], [y]

        def depthwise(f: FlatFile, size: int = size, args: Any = (padding, stride, act, dilation)) -> Any:
            x, w = f.int8(1, 9, 9, 4), f.weights(1, 3, 3, 8, axis=3)
            y = f.int8(1, size, size, 8, scale=0.15, zero=-20)
            options = {**window(*args), "DepthMultiplier": 2}
            f.operator("DEPTHWISE_CONV_2D", [x, w, f.bias(x, w, 8)], y, **options)
            return [x], [y]

        def float_conv(f: FlatFile, size: int = size, args: Any = (padding, stride, act, dilation)) -> Any:
            x = f.add(1, 9, 9, 6)
            w, b = (f.constant(f.random.normal(0, 0.3, s), np.float32) for s in ((8, 3, 3, 6), (8,)))
            f.operator("CONV_2D", [x, w, b], y := f.add(1, size, size, 8), **window(*args))
            return [x], [y]

        case("CONV_2D", name)(conv)
        case("DEPTHWISE_CONV_2D", name)(depthwise)
        case("CONV_2D", f"float-{name}")(float_conv)


convolutions()


@case("CONV_3D", "float", oracle=False)
def convolution_of_volumes(f: FlatFile) -> Any:
    x, w = f.add(1, 5, 6, 7, 4), f.constant(f.random.normal(0, 0.3, (2, 3, 2, 4, 3)), np.float32)
    options = {**window(SAME, 2, RELU), "StrideD": 1, "DilationDFactor": 1}
    f.operator("CONV_3D", [x, w, f.constant(np.ones(3), np.float32)], y := f.add(1, 5, 3, 4, 3), **options)
    return [x], [y]


@case("CONV_2D", "per-tensor")
def _(f: FlatFile) -> Any:
    x, w, y = f.int8(1, 5, 5, 4), f.weights(3, 1, 1, 4, axis=None), f.int8(1, 5, 5, 3, scale=0.1, zero=0)
    f.operator("CONV_2D", [x, w, f.bias(x, w, 3)], y, **window(VALID, 1))
    return [x], [y]


@case("CONV_2D", "groups")
def _(f: FlatFile) -> Any:
    x, w, y = f.int8(1, 5, 5, 6), f.weights(4, 3, 3, 3), f.int8(1, 5, 5, 4, scale=0.3, zero=0)
    f.operator("CONV_2D", [x, w, f.bias(x, w, 4)], y, **window(SAME, 1))
    return [x], [y]


@case("FULLY_CONNECTED", "int8")
def _(f: FlatFile) -> Any:
    x, w, y = f.int8(1, 3, 4), f.weights(7, 12, axis=None), f.int8(1, 7, scale=0.2, zero=9)
    f.operator("FULLY_CONNECTED", [x, w, f.bias(x, w, 7)], y, FusedActivationFunction=RELU)
    return [x], [y]


@case("FULLY_CONNECTED", "no-bias")
def _(f: FlatFile) -> Any:
    x, w, y = f.int8(1, 12), f.weights(7, 12), f.int8(1, 7, scale=0.2, zero=9)
    f.operator("FULLY_CONNECTED", [x, w, -1], y)
    return [x], [y]


@case("FULLY_CONNECTED", "float")
def _(f: FlatFile) -> Any:
    x, w, b = f.add(1, 12), *(f.constant(f.random.normal(0, 1, s), np.float32) for s in ((7, 12), 7))
    f.operator("FULLY_CONNECTED", [x, w, b], y := f.add(1, 7), FusedActivationFunction=RELU6)
    return [x], [y]


@case("BATCH_MATMUL", "int8")
def _(f: FlatFile) -> Any:
    a, b, y = f.int8(1, 6, 8), f.int8(1, 5, 8, scale=0.1, zero=4), f.int8(1, 6, 5, scale=0.5, zero=1)
    f.operator("BATCH_MATMUL", [a, b], y, AdjY=True)
    return [a, b], [y]


def transposed() -> None:
    for padding, stride, taps in ((SAME, 2, 3), (SAME, 2, 4), (VALID, 2, 2), (VALID, 3, 4), (SAME, 1, 3)):
        made = 4 * stride if padding == SAME else 3 * stride + taps

        def int8(f: FlatFile, made: int = made, args: Any = (padding, stride), taps: int = taps) -> Any:
            x, w, y = f.int8(1, 4, 4, 6), f.weights(5, taps, taps, 6), f.int8(1, made, made, 5, scale=0.4)
            inputs = [f.constant([1, made, made, 5]), w, x, f.bias(x, w, 5)]
            f.operator("TRANSPOSE_CONV", inputs, y, **window(*args, dilation=None))
            return [x], [y]

        case("TRANSPOSE_CONV", f"int8-{padding}-{stride}-{taps}")(int8)

    def floats(f: FlatFile) -> Any:
        x, w = f.add(1, 4, 5, 6), f.constant(f.random.normal(0, 1, (3, 3, 2, 6)), np.float32)
        y = f.add(1, 8, 10, 3)
        f.operator("TRANSPOSE_CONV", [f.constant([1, 8, 10, 3]), w, x], y, **window(SAME, 2, dilation=None))
        return [x], [y]

    case("TRANSPOSE_CONV", "float")(floats)


transposed()


def pools() -> None:
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        for padding, stride, act in ((SAME, 2, NONE), (VALID, 1, RELU), (SAME, 1, RELU6)):
            size = -(-7 // stride) if padding == SAME else 5

            def int8(f: FlatFile, op: str = op, args: Any = (padding, stride, act), size: int = size) -> Any:
                x, y = f.int8(1, 7, 7, 5), f.int8(1, size, size, 5)
                options = {**window(*args, dilation=None), "FilterHeight": 3, "FilterWidth": 3}
                f.operator(op, [x], y, **options)
                return [x], [y]

            case(op, f"{padding}-{stride}-{act}", lsb=0)(int8)

    def float_pool(f: FlatFile) -> Any:
        x, y = f.add(1, 7, 7, 5), f.add(1, 4, 4, 5)
        options = {**window(SAME, 2, RELU, dilation=None), "FilterHeight": 3, "FilterWidth": 2}
        f.operator("AVERAGE_POOL_2D", [x], y, **options)
        return [x], [y]

    case("AVERAGE_POOL_2D", "float")(float_pool)


pools()


FUNCTIONS = ("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "NEG", "ROUND", "SIGN", "SIN")
ROOTS = ("LOG", "SQRT", "RSQRT")
"""Functions of numbers above zero."""


def elementwise() -> None:
    for op, act in (("ADD", RELU), ("SUB", NONE), ("MUL", RELU6)):

        def binary(f: FlatFile, op: str = op, act: int = act) -> Any:
            a, b = f.int8(1, 4, 4, 6), f.int8(1, 1, 1, 6, scale=0.07, zero=11)
            f.operator(op, [a, b], y := f.int8(1, 4, 4, 6, scale=0.1, zero=2), FusedActivationFunction=act)
            return [a, b], [y]

        def constant(f: FlatFile, op: str = op, act: int = act) -> Any:
            a = f.int8(1, 4, 4, 6)
            b = f.constant(f.random.integers(-128, 128, 6), np.int8, scale=[0.03], zero_point=[1])
            f.operator(op, [a, b], y := f.int8(1, 4, 4, 6, scale=0.1, zero=2), FusedActivationFunction=act)
            return [a], [y]

        def floats(f: FlatFile, op: str = op, act: int = act) -> Any:
            a, b = f.add(1, 4, 4, 6), f.constant(f.random.normal(0, 1, 6), np.float32)
            f.operator(op, [a, b], y := f.add(1, 4, 4, 6), FusedActivationFunction=act)
            return [a], [y]

        for name, make in (("int8", binary), ("constant", constant), ("float", floats)):
            case(op, name)(make)

    for op, scale, zero in (
        ("LOGISTIC", 1 / 256, -128), ("TANH", 1 / 128, 0), ("HARD_SWISH", 0.04, -100),
        ("RELU", 0.03, -128), ("RELU6", 6 / 255, -128), ("RELU_N1_TO_1", 0.01, 0),
        ("RELU_0_TO_1", 0.01, 0), ("LEAKY_RELU", 0.05, -90),
    ):  # fmt: skip

        def unary(f: FlatFile, op: str = op, scale: float = scale, zero: int = zero) -> Any:
            x, y = f.int8(1, 4, 8, 8), f.int8(1, 4, 8, 8, scale=scale, zero=zero)
            f.operator(op, [x], y, **({"Alpha": 0.1} if op == "LEAKY_RELU" else {}))
            return [x], [y]

        def float_unary(f: FlatFile, op: str = op) -> Any:
            x = f.add(1, 4, 8, 8)
            f.operator(op, [x], y := f.add(1, 4, 8, 8), **({"Alpha": 0.1} if op == "LEAKY_RELU" else {}))
            return [x], [y]

        case(op, "int8")(unary)
        case(op, "float")(float_unary)

    for op in ROOTS:

        def root(f: FlatFile, op: str = op) -> Any:
            x, e = f.add(1, 4, 8, 8), f.add(1, 4, 8, 8)
            f.operator("EXP", [x], e)
            f.operator(op, [e], y := f.add(1, 4, 8, 8))
            return [x], [y]

        case(op, "float", oracle=False)(root)

    for op in FUNCTIONS:

        def function(f: FlatFile, op: str = op) -> Any:
            f.operator(op, [x := f.add(1, 4, 8, 8)], y := f.add(1, 4, 8, 8))
            return [x], [y]

        case(op, "float", oracle=False)(function)

    for op, scale, zero, lsb in (
        ("ABS", 0.05, -128, 1), ("NEG", 0.05, -100, 0), ("NEG", 0.07, 3, 0), ("ELU", 0.04, -100, 1)
    ):  # fmt: skip

        def table(f: FlatFile, op: str = op, scale: float = scale, zero: int = zero) -> Any:
            x, y = f.int8(1, 4, 8, 8, zero=100), f.int8(1, 4, 8, 8, scale=scale, zero=zero)
            f.operator(op, [x], y)
            return [x], [y]

        case(op, "int8" if scale != 0.07 else "scales", lsb=lsb)(table)

    for op in ("MINIMUM", "MAXIMUM", "SQUARED_DIFFERENCE"):

        def pair(f: FlatFile, op: str = op) -> Any:
            a, b = f.add(1, 4, 4, 6), f.add(1, 4, 4, 6)
            f.operator(op, [a, b], y := f.add(1, 4, 4, 6))
            return [a, b], [y]

        case(op, "pair", oracle=op not in ("MINIMUM", "MAXIMUM"))(pair)

    for op in ("MINIMUM", "MAXIMUM"):

        def extremum(f: FlatFile, op: str = op) -> Any:
            x, c = f.int8(1, 4, 4, 3), f.constant(np.int8(20), np.int8, scale=[0.05], zero_point=[-3])
            f.operator(op, [x, c], y := f.int8(1, 4, 4, 3))
            return [x], [y]

        case(op, "constant", lsb=0)(extremum)

        for name, scale, shape in (("int8", 0.05, (1, 4, 4, 6)), ("scales", 0.08, (1, 1, 4, 1))):

            def stored(f: FlatFile, op: str = op, scale: float = scale, shape: Any = shape) -> Any:
                a, b = f.int8(1, 4, 4, 6), f.int8(*shape, scale=scale)
                f.operator(op, [a, b], y := f.int8(1, 4, 4, 6))
                return [a, b], [y]

            case(op, name, lsb=0, oracle=False)(stored)

        def many(f: FlatFile, op: str = op) -> Any:
            c = f.constant(f.random.integers(-128, 128, 6), np.int8, scale=[0.05], zero_point=[-3])
            f.operator(op, [x := f.int8(1, 4, 4, 6), c], y := f.int8(1, 4, 4, 6))
            return [x], [y]

        case(op, "constants", lsb=0, oracle=False)(many)


elementwise()


@case("SQUARE", "float")
def _(f: FlatFile) -> Any:
    f.operator("SQUARE", [x := f.add(1, 9)], y := f.add(1, 9))
    return [x], [y]


@case("POW", "float", oracle=False)
def _(f: FlatFile) -> Any:
    x, c = f.add(1, 9), f.constant(np.float32(3), np.float32)
    f.operator("POW", [x, c], y := f.add(1, 9))
    return [x], [y]


@case("DIV", "float")
def _(f: FlatFile) -> Any:
    x, c = f.add(1, 4), f.constant(np.full(4, 3.0), np.float32)
    f.operator("DIV", [x, c], y := f.add(1, 4))
    return [x], [y]


@case("PRELU", "int8")
def _(f: FlatFile) -> Any:
    x = f.int8(1, 4, 4, 6)
    slope = f.constant(f.random.integers(-50, 128, (1, 1, 6)), np.int8, scale=[0.002], zero_point=[3])
    f.operator("PRELU", [x, slope], y := f.int8(1, 4, 4, 6, scale=0.04, zero=-40))
    return [x], [y]


@case("PRELU", "float", oracle=False)
def _(f: FlatFile) -> Any:
    x, slope = f.add(1, 4, 4, 6), f.constant(f.random.normal(0, 1, (1, 1, 6)), np.float32)
    f.operator("PRELU", [x, slope], y := f.add(1, 4, 4, 6))
    return [x], [y]


@case("SOFTMAX", "int8")
def _(f: FlatFile) -> Any:
    f.operator("SOFTMAX", [x := f.int8(1, 12)], y := f.int8(1, 12, scale=1 / 256, zero=-128), Beta=1.0)
    return [x], [y]


@case("SOFTMAX", "beta")
def _(f: FlatFile) -> Any:
    f.operator("SOFTMAX", [x := f.int8(1, 12)], y := f.int8(1, 12, scale=1 / 256, zero=-128), Beta=0.5)
    return [x], [y]


@case("SOFTMAX", "float")
def _(f: FlatFile) -> Any:
    f.operator("SOFTMAX", [x := f.add(1, 3, 12)], y := f.add(1, 3, 12), Beta=2.0)
    return [x], [y]


@case("QUANTIZE", "between-scales")
def _(f: FlatFile) -> Any:
    f.operator("QUANTIZE", [x := f.int8(1, 40)], y := f.int8(1, 40, scale=0.07, zero=20))
    return [x], [y]


@case("QUANTIZE", "float-borders")
def _(f: FlatFile) -> Any:
    x, q, w = f.add(1, 8), f.int8(1, 8, scale=0.03, zero=0), f.weights(4, 8)
    f.operator("QUANTIZE", [x], q)
    f.operator("FULLY_CONNECTED", [q, w, f.bias(q, w, 4)], d := f.int8(1, 4, scale=0.1, zero=0))
    f.operator("DEQUANTIZE", [d], y := f.add(1, 4))
    return [x], [y]


@case("DEQUANTIZE", "float16-weights")
def _(f: FlatFile) -> Any:
    x, half, w = f.add(1, 8), f.constant(f.random.normal(0, 1, (4, 8)), np.float16), f.add(4, 8)
    f.operator("DEQUANTIZE", [half], w)
    f.operator("FULLY_CONNECTED", [x, w, -1], y := f.add(1, 4))
    return [x], [y]


def moves() -> None:
    for name, tensor in (("int8", FlatFile.int8), ("float", FlatFile.add)):

        def concat(f: FlatFile, t: Any = tensor) -> Any:
            a, b = t(f, 1, 4, 4, 3), t(f, 1, 4, 4, 5)
            f.operator("CONCATENATION", [a, b], y := t(f, 1, 4, 4, 8), Axis=3)
            return [a, b], [y]

        def pad(f: FlatFile, t: Any = tensor) -> Any:
            x, pads = t(f, 1, 4, 4, 3), f.constant([[0, 0], [1, 2], [0, 1], [0, 0]])
            f.operator("PAD", [x, pads], y := t(f, 1, 7, 5, 3))
            return [x], [y]

        def reshape(f: FlatFile, t: Any = tensor) -> Any:
            x, r = t(f, 1, 4, 4, 3), t(f, 1, 16, 3)
            f.operator("RESHAPE", [x, f.constant([-1, 16, 3])], r)
            f.operator("EXPAND_DIMS", [r, f.constant([1])], e := t(f, 1, 1, 16, 3))
            f.operator("MAX_POOL_2D", [e], y := t(f, 1, 1, 16, 3), FilterHeight=1, FilterWidth=3,
                       **window(SAME, 1, dilation=None))  # fmt: skip
            return [x], [y]

        def squeeze(f: FlatFile, t: Any = tensor) -> Any:
            x, m = t(f, 1, 4, 4, 3), t(f, 1, 1, 1, 3)
            f.operator("MEAN", [x, f.constant([1, 2])], m, KeepDims=True)
            f.operator("SQUEEZE", [m], y := t(f, 3))
            return [x], [y]

        def mean(f: FlatFile, t: Any = tensor) -> Any:
            x = t(f, 1, 4, 4, 3)
            f.operator("MEAN", [x, f.constant([1, 2])], y := t(f, 1, 3), KeepDims=False)
            return [x], [y]

        def transpose(f: FlatFile, t: Any = tensor) -> Any:
            x = t(f, 1, 4, 5, 3)
            f.operator("TRANSPOSE", [x, f.constant([0, 2, 1, 3])], y := t(f, 1, 5, 4, 3))
            return [x], [y]

        def strided(f: FlatFile, t: Any = tensor) -> Any:
            x, ranges = (
                t(f, 1, 6, 5, 3),
                [f.constant(each) for each in ([0, 4, -2, 1], [0, 0, 5, 2], [1, -2, 1, 1])],
            )
            options = {"BeginMask": 1, "EndMask": 3, "ShrinkAxisMask": 8}
            f.operator("STRIDED_SLICE", [x, *ranges], y := t(f, 1, 3, 2), **options)
            return [x], [y]

        def slice_(f: FlatFile, t: Any = tensor) -> Any:
            x, begin, size = t(f, 1, 6, 5, 3), f.constant([0, 1, 2, 0]), f.constant([1, 3, -1, 3])
            f.operator("SLICE", [x, begin, size], y := t(f, 1, 3, 3, 3))
            return [x], [y]

        def split(f: FlatFile, t: Any = tensor) -> Any:
            x, parts = t(f, 1, 6, 5, 4), [t(f, 1, 6, 5, 2), t(f, 1, 6, 5, 2)]
            f.operator("SPLIT", [f.constant(3), x], parts, NumSplits=2)
            return [x], parts

        def split_v(f: FlatFile, t: Any = tensor) -> Any:
            x, parts = t(f, 1, 6, 5, 4), [t(f, 1, 6, 5, 1), t(f, 1, 6, 5, 3)]
            f.operator("SPLIT_V", [x, f.constant([1, 3]), f.constant(3)], parts, NumSplits=2)
            return [x], parts

        def pack(f: FlatFile, t: Any = tensor) -> Any:
            a, b = t(f, 1, 6), t(f, 1, 6)
            f.operator("PACK", [a, b], y := t(f, 1, 2, 6), Axis=1, ValuesCount=2)
            return [a, b], [y]

        def unpack(f: FlatFile, t: Any = tensor) -> Any:
            x, parts = t(f, 1, 2, 6), [t(f, 1, 6), t(f, 1, 6)]
            f.operator("UNPACK", [x], parts, Axis=1, Num=2)
            return [x], parts

        def gather(f: FlatFile, t: Any = tensor) -> Any:
            x = t(f, 1, 6, 5)
            f.operator("GATHER", [x, f.constant([0, 2, 4])], y := t(f, 1, 3, 5), Axis=1)
            return [x], [y]

        for op, make in (
            ("CONCATENATION", concat), ("PAD", pad), ("RESHAPE", reshape), ("SQUEEZE", squeeze),
            ("MEAN", mean), ("TRANSPOSE", transpose), ("STRIDED_SLICE", strided), ("SLICE", slice_),
            ("SPLIT", split), ("SPLIT_V", split_v), ("PACK", pack), ("UNPACK", unpack), ("GATHER", gather),
            ("EXPAND_DIMS", reshape),
        ):  # fmt: skip
            case(op, name)(make)

        for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
            for mode in ("", "AlignCorners", "HalfPixelCenters"):

                def resize(f: FlatFile, op: str = op, mode: str = mode, t: Any = tensor) -> Any:
                    x = t(f, 1, 5, 4, 3)
                    options = {mode: True} if mode else {}
                    f.operator(op, [x, f.constant([9, 8])], y := t(f, 1, 9, 8, 3), **options)
                    return [x], [y]

                case(op, f"{name}-{mode}")(resize)


def reductions() -> None:
    for name, tensor in (("int8", FlatFile.int8), ("float", FlatFile.add)):
        for op in ("SUM", "REDUCE_MAX", "REDUCE_MIN"):

            def reduce(f: FlatFile, op: str = op, t: Any = tensor) -> Any:
                x = t(f, 1, 4, 4, 3)
                f.operator(op, [x, f.constant([1, 2])], y := t(f, 1, 3), KeepDims=False)
                return [x], [y]

            lsb = int(op == "SUM")
            case(op, name, reference=(op, name) != ("SUM", "int8"), lsb=lsb)(reduce)
            for axes in ([3], [2, 3], [1, 3]) if lsb == 0 else ():

                def along(f: FlatFile, op: str = op, t: Any = tensor, axes: Any = axes) -> Any:
                    x = t(f, 1, 4, 5, 3)
                    left = [1 if axis in axes else size for axis, size in enumerate((1, 4, 5, 3))]
                    f.operator(op, [x, f.constant(axes)], y := t(f, *left), KeepDims=True)
                    f.operator("CONCATENATION", [y, y], z := t(f, *left[:3], 2 * left[3]), Axis=3)
                    return [x], [z]

                case(op, f"{name}-{len(axes)}{axes[0]}", lsb=0, oracle=False)(along)

        def to_space(f: FlatFile, t: Any = tensor) -> Any:
            f.operator("DEPTH_TO_SPACE", [x := t(f, 1, 3, 4, 12)], y := t(f, 1, 6, 8, 3), BlockSize=2)
            return [x], [y]

        def to_depth(f: FlatFile, t: Any = tensor) -> Any:
            f.operator("SPACE_TO_DEPTH", [x := t(f, 1, 6, 8, 3)], y := t(f, 1, 3, 4, 12), BlockSize=2)
            return [x], [y]

        case("DEPTH_TO_SPACE", name)(to_space)
        case("SPACE_TO_DEPTH", name)(to_depth)


reductions()

moves()


for op in ("ADD", "MUL"):

    def unsigned(f: FlatFile, op: str = op) -> Any:
        a, b, y = (
            f.add(1, 4, 4, 6, kind="UINT8", scale=(scale,), zero_point=(zero,))
            for scale, zero in ((0.05, 120), (0.03, 0), (0.08, 90))
        )
        f.operator(op, [a, b], y, FusedActivationFunction=RELU)
        return [a, b], [y]

    case(op, "uint8")(unsigned)


@case("PADV2", "int8")
def _(f: FlatFile) -> Any:
    x, pads = f.int8(1, 4, 4, 3), f.constant([[0, 0], [1, 2], [0, 1], [0, 0]])
    value = f.constant(np.int8(-50), np.int8, scale=[0.05], zero_point=[-3])
    f.operator("PADV2", [x, pads, value], y := f.int8(1, 7, 5, 3))
    return [x], [y]


for name, options in (("float", {}), ("int8", {"int8": True})):
    case("UNIDIRECTIONAL_SEQUENCE_LSTM", name, oracle=False)(partial(lstm, **options))


for name, options in (("float", {}), ("int16", {"state": "INT16"})):
    case("SVDF", name, oracle=False)(partial(svdf, **options))


def network(f: FlatFile) -> Any:
    """Image [1, 16, 16, 3]: pad, convolution, depthwise, both added, mean, dense, softmax."""
    x, pads = f.int8(1, 16, 16, 3), f.constant([[0, 0], [0, 1], [0, 1], [0, 0]])
    f.operator("PAD", [x, pads], padded := f.int8(1, 17, 17, 3))
    w, y = f.weights(8, 3, 3, 3), f.int8(1, 8, 8, 8, scale=0.1, zero=-128)
    f.operator("CONV_2D", [padded, w, f.bias(padded, w, 8)], y, **window(VALID, 2, RELU6))
    d, z = f.weights(1, 3, 3, 8, axis=3), f.int8(1, 8, 8, 8, scale=0.12, zero=-20)
    options = {**window(SAME, 1), "DepthMultiplier": 1}
    f.operator("DEPTHWISE_CONV_2D", [y, d, f.bias(y, d, 8)], z, **options)
    f.operator("ADD", [y, z], s := f.int8(1, 8, 8, 8, scale=0.15, zero=-30), FusedActivationFunction=RELU)
    f.operator("MEAN", [s, f.constant([1, 2])], m := f.int8(1, 8, scale=0.1, zero=-30), KeepDims=False)
    v = f.weights(10, 8, axis=None)
    f.operator("FULLY_CONNECTED", [m, v, f.bias(m, v, 10)], n := f.int8(1, 10, scale=0.1, zero=5))
    f.operator("SOFTMAX", [n], p := f.int8(1, 10, scale=1 / 256, zero=-128), Beta=1.0)
    return [x], [p]
