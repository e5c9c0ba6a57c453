"""A small .tflite file for every operator and its ways, int8, int16 and float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from flat_files import NONE, RELU, RELU6, RELU_N1_TO_1, SAME, VALID, FlatFile
from flat_recurrent import lstm, svdf


@dataclass(frozen=True)
class Case:
    """A file with one operator: fills a FlatFile, and returns its inputs and outputs."""

    op: str
    make: Callable[[FlatFile], tuple[Sequence[int], Sequence[int]]]
    lsb: int = 1
    """How far an int8 output may be from LiteRT's, which rounds twice."""
    reference: bool = True
    """Whether LiteRT's reference kernels are right: those of version 2.3.0 give wrong sums of int8."""


CASES: dict[str, Case] = {}


def case(op: str, name: str, **facts: Any) -> Callable[[Any], Any]:
    """Enters a function into the table; the results of int16 have the bits of LiteRT."""

    def enter(make: Any) -> Any:
        CASES[f"{op}-{name}"] = Case(op, make, **{"lsb": int(not name.startswith("int16")), **facts})
        return make

    return enter


@dataclass(frozen=True)
class Of:
    """A tensor of a case: `add` adds it to a file, after those that its operator reads before it."""

    add: Callable[[FlatFile, Sequence[int]], int]
    fed: bool = False
    """Whether it is an input of the file."""


def i8(*shape: int, **facts: Any) -> Of:
    return Of(lambda f, _: f.int8(*shape, **facts), True)


def i16(*shape: int, scale: float = 0.001) -> Of:
    return Of(lambda f, _: f.int16(*shape, scale=scale), True)


def f32(*shape: int, **facts: Any) -> Of:
    return Of(lambda f, _: f.add(*shape, **facts), True)


def weights(*shape: int, axis: int | None = 0) -> Of:
    return Of(lambda f, _: f.weights(*shape, axis=axis))


def bias(count: int, dtype: Any = None) -> Of:
    """In units of the activation and the weights before it."""

    def add(f: FlatFile, before: Sequence[int]) -> int:
        (source,) = (it for it in before if f.tensors[it].data is None)
        (kernel,) = (it for it in before if f.tensors[it].data is not None and len(f.tensors[it].scale))
        return f.bias(source, kernel, count, dtype)

    return Of(add)


def floats(*shape: int, spread: float = 1.0) -> Of:
    return Of(lambda f, _: f.floats(*shape, spread=spread))


def held(data: Any, dtype: Any = np.int32, **facts: Any) -> Of:
    return Of(lambda f, _: f.constant(data, dtype, **facts))


def integers(*shape: int, low: int = -128, dtype: Any = np.int8, scale: float = 0.05, zero: int = 0) -> Of:
    """A quantised constant."""
    most = np.iinfo(dtype).max + 1
    return Of(
        lambda f, _: f.constant(f.random.integers(low, most, shape), dtype, scale=[scale], zero_point=[zero])
    )


MISSING = Of(lambda *_: -1)


def add(
    f: FlatFile, op: str, inputs: Sequence[Of], outputs: Of | Sequence[Of], **options: Any
) -> tuple[Sequence[int], Sequence[int]]:
    """Adds an operator and its tensors; the inputs and outputs of the file."""
    read: list[int] = []
    for tensor in inputs:
        read.append(tensor.add(f, read))
    made = [it.add(f, read) for it in ([outputs] if isinstance(outputs, Of) else outputs)]
    f.operator(op, read, made, **options)
    return [number for number, it in zip(read, inputs, strict=True) if it.fed], made


def row(op: str, name: str, inputs: Sequence[Of], outputs: Of | Sequence[Of], /, **options: Any) -> None:
    """Enters a file of one operator into the table; `lsb` and `reference` are as in `Case`."""
    facts = {fact: options.pop(fact) for fact in ("lsb", "reference") if fact in options}

    case(op, name, **facts)(partial(add, op=op, inputs=inputs, outputs=outputs, **options))


def window(padding: int, stride: int, act: int = NONE, dilation: int | None = 1) -> dict[str, int]:
    options = {"Padding": padding, "StrideH": stride, "StrideW": stride, "FusedActivationFunction": act}
    return (
        options if dilation is None else {**options, "DilationHFactor": dilation, "DilationWFactor": dilation}
    )


KINDS = {"int8": i8, "int16": i16, "float": f32}
TWO_KINDS = {"int8": i8, "float": f32}
TOP = 2.0**-15
"""The scale of int16 results up to 1."""

# -- convolutions, products ---------------------------------------------------------------------------

for padding, stride, dilation, act in (
    (SAME, 1, 1, RELU), (SAME, 2, 1, RELU6), (VALID, 1, 2, NONE), (VALID, 2, 1, RELU_N1_TO_1)
):  # fmt: skip
    name = f"{'same' if padding == SAME else 'valid'}-{stride}-{dilation}"
    made = -(-9 // stride) if padding == SAME else (9 - 2 * dilation - 1) // stride + 1
    size, options = (1, made, made), window(padding, stride, act, dilation)
    kernel = [weights(8, 3, 3, 6), bias(8)]
    row("CONV_2D", name, [i8(1, 9, 9, 6), *kernel], i8(*size, 8, scale=0.4, zero=5), **options)
    row("CONV_2D", f"int16-{name}", [i16(1, 9, 9, 6), *kernel], i16(*size, 8, scale=0.004), **options)
    kernel = [floats(8, 3, 3, 6, spread=0.3), floats(8, spread=0.3)]
    row("CONV_2D", f"float-{name}", [f32(1, 9, 9, 6), *kernel], f32(*size, 8), **options)
    inputs = [i8(1, 9, 9, 4), weights(1, 3, 3, 8, axis=3), bias(8)]
    row("DEPTHWISE_CONV_2D", name, inputs, i8(*size, 8, scale=0.15, zero=-20), **options, DepthMultiplier=2)
    inputs = [i16(1, 9, 9, 5), weights(1, 3, 3, 5, axis=3), bias(5)]
    row(
        "DEPTHWISE_CONV_2D", f"int16-{name}", inputs, i16(*size, 5, scale=0.002), **options, DepthMultiplier=1
    )

inputs = [i16(1, 6, 6, 3), weights(1, 3, 3, 6, axis=3), bias(6)]
options = {**window(SAME, 1), "DepthMultiplier": 2}
row("DEPTHWISE_CONV_2D", "int16-multiplied", inputs, i16(1, 6, 6, 6, scale=0.002), **options)
inputs = [f32(1, 5, 6, 7, 4), floats(2, 3, 2, 4, 3, spread=0.3), held(np.ones(3), np.float32)]
options = {**window(SAME, 2, RELU), "StrideD": 1, "DilationDFactor": 1}
row("CONV_3D", "float", inputs, f32(1, 5, 3, 4, 3), **options)

point, groups = weights(3, 1, 1, 4, axis=None), [weights(4, 3, 3, 3), bias(4)]
inputs = [i8(1, 5, 5, 4), point, bias(3)]
row("CONV_2D", "per-tensor", inputs, i8(1, 5, 5, 3, scale=0.1, zero=0), **window(VALID, 1))
row("CONV_2D", "groups", [i8(1, 5, 5, 6), *groups], i8(1, 5, 5, 4, scale=0.3, zero=0), **window(SAME, 1))
inputs = [i16(1, 5, 5, 4), point, bias(3, np.int32)]
options = {**window(VALID, 1), "QuantizedBiasType": 2}
row("CONV_2D", "int16-bias-32", inputs, i16(1, 5, 5, 3, scale=0.003), **options)
row("CONV_2D", "int16-groups", [i16(1, 5, 5, 6), *groups], i16(1, 5, 5, 4, scale=0.003), **window(SAME, 1))
inputs = [i16(1, 5, 5, 2), weights(5, 1, 1, 2), bias(5)]
row("CONV_2D", "int16-large-scale", inputs, i16(1, 5, 5, 5, scale=0.000_01), **window(VALID, 1))

dense, y = [weights(7, 12, axis=None), bias(7)], i8(1, 7, scale=0.2, zero=9)
row("FULLY_CONNECTED", "int8", [i8(1, 3, 4), *dense], y, FusedActivationFunction=RELU)
row("FULLY_CONNECTED", "no-bias", [i8(1, 12), weights(7, 12), MISSING], y)
inputs = [f32(1, 12), floats(7, 12), floats(7)]
row("FULLY_CONNECTED", "float", inputs, f32(1, 7), FusedActivationFunction=RELU6)
inputs = [i16(1, 3, 4), *dense]
row("FULLY_CONNECTED", "int16", inputs, i16(1, 7, scale=0.004), FusedActivationFunction=RELU)
row("FULLY_CONNECTED", "int16-deep", [i16(3, 1203), weights(6, 1203), MISSING], i16(3, 6, scale=0.04))

inputs = [i8(1, 6, 8), i8(1, 5, 8, scale=0.1, zero=4)]
row("BATCH_MATMUL", "int8", inputs, i8(1, 6, 5, scale=0.5, zero=1), AdjY=True)
for name, a, b, y, scale in (
    ("", (1, 6, 8), (1, 8, 5), (1, 6, 5), 0.000_5),
    ("-heads", (1, 3, 6, 8), (1, 3, 8, 5), (1, 3, 6, 5), 0.000_5),
    ("-transposed", (1, 8, 6), (1, 5, 8), (1, 6, 5), 0.000_5),
    ("-transposed-heads", (1, 3, 6, 80), (1, 3, 5, 80), (1, 3, 6, 5), 0.000_05),
):  # fmt: skip
    options = {"AdjX": name == "-transposed", "AdjY": "transposed" in name}
    row("BATCH_MATMUL", f"int16{name}", [i16(*a), i16(*b, scale=0.0007)], i16(*y, scale=scale), **options)
inputs = [i16(1, 6, 80), weights(80, 5, axis=None)]
row("BATCH_MATMUL", "int16-constant", inputs, i16(1, 6, 5, scale=0.005))
inputs = [i16(2, 80, 6), weights(1, 5, 80, axis=None)]
y = i16(2, 6, 5, scale=0.005)
row("BATCH_MATMUL", "int16-constant-transposed", inputs, y, AdjX=True, AdjY=True)

for padding, stride, taps in ((SAME, 2, 3), (SAME, 2, 4), (VALID, 2, 2), (VALID, 3, 4), (SAME, 1, 3)):
    made = 4 * stride if padding == SAME else 3 * stride + taps
    shape, name = (1, made, made, 5), f"int8-{padding}-{stride}-{taps}"
    inputs = [held(shape), weights(5, taps, taps, 6), i8(1, 4, 4, 6), bias(5)]
    row("TRANSPOSE_CONV", name, inputs, i8(*shape, scale=0.4), **window(padding, stride, dilation=None))
inputs = [held([1, 8, 10, 3]), floats(3, 3, 2, 6), f32(1, 4, 5, 6)]
row("TRANSPOSE_CONV", "float", inputs, f32(1, 8, 10, 3), **window(SAME, 2, dilation=None))
for name, taps, stride, options in (
    ("", 3, 2, {}), ("-bias-32", 4, 2, {"QuantizedBiasType": 2}), ("-plain", 3, 1, None)
):  # fmt: skip
    shape = (1, 4 * stride, 5 * stride, 6)
    inputs = [held(shape), weights(6, taps, taps, 3), i16(1, 4, 5, 3)]
    inputs += [] if options is None else [bias(6, np.int32 if options else None)]
    more = {**(options or {}), "Padding": SAME, "StrideH": stride, "StrideW": stride}
    row("TRANSPOSE_CONV", f"int16{name}", inputs, i16(*shape, scale=0.003), **more)

# -- pools, reductions --------------------------------------------------------------------------------

for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
    for padding, stride, act in ((SAME, 2, NONE), (VALID, 1, RELU), (SAME, 1, RELU6)):
        made = -(-7 // stride) if padding == SAME else 5
        options = {**window(padding, stride, act, None), "FilterHeight": 3, "FilterWidth": 3}
        row(op, f"{padding}-{stride}-{act}", [i8(1, 7, 7, 5)], i8(1, made, made, 5), lsb=0, **options)
    for name, made, options in (
        ("same", 4, window(SAME, 2, NONE, None)),
        ("valid", 3, window(VALID, 2, RELU6, None)),
    ):
        x, y = (i16(1, size, size, 5, scale=0.0004) for size in (7, made))
        row(op, f"int16-{name}", [x], y, **options, FilterHeight=3, FilterWidth=3)
options = {**window(SAME, 2, RELU, None), "FilterHeight": 3, "FilterWidth": 2}
row("AVERAGE_POOL_2D", "float", [f32(1, 7, 7, 5)], f32(1, 4, 4, 5), **options)

for kind, t in TWO_KINDS.items():
    row("MEAN", kind, [t(1, 4, 4, 3), held([1, 2])], t(1, 3), KeepDims=False)
    for op in ("SUM", "REDUCE_MAX", "REDUCE_MIN"):
        facts = {"lsb": int(op == "SUM"), "reference": (op, kind) != ("SUM", "int8")}
        row(op, kind, [t(1, 4, 4, 3), held([1, 2])], t(1, 3), KeepDims=False, **facts)
        for axes in ([3], [2, 3], [1, 3]) if op != "SUM" else ():

            @case(op, f"{kind}-{len(axes)}{axes[0]}", lsb=0)
            def _(f: FlatFile, op: str = op, t: Any = t, axes: Any = axes) -> Any:
                left = [1 if axis in axes else size for axis, size in enumerate((1, 4, 5, 3))]
                x, y, z = (it.add(f, ()) for it in (t(1, 4, 5, 3), t(*left), t(*left[:3], 2 * left[3])))
                f.operator(op, [x, f.constant(axes)], y, KeepDims=True)
                f.operator("CONCATENATION", [y, y], z, Axis=3)
                return [x], [z]


for name, axes, made in (
    ("image", [1, 2], (1, 1, 1, 6)), ("rows", [1], (1, 5, 6)),
    ("channels", [3], (1, 7, 5)), ("batch", [0], (7, 5, 6)),
):  # fmt: skip
    y = i16(*made, scale=0.0004)
    row("MEAN", f"int16-{name}", [i16(1, 7, 5, 6), held(axes)], y, KeepDims=name == "image")
row("REDUCE_PROD", "float", [f32(1, 4, 6), held([1])], f32(1, 6), KeepDims=False)

# -- functions of elements ----------------------------------------------------------------------------

FUNCTIONS = ("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "NEG", "ROUND", "SIGN", "SIN")
ROOTS = ("LOG", "SQRT", "RSQRT")
"""Functions of numbers above zero."""

for op, act in (("ADD", RELU), ("SUB", NONE), ("MUL", RELU6)):
    options, y = {"FusedActivationFunction": act}, i8(1, 4, 4, 6, scale=0.1, zero=2)
    row(op, "int8", [i8(1, 4, 4, 6), i8(1, 1, 1, 6, scale=0.07, zero=11)], y, **options)
    row(op, "constant", [i8(1, 4, 4, 6), integers(6, scale=0.03, zero=1)], y, **options)
    row(op, "float", [f32(1, 4, 4, 6), floats(6)], f32(1, 4, 4, 6), **options)
    options, x = {} if op == "MUL" else {"PotScaleInt16": False}, i16(1, 4, 5, 6)
    y = i16(1, 4, 5, 6, scale=0.002 if op == "MUL" else 0.0013)
    row(op, "int16", [x, i16(1, 4, 5, 6, scale=0.0007)], y, **options)
    row(op, "int16-broadcast", [x, i16(1, 1, 1, 6, scale=0.0007)], y, FusedActivationFunction=RELU, **options)
    other = integers(1, 1, 6, low=-32768, dtype=np.int16, scale=0.002)
    row(op, "int16-constant", [x, other], i16(1, 4, 5, 6, scale=0.003), **options)

for op in ("ADD", "MUL"):
    a, b, y = (
        f32(1, 4, 4, 6, kind="UINT8", scale=(scale,), zero_point=(zero,))
        for scale, zero in ((0.05, 120), (0.03, 0), (0.08, 90))
    )
    row(op, "uint8", [a, b], y, FusedActivationFunction=RELU)

for op, scale, zero in (
    ("LOGISTIC", 1 / 256, -128), ("TANH", 1 / 128, 0), ("HARD_SWISH", 0.04, -100), ("RELU", 0.03, -128),
    ("RELU6", 6 / 255, -128), ("RELU_N1_TO_1", 0.01, 0), ("RELU_0_TO_1", 0.01, 0), ("LEAKY_RELU", 0.05, -90),
):  # fmt: skip
    options = {"Alpha": 0.1} if op == "LEAKY_RELU" else {}
    row(op, "int8", [i8(1, 4, 8, 8)], i8(1, 4, 8, 8, scale=scale, zero=zero), **options)
    row(op, "float", [f32(1, 4, 8, 8)], f32(1, 4, 8, 8), **options)
for op in FUNCTIONS:
    row(op, "float", [f32(1, 4, 8, 8)], f32(1, 4, 8, 8))
for op, name, scale, zero, lsb in (
    ("ABS", "int8", 0.05, -128, 1), ("NEG", "int8", 0.05, -100, 0),
    ("NEG", "scales", 0.07, 3, 0), ("ELU", "int8", 0.04, -100, 1),
):  # fmt: skip
    row(op, name, [i8(1, 4, 8, 8, zero=100)], i8(1, 4, 8, 8, scale=scale, zero=zero), lsb=lsb)
for op in ROOTS:

    @case(op, "float")
    def _(f: FlatFile, op: str = op) -> Any:
        x, e = f.add(1, 4, 8, 8), f.add(1, 4, 8, 8)
        f.operator("EXP", [x], e)
        f.operator(op, [e], y := f.add(1, 4, 8, 8))
        return [x], [y]


for op, name, source, result, options in (
    ("RELU", "", 0.001, 0.0008, {}), ("RELU6", "", 0.001, 0.001, {}),
    ("LOGISTIC", "", 0.0003, TOP, {}), ("TANH", "", 0.0003, TOP, {}),
    ("LOGISTIC", "-power-of-two", 2.0**-11, TOP, {}), ("TANH", "-power-of-two", 2.0**-11, TOP, {}),
    ("LOGISTIC", "-power-of-two-nearly", 0.9998 * 2.0**-12, TOP, {}),
    ("TANH", "-power-of-two-nearly", 0.9998 * 2.0**-12, TOP, {}),
    *(("LEAKY_RELU", f"-{alpha}", 0.001, 0.0011, {"Alpha": alpha}) for alpha in (0.1, -0.3, -0.5)),
    ("ABS", "", 0.001, 0.001, {}), ("ABS", "-scaled", 0.001, 0.0008, {}),
    ("ABS", "-halved", 0.001, 0.002, {}), ("EXP", "", 0.0003, 0.0005, {}),
    ("SOFTMAX", "", 0.0003, TOP, {"Beta": 1.0}), ("SOFTMAX", "-steep", 0.002, TOP, {"Beta": 1.5}),
    ("SOFTMAX", "-flat", 0.000_02, TOP, {"Beta": 1.0}),
):  # fmt: skip
    row(op, f"int16{name}", [i16(1, 30, 40, scale=source)], i16(1, 30, 40, scale=result), **options)
for op, scales, options in (
    ("RELU", (0.000_652_863_94, 0.000_893_883_76), {}),
    ("LEAKY_RELU", (0.000_018_922_412, 0.000_014_670_368), {"Alpha": 0.37}),
):
    x, y = (i16(1, 300, 300, scale=scale) for scale in scales)
    row(op, "int16-of-float32-quotients", [x], y, **options)
for op, scales in (("LOG", (0.0004, 0.0003)), ("RSQRT", (0.02, 0.0005))):

    @case(op, "int16")
    def _(f: FlatFile, op: str = op, scales: Any = scales) -> Any:
        """LiteRT computes these of values that are not negative."""
        x, z, y = (f.int16(1, 60, 70, scale=scales[at]) for at in (0, 0, 1))
        f.operator("ABS", [x], z)
        f.operator(op, [z], y)
        return [x], [y]


for op in ("MINIMUM", "MAXIMUM", "SQUARED_DIFFERENCE"):
    row(op, "pair", [f32(1, 4, 4, 6), f32(1, 4, 4, 6)], f32(1, 4, 4, 6))
for op in ("MINIMUM", "MAXIMUM"):
    one = held(np.int8(20), np.int8, scale=[0.05], zero_point=[-3])
    row(op, "constant", [i8(1, 4, 4, 3), one], i8(1, 4, 4, 3), lsb=0)
    for name, other in (
        ("int8", i8(1, 4, 4, 6)), ("scales", i8(1, 1, 4, 1, scale=0.08)), ("constants", integers(6, zero=-3))
    ):  # fmt: skip
        row(op, name, [i8(1, 4, 4, 6), other], i8(1, 4, 4, 6), lsb=0)
    for name, other in (
        ("", i16(1, 4, 5, 6)), ("-broadcast", i16(1, 1, 5, 1)),
        ("-constant", integers(1, 1, 6, low=-32768, dtype=np.int16, scale=0.001)),
    ):  # fmt: skip
        row(op, f"int16{name}", [i16(1, 4, 5, 6), other], i16(1, 4, 5, 6))

row("SQUARE", "float", [f32(1, 9)], f32(1, 9))
row("POW", "float", [f32(1, 9), held(np.float32(3), np.float32)], f32(1, 9))
row("DIV", "float", [f32(1, 4), held(np.full(4, 3.0), np.float32)], f32(1, 4))
for slopes in ((1, 1, 6), (4, 4, 6), (4, 4, 1), (4, 1, 6)):
    inputs = [i8(1, 4, 4, 6), integers(*slopes, low=-50, scale=0.002, zero=3)]
    row("PRELU", f"int8 {slopes}", inputs, i8(1, 4, 4, 6, scale=0.04, zero=-40))
row("PRELU", "float", [f32(1, 4, 4, 6), floats(1, 1, 6)], f32(1, 4, 4, 6))
for name, beta in (("int8", 1.0), ("beta", 0.5)):
    row("SOFTMAX", name, [i8(1, 12)], i8(1, 12, scale=1 / 256, zero=-128), Beta=beta)
row("SOFTMAX", "float", [f32(1, 3, 12)], f32(1, 3, 12), Beta=2.0)
row("LOG_SOFTMAX", "float", [f32(1, 12)], f32(1, 12))
for approximate in (0, 1):
    row("GELU", f"float-{approximate}", [f32(1, 30)], f32(1, 30), Approximate=approximate)
options = {"FusedActivationFunction": NONE}
row("L2_NORMALIZATION", "float", [f32(1, 4, 6)], f32(1, 4, 6), **options)
row("L2_NORMALIZATION", "int8", [i8(1, 4, 6)], i8(1, 4, 6, scale=1 / 128, zero=0), **options)
# LiteRT's reference kernel leaves out the last neighbour.
options = {"Radius": 2, "Bias": 1.5, "Alpha": 0.3, "Beta": 0.75, "reference": False}
row("LOCAL_RESPONSE_NORMALIZATION", "float", [f32(1, 3, 4, 9)], f32(1, 3, 4, 9), **options)
row("ADD_N", "float", [f32(1, 7)] * 3, f32(1, 7))
for exclusive, backwards in ((0, 0), (1, 1)):
    options = {"Exclusive": exclusive, "Reverse": backwards}
    row("CUMSUM", f"{exclusive}-{backwards}", [f32(1, 4, 6), held(1)], f32(1, 4, 6), **options)
for op in ("FLOOR_DIV", "FLOOR_MOD"):
    for divisor in (0.75, -0.3):
        row(op, f"float{divisor}", [f32(1, 30), held(divisor, np.float32)], f32(1, 30))
    for divisor in (3 << 29, -(3 << 29)):  # a multiple of the divisor below a number may be out of range
        x, y = f32(1, 30, kind="INT32"), f32(1, 30, kind="INT32")
        row(op, f"int32 of the whole range by {divisor}", [x, held(divisor)], y)
    for divisor in (3, -4):

        @case(op, f"int32 by {divisor}")
        def _(f: FlatFile, op: str = op, divisor: int = divisor) -> Any:
            x, ten = f.add(1, 30), f.constant(np.float32(10), np.float32)
            f.operator("MUL", [x, ten], scaled := f.add(1, 30), FusedActivationFunction=NONE)
            f.operator("CAST", [scaled], whole := f.add(1, 30, kind="INT32"))
            f.operator(op, [whole, f.constant(divisor)], z := f.add(1, 30, kind="INT32"))
            f.operator("CAST", [z], y := f.add(1, 30))
            return [x], [y]

    @case(op, "whole quotients")
    def _(f: FlatFile, op: str = op) -> Any:
        """Quotients that are whole numbers if they are rounded to float32."""
        x, by = f.add(1, 30), f.constant(np.float32(0.1), np.float32)
        f.operator("ROUND", [x], whole := f.add(1, 30))
        f.operator(op, [whole, by], y := f.add(1, 30))
        return [x], [y]


# -- element types ------------------------------------------------------------------------------------

row("QUANTIZE", "between-scales", [i8(1, 40)], i8(1, 40, scale=0.07, zero=20))


@case("QUANTIZE", "float-borders")
def _(f: FlatFile) -> Any:
    x, q, w = f.add(1, 8), f.int8(1, 8, scale=0.03, zero=0), f.weights(4, 8)
    f.operator("QUANTIZE", [x], q)
    f.operator("FULLY_CONNECTED", [q, w, f.bias(q, w, 4)], d := f.int8(1, 4, scale=0.1, zero=0))
    f.operator("DEQUANTIZE", [d], y := f.add(1, 4))
    return [x], [y]


@case("QUANTIZE", "int16")
def _(f: FlatFile) -> Any:
    x, y, z, out = f.add(1, 40), f.int16(1, 40), f.int16(1, 40, scale=0.0015), f.int8(1, 40)
    for source, result in ((x, y), (y, z), (z, out)):
        f.operator("QUANTIZE", [source], result)
    return [x], [z, out]


@case("DEQUANTIZE", "int16")
def _(f: FlatFile) -> Any:
    x, y, z = f.int8(1, 40), f.int16(1, 40), f.add(1, 40)
    f.operator("QUANTIZE", [x], y)
    f.operator("DEQUANTIZE", [y], z)
    return [x], [z]


@case("DEQUANTIZE", "float16-weights")
def _(f: FlatFile) -> Any:
    x, half, w = f.add(1, 8), f.constant(f.random.normal(0, 1, (4, 8)), np.float16), f.add(4, 8)
    f.operator("DEQUANTIZE", [half], w)
    f.operator("FULLY_CONNECTED", [x, w, -1], y := f.add(1, 4))
    return [x], [y]


@case("FULLY_CONNECTED", "int4", reference=False)
def _(f: FlatFile) -> Any:
    """Weights of four bits, an odd number of them."""
    x, values = f.int8(1, 9), f.random.integers(-7, 8, (5, 9)).astype(np.int8)
    halves = np.append(values.reshape(-1), np.int8(0)).astype(np.uint8) & 15
    packed = (halves[::2] | halves[1::2] << 4).astype(np.uint8)
    w = f.add(5, 9, kind="INT4", scale=[0.1], zero_point=[0], data=packed)
    b = f.constant(f.random.integers(-200, 200, 5), np.int32, scale=[0.005], zero_point=[0])
    f.operator("FULLY_CONNECTED", [x, w, b], y := f.int8(1, 5, scale=0.5), FusedActivationFunction=NONE)
    return [x], [y]


@case("CAST", "to integers and back")
def _(f: FlatFile) -> Any:
    x = f.add(1, 30)
    f.operator("CAST", [x], whole := f.add(1, 30, kind="INT32"))
    f.operator("CAST", [whole], y := f.add(1, 30))
    return [x], [y]


# -- moved elements -----------------------------------------------------------------------------------

for kind, t in KINDS.items():
    row("CONCATENATION", kind, [t(1, 4, 4, 3), t(1, 4, 4, 5)], t(1, 4, 4, 8), Axis=3)
    row("PAD", kind, [t(1, 4, 4, 3), held([[0, 0], [1, 2], [0, 1], [2, 1]])], t(1, 7, 5, 6))
    row("TRANSPOSE", kind, [t(1, 4, 5, 3), held([0, 2, 1, 3])], t(1, 5, 4, 3))
    ranges = [held(each) for each in ([0, 4, -2, 1], [0, 0, 5, 2], [1, -2, 1, 1])]
    masks = {"BeginMask": 1, "EndMask": 3, "ShrinkAxisMask": 8}
    row("STRIDED_SLICE", kind, [t(1, 6, 5, 3), *ranges], t(1, 3, 2), **masks)
    row("SLICE", kind, [t(1, 6, 5, 3), held([0, 1, 2, 0]), held([1, 3, -1, 3])], t(1, 3, 3, 3))
    row("SPLIT", kind, [held(3), t(1, 6, 5, 4)], [t(1, 6, 5, 2)] * 2, NumSplits=2)
    row("PACK", kind, [t(1, 6)] * 2, t(1, 2, 6), Axis=1, ValuesCount=2)
    row("GATHER", kind, [t(1, 6, 5), held([0, 2, 4])], t(1, 3, 5), Axis=1)
    for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        for mode in ("", "AlignCorners", "HalfPixelCenters"):
            for size in ((9, 8), (3, 2)) if kind == "int16" else ((9, 8),):
                options = {mode: True} if mode else {}
                row(op, f"{kind}-{mode}-{size[0]}", [t(1, 5, 4, 3), held(size)], t(1, *size, 3), **options)

row("TRANSPOSE", "int16-channels", [i16(1, 4, 5, 3), held([0, 3, 2, 1])], i16(1, 3, 5, 4))
row("GATHER", "int16-rows", [i16(6, 5), held([4, 0, 0, 3])], i16(4, 5), Axis=0, BatchDims=0)
row("RESHAPE", "int16", [i16(1, 4, 6), held([1, 24])], i16(1, 24))

for kind, t in TWO_KINDS.items():
    parts = [t(1, 6, 5, 1), t(1, 6, 5, 3)]
    row("SPLIT_V", kind, [t(1, 6, 5, 4), held([1, 3]), held(3)], parts, NumSplits=2)
    row("UNPACK", kind, [t(1, 2, 6)], [t(1, 6)] * 2, Axis=1, Num=2)
    row("DEPTH_TO_SPACE", kind, [t(1, 3, 4, 12)], t(1, 6, 8, 3), BlockSize=2)
    row("SPACE_TO_DEPTH", kind, [t(1, 6, 8, 3)], t(1, 3, 4, 12), BlockSize=2)
    for mode, name in enumerate(("reflect", "symmetric")):
        pads = held([[0, 0], [2, 1], [1, 3], [0, 0]])
        row("MIRROR_PAD", f"{kind}-{name}", [t(1, 4, 5, 3), pads], t(1, 7, 9, 3), Mode=mode)
    row("REVERSE_V2", kind, [t(1, 4, 5, 3), held([1])], t(1, 4, 5, 3))
    row("TILE", kind, [t(1, 2, 3, 2), held([1, 2, 1, 3])], t(1, 4, 3, 6))
    row("BROADCAST_TO", kind, [t(1, 1, 3, 2), held([1, 4, 3, 2])], t(1, 4, 3, 2))
    block = held([2, 2])
    row("SPACE_TO_BATCH_ND", kind, [t(1, 5, 6, 3), block, held([[1, 2], [0, 2]])], t(4, 4, 4, 3))
    row("BATCH_TO_SPACE_ND", kind, [t(4, 3, 4, 3), block, held([[1, 0], [0, 2]])], t(1, 5, 6, 3))
    for op in ("ARG_MAX", "ARG_MIN"):
        row(op, kind, [t(1, 5, 9), held(2)], f32(1, 5, kind="INT32"), OutputType=2)
    row("GATHER_ND", f"{kind}-constant", [t(4, 3, 5), held([[0, 2], [3, 1]])], t(2, 5))
    row("TOPK_V2", kind, [t(3, 9), held(4)], [t(3, 4), f32(3, 4, kind="INT32")])

    @case("RESHAPE", kind)
    def reshape(f: FlatFile, t: Any = t) -> Any:
        x, r, e, y = (t(*it).add(f, ()) for it in ((1, 4, 4, 3), (1, 16, 3), (1, 1, 16, 3), (1, 1, 16, 3)))
        f.operator("RESHAPE", [x, f.constant([-1, 16, 3])], r)
        f.operator("EXPAND_DIMS", [r, f.constant([1])], e)
        f.operator("MAX_POOL_2D", [e], y, FilterHeight=1, FilterWidth=3, **window(SAME, 1, dilation=None))
        return [x], [y]

    case("EXPAND_DIMS", kind)(reshape)

    @case("SQUEEZE", kind)
    def _(f: FlatFile, t: Any = t) -> Any:
        x, m, y = (t(*it).add(f, ()) for it in ((1, 4, 4, 3), (1, 1, 1, 3), (3,)))
        f.operator("MEAN", [x, f.constant([1, 2])], m, KeepDims=True)
        f.operator("SQUEEZE", [m], y)
        return [x], [y]

    @case("SPACE_TO_BATCH_ND", f"{kind}-dilation")
    def _(f: FlatFile, kind: str = kind, t: Any = t) -> Any:
        """A convolution with a dilation of 5 rows and 4 columns, and more padding than cropping."""
        x, a, block = t(1, 8, 9, 2).add(f, ()), t(20, 4, 5, 2).add(f, ()), f.constant([5, 4])
        pads, crops = f.constant([[5, 7], [4, 7]]), f.constant([[1, 2], [0, 3]])
        f.operator("SPACE_TO_BATCH_ND", [x, block, pads], a)
        if kind == "int8":
            w = f.weights(3, 3, 3, 2)
            b, made = f.bias(x, w, 3), [f.int8(20, 2, 3, 3, scale=0.5), f.int8(1, 7, 9, 3, scale=0.5)]
        else:
            w, b, made = f.floats(3, 3, 3, 2), f.floats(3), [f.add(20, 2, 3, 3), f.add(1, 7, 9, 3)]
        f.operator("CONV_2D", [a, w, b], made[0], **window(VALID, 1))
        f.operator("BATCH_TO_SPACE_ND", [made[0], block, crops], made[1])
        return [x], [made[1]]

    for name, shape, batch in (("computed", (6, 5), 0), ("batch", (1, 6, 5), 1)):

        @case("GATHER", f"{kind}-{name}")
        def _(f: FlatFile, t: Any = t, shape: Any = shape, batch: int = batch) -> Any:
            """Indices that are the positions of the largest values."""
            x, table, y = f.add(1, 4, 6), t(*shape).add(f, ()), t(1, 4, 5).add(f, ())
            f.operator("GATHER", [table, largest(f, x, 2, 1, 4)], y, Axis=batch, BatchDims=batch)
            return [x, table], [y]


for shape in ((1, 2, 4, 5, 3), (1, 1, 1, 1, 1)):
    amounts = np.array([[0, 0], [1, 1], [1, 2], [3, 0], [0, 0]], np.int32)
    y = i8(*(np.array(shape) + amounts.sum(axis=1)).tolist())
    row("PAD", f"three axes of {shape}", [i8(*shape), held(amounts)], y, lsb=0)
value = held(np.int8(-50), np.int8, scale=[0.05], zero_point=[-3])
row("PADV2", "int8", [i8(1, 4, 4, 3), held([[0, 0], [1, 2], [0, 1], [0, 0]]), value], i8(1, 7, 5, 3))
a, b, y = (f32(1, size, kind="INT8") for size in (5, 3, 8))
row("CONCATENATION", "plain int8", [a, b], y, lsb=0, Axis=1)
inputs = [f32(3, 5, 4), held([3, 1, 4])]
row("REVERSE_SEQUENCE", "float", inputs, f32(3, 5, 4), SeqDim=1, BatchDim=0)
row("REVERSE_SEQUENCE", "last axis", [f32(3, 2, 5), held([3, 4])], f32(3, 2, 5), SeqDim=2, BatchDim=1)


def largest(f: FlatFile, x: int, axis: int, *shape: int) -> int:
    return f.operator("ARG_MAX", [x, f.constant(axis)], f.add(*shape, kind="INT32"), OutputType=2)


@case("EMBEDDING_LOOKUP", "float")
def _(f: FlatFile) -> Any:
    x, table = f.add(4, 6), f.floats(6, 5)
    f.operator("EMBEDDING_LOOKUP", [largest(f, x, 1, 4), table], y := f.add(4, 5))
    return [x], [y]


for axis, made in ((-1, (1, 4, 5)), (1, (1, 5, 4))):

    @case("ONE_HOT", f"axis {axis}")
    def _(f: FlatFile, axis: int = axis, made: Any = made) -> Any:
        x, depth = f.add(1, 4, 6), f.constant(5)
        on, off = (f.constant(np.float32(value), np.float32) for value in (2, -1))
        f.operator("ONE_HOT", [largest(f, x, 2, 1, 4), depth, on, off], y := f.add(*made), Axis=axis)
        return [x], [y]


@case("SCATTER_ND", "float")
def _(f: FlatFile) -> Any:
    """Two updates of the same row."""
    x, at, shape = f.add(3, 4), f.constant([[4], [1], [4]]), f.constant([6, 4])
    f.operator("SCATTER_ND", [at, x, shape], y := f.add(6, 4))
    return [x], [y]


@case("FILL", "float")
def _(f: FlatFile) -> Any:
    x = f.add(1, 4)
    f.operator("FILL", [f.constant([1, 4]), f.constant(np.float32(3), np.float32)], c := f.add(1, 4))
    f.operator("SUB", [x, c], y := f.add(1, 4), FusedActivationFunction=NONE)
    return [x], [y]


# -- comparisons --------------------------------------------------------------------------------------

for op in ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"):

    @case(op, "float")
    def _(f: FlatFile, op: str = op) -> Any:
        """The positive values, or those that ReLU sets to zero."""
        x, zero = f.add(1, 6, 5), f.constant(np.float32(0), np.float32)
        f.operator("RELU", [x], r := f.add(1, 6, 5))
        f.operator(op, [zero, r] if op == "GREATER_EQUAL" else [r, zero], c := f.add(1, 6, 5, kind="BOOL"))
        f.operator("SELECT_V2", [c, x, f.constant(np.float32(2), np.float32)], y := f.add(1, 6, 5))
        if op == "LESS":  # nothing is below zero
            f.operator(op, [x, zero], d := f.add(1, 6, 5, kind="BOOL"))
            f.operator("SELECT", [d, x, y], z := f.add(1, 6, 5))
            return [x], [z]
        return [x], [y]


for op in ("SELECT", "SELECT_V2"):

    @case(op, "int8")
    def _(f: FlatFile, op: str = op) -> Any:
        x, y = f.int8(1, 6, 5), f.int8(1, 6, 5)
        f.operator("GREATER", [x, y], c := f.add(1, 6, 5, kind="BOOL"))
        f.operator(op, [c, y, x], z := f.int8(1, 6, 5))
        return [x, y], [z]


for op in ("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"):

    @case(op, "float")
    def _(f: FlatFile, op: str = op) -> Any:
        x, y = f.add(1, 6, 5), f.add(1, 6, 5)
        zero = f.constant(np.float32(0), np.float32)
        f.operator("GREATER", [x, zero], a := f.add(1, 6, 5, kind="BOOL"))
        f.operator("GREATER", [y, zero], b := f.add(1, 6, 5, kind="BOOL"))
        f.operator(op, [a] if op == "LOGICAL_NOT" else [a, b], c := f.add(1, 6, 5, kind="BOOL"))
        f.operator("SELECT_V2", [c, x, y], z := f.add(1, 6, 5))
        return [x, y], [z]


for op in ("REDUCE_ALL", "REDUCE_ANY"):

    @case(op, "float")
    def _(f: FlatFile, op: str = op) -> Any:
        x, zero = f.add(1, 16, 3), f.constant(np.float32(0), np.float32)
        f.operator("GREATER", [x, zero], c := f.add(1, 16, 3, kind="BOOL"))
        f.operator(op, [c, f.constant([2])], d := f.add(1, 16, kind="BOOL"), KeepDims=False)
        f.operator("CAST", [d], y := f.add(1, 16))
        return [x], [y]


# -- states, spectra ----------------------------------------------------------------------------------

for name, options in (("float", {}), ("int8", {"int8": True})):
    case("UNIDIRECTIONAL_SEQUENCE_LSTM", name)(partial(lstm, **options))
for name, options in (("float", {}), ("integer", {"state": "INT16"})):
    case("SVDF", name)(partial(svdf, **options))

for name, shape, lengths in (
    ("float", (3, 1, 32), (1, 32)), ("float-filled", (2, 3, 24), (4, 32)), ("float-cut", (2, 5, 40), (2, 16))
):  # fmt: skip

    @case("RFFT2D", name)
    def _(f: FlatFile, shape: Any = shape, lengths: Any = lengths) -> Any:
        made = (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
        x, size, y = f.add(*shape), f.constant(lengths), f.add(prod(made))
        f.operator("RFFT2D", [x, size], spectrum := f.add(*made, kind="COMPLEX64"))
        flat = f.add(prod(made), kind="COMPLEX64")
        f.operator("RESHAPE", [spectrum, f.constant([prod(made)])], flat)
        f.operator("COMPLEX_ABS", [flat], y)
        return [x], [y]


for op in ("REAL", "IMAG", "COMPLEX_ABS"):

    @case(op, "float")
    def _(f: FlatFile, op: str = op) -> Any:
        x = f.add(2, 1, 16)
        f.operator("RFFT2D", [x, f.constant([1, 16])], spectrum := f.add(2, 1, 9, kind="COMPLEX64"))
        f.operator(op, [spectrum], y := f.add(2, 1, 9))
        return [x], [y]


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
