"""A small .tflite file for every operator of int16 activations and its ways; weights are int8."""

from __future__ import annotations

from typing import Any

import numpy as np
from flat_cases import case, window
from flat_files import NONE, RELU, RELU6, RELU_N1_TO_1, SAME, VALID, FlatFile

_ONE = 2.0**-15


def int16(f: FlatFile, *shape: int, scale: float = 0.001) -> int:
    return f.add(*shape, kind="INT16", scale=(scale,), zero_point=(0,))


def bias(f: FlatFile, x: int, weights: int, count: int, dtype: Any = np.int64) -> int:
    scales = np.float32(f.tensors[x].scale[0]) * np.asarray(f.tensors[weights].scale, np.float32)
    array = f.random.integers(-300_000, 300_000, count)
    return f.constant(array, dtype, scale=scales, zero_point=[0] * len(scales))


def convolutions() -> None:
    for padding, stride, dilation, act in (
        (SAME, 1, 1, RELU), (SAME, 2, 1, RELU6), (VALID, 1, 2, NONE), (VALID, 2, 1, RELU_N1_TO_1)
    ):  # fmt: skip
        name = f"int16-{'same' if padding == SAME else 'valid'}-{stride}-{dilation}"
        size = -(-9 // stride) if padding == SAME else (9 - 2 * dilation - 1) // stride + 1

        def conv(f: FlatFile, size: int = size, args: Any = (padding, stride, act, dilation)) -> Any:
            x, w = int16(f, 1, 9, 9, 6), f.weights(8, 3, 3, 6)
            y = int16(f, 1, size, size, 8, scale=0.004)
            f.operator("CONV_2D", [x, w, bias(f, x, w, 8)], y, **window(*args))
            return [x], [y]

        def depthwise(f: FlatFile, size: int = size, args: Any = (padding, stride, act, dilation)) -> Any:
            x, w = int16(f, 1, 9, 9, 5), f.weights(1, 3, 3, 5, axis=3)
            y = int16(f, 1, size, size, 5, scale=0.002)
            options = {**window(*args), "DepthMultiplier": 1}
            f.operator("DEPTHWISE_CONV_2D", [x, w, bias(f, x, w, 5)], y, **options)
            return [x], [y]

        case("CONV_2D", name, lsb=0, oracle=False)(conv)
        case("DEPTHWISE_CONV_2D", name, lsb=0, oracle=False)(depthwise)


convolutions()


@case("CONV_2D", "int16-bias-32", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, w, y = int16(f, 1, 5, 5, 4), f.weights(3, 1, 1, 4, axis=None), int16(f, 1, 5, 5, 3, scale=0.003)
    f.operator("CONV_2D", [x, w, bias(f, x, w, 3, np.int32)], y, **window(VALID, 1), QuantizedBiasType=2)
    return [x], [y]


@case("CONV_2D", "int16-groups", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, w, y = int16(f, 1, 5, 5, 6), f.weights(4, 3, 3, 3), int16(f, 1, 5, 5, 4, scale=0.003)
    f.operator("CONV_2D", [x, w, bias(f, x, w, 4)], y, **window(SAME, 1))
    return [x], [y]


@case("CONV_2D", "int16-large-scale", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, w, y = int16(f, 1, 5, 5, 2), f.weights(5, 1, 1, 2), int16(f, 1, 5, 5, 5, scale=0.000_01)
    f.operator("CONV_2D", [x, w, bias(f, x, w, 5)], y, **window(VALID, 1))
    return [x], [y]


@case("DEPTHWISE_CONV_2D", "int16-multiplied", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, w, y = int16(f, 1, 6, 6, 3), f.weights(1, 3, 3, 6, axis=3), int16(f, 1, 6, 6, 6, scale=0.002)
    f.operator("DEPTHWISE_CONV_2D", [x, w, bias(f, x, w, 6)], y, **window(SAME, 1), DepthMultiplier=2)
    return [x], [y]


@case("FULLY_CONNECTED", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, w, y = int16(f, 1, 3, 4), f.weights(7, 12, axis=None), int16(f, 1, 7, scale=0.004)
    f.operator("FULLY_CONNECTED", [x, w, bias(f, x, w, 7)], y, FusedActivationFunction=RELU)
    return [x], [y]


@case("FULLY_CONNECTED", "int16-deep", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, w, y = int16(f, 3, 1203), f.weights(6, 1203), int16(f, 3, 6, scale=0.04)
    f.operator("FULLY_CONNECTED", [x, w, -1], y)
    return [x], [y]


def sums() -> None:
    for op in ("ADD", "SUB", "MUL"):
        for name, other, act in (("", (1, 4, 5, 6), NONE), ("-broadcast", (1, 1, 1, 6), RELU)):

            def binary(f: FlatFile, op: str = op, other: Any = other, act: int = act) -> Any:
                a, b = int16(f, 1, 4, 5, 6), int16(f, *other, scale=0.0007)
                y = int16(f, 1, 4, 5, 6, scale=0.0013 if op != "MUL" else 0.002)
                pot = {} if op == "MUL" else {"PotScaleInt16": False}
                f.operator(op, [a, b], y, FusedActivationFunction=act, **pot)
                return [a, b], [y]

            case(op, f"int16{name}", lsb=0, oracle=False)(binary)

        def constant(f: FlatFile, op: str = op) -> Any:
            array = f.random.integers(-32768, 32768, (1, 1, 6))
            a, b = int16(f, 1, 4, 5, 6), f.constant(array, np.int16, scale=(0.002,), zero_point=(0,))
            y = int16(f, 1, 4, 5, 6, scale=0.003)
            pot = {} if op == "MUL" else {"PotScaleInt16": False}
            f.operator(op, [a, b], y, **pot)
            return [a], [y]

        case(op, "int16-constant", lsb=0, oracle=False)(constant)


sums()


def functions() -> None:
    for op, scales in (
        ("RELU", (0.001, 0.0008)), ("RELU6", (0.001, 0.001)),
        ("LOGISTIC", (0.0003, _ONE)), ("TANH", (0.0003, _ONE)),
    ):  # fmt: skip

        def function(f: FlatFile, op: str = op, scales: Any = scales) -> Any:
            x, y = int16(f, 1, 9, 40, scale=scales[0]), int16(f, 1, 9, 40, scale=scales[1])
            f.operator(op, [x], y)
            return [x], [y]

        case(op, "int16", lsb=0, oracle=False)(function)
    for op in ("LOGISTIC", "TANH"):
        for name, scale in (("", 2.0**-11), ("-nearly", 0.9998 * 2.0**-12)):

            def of_power(f: FlatFile, op: str = op, scale: float = scale) -> Any:
                x, y = int16(f, 1, 9, 40, scale=scale), int16(f, 1, 9, 40, scale=_ONE)
                f.operator(op, [x], y)
                return [x], [y]

            case(op, f"int16-power-of-two{name}", lsb=0, oracle=False)(of_power)
    for alpha in (0.1, -0.3, -0.5):

        def leaky(f: FlatFile, alpha: float = alpha) -> Any:
            x, y = int16(f, 1, 9, 40), int16(f, 1, 9, 40, scale=0.0011)
            f.operator("LEAKY_RELU", [x], y, Alpha=alpha)
            return [x], [y]

        case("LEAKY_RELU", f"int16-{alpha}", lsb=0, oracle=False)(leaky)


functions()


def softmaxes() -> None:
    for name, scale, beta in (("", 0.0003, 1.0), ("-steep", 0.002, 1.5), ("-flat", 0.000_02, 1.0)):

        def softmax(f: FlatFile, scale: float = scale, beta: float = beta) -> Any:
            x, y = int16(f, 1, 30, 12, scale=scale), int16(f, 1, 30, 12, scale=_ONE)
            f.operator("SOFTMAX", [x], y, Beta=beta)
            return [x], [y]

        case("SOFTMAX", f"int16{name}", lsb=0, oracle=False)(softmax)


softmaxes()


def pools() -> None:
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        for name, padding, act in (("same", SAME, NONE), ("valid", VALID, RELU6)):

            def pool(f: FlatFile, op: str = op, padding: int = padding, act: int = act) -> Any:
                size = 4 if padding == SAME else 3
                x, y = int16(f, 1, 7, 7, 5, scale=0.0004), int16(f, 1, size, size, 5, scale=0.0004)
                options = {"Padding": padding, "StrideH": 2, "StrideW": 2, "FusedActivationFunction": act}
                f.operator(op, [x], y, **options, FilterHeight=3, FilterWidth=3)
                return [x], [y]

            case(op, f"int16-{name}", lsb=0, oracle=False)(pool)


pools()


@case("RESHAPE", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, y = int16(f, 1, 4, 6), int16(f, 1, 24)
    f.operator("RESHAPE", [x, f.constant([1, 24])], y)
    return [x], [y]


@case("QUANTIZE", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, y, z, out = f.add(1, 40), int16(f, 1, 40), int16(f, 1, 40, scale=0.0015), f.int8(1, 40)
    f.operator("QUANTIZE", [x], y)
    f.operator("QUANTIZE", [y], z)
    f.operator("QUANTIZE", [z], out)
    return [x], [z, out]


@case("DEQUANTIZE", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, y, z = f.int8(1, 40), int16(f, 1, 40), f.add(1, 40)
    f.operator("QUANTIZE", [x], y)
    f.operator("DEQUANTIZE", [y], z)
    return [x], [z]


def transposed() -> None:
    for name, taps, stride, dtype in (
        ("", 3, 2, np.int64),
        ("-bias-32", 4, 2, np.int32),
        ("-plain", 3, 1, None),
    ):

        def upsampled(f: FlatFile, args: Any = (taps, stride, dtype)) -> Any:
            taps, stride, dtype = args
            x, w = int16(f, 1, 4, 5, 3), f.weights(6, taps, taps, 3)
            y = int16(f, 1, 4 * stride, 5 * stride, 6, scale=0.003)
            shape = f.constant([1, 4 * stride, 5 * stride, 6])
            inputs = [shape, w, x, *([] if dtype is None else [bias(f, x, w, 6, dtype)])]
            kind = {} if dtype is not np.int32 else {"QuantizedBiasType": 2}
            f.operator("TRANSPOSE_CONV", inputs, y, Padding=SAME, StrideH=stride, StrideW=stride, **kind)
            return [x], [y]

        case("TRANSPOSE_CONV", f"int16{name}", lsb=0, oracle=False)(upsampled)


transposed()


def means() -> None:
    for name, axes, keep, shape in (
        ("-image", [1, 2], True, (1, 1, 1, 6)),
        ("-rows", [1], False, (1, 5, 6)),
        ("-channels", [3], False, (1, 7, 5)), ("-batch", [0], False, (7, 5, 6)),
    ):  # fmt: skip

        def mean(f: FlatFile, args: Any = (axes, keep, shape)) -> Any:
            axes, keep, shape = args
            x, y = int16(f, 1, 7, 5, 6), int16(f, *shape, scale=0.0004)
            f.operator("MEAN", [x, f.constant(axes)], y, KeepDims=keep)
            return [x], [y]

        case("MEAN", f"int16{name}", lsb=0, oracle=False)(mean)


means()


@case("PAD", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, y = int16(f, 1, 4, 5, 3), int16(f, 1, 7, 5, 6)
    f.operator("PAD", [x, f.constant([[0, 0], [1, 2], [0, 0], [2, 1]])], y)
    return [x], [y]


@case("CONCATENATION", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    a, b, y = int16(f, 1, 4, 5, 3), int16(f, 1, 4, 5, 2), int16(f, 1, 4, 5, 5)
    f.operator("CONCATENATION", [a, b], y, Axis=3)
    return [a, b], [y]


def resized() -> None:
    for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        for name, options in (
            ("", {}),
            ("-aligned", {"AlignCorners": True}),
            ("-halves", {"HalfPixelCenters": True}),
        ):
            for size in ((7, 9), (3, 2)):

                def resize(f: FlatFile, args: Any = (op, options, size)) -> Any:
                    op, options, size = args
                    x, y = int16(f, 1, 4, 5, 3), int16(f, 1, *size, 3)
                    f.operator(op, [x, f.constant(size)], y, **options)
                    return [x], [y]

                case(op, f"int16{name}-{size[0]}", lsb=0, oracle=False)(resize)


resized()


@case("TRANSPOSE", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, y = int16(f, 1, 4, 5, 3), int16(f, 1, 3, 5, 4)
    f.operator("TRANSPOSE", [x, f.constant([0, 3, 2, 1])], y)
    return [x], [y]


@case("STRIDED_SLICE", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, y = int16(f, 1, 6, 5, 7), int16(f, 1, 3, 4, 3)
    ranges = [f.constant(each) for each in ([0, 0, 1, 1], [1, 6, 5, 7], [1, 2, 1, 2])]
    f.operator(
        "STRIDED_SLICE",
        [x, *ranges],
        y,
        BeginMask=0,
        EndMask=0,
        EllipsisMask=0,
        NewAxisMask=0,
        ShrinkAxisMask=0,
    )
    return [x], [y]


@case("SLICE", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, y = int16(f, 1, 6, 5, 7), int16(f, 1, 3, 5, 4)
    f.operator("SLICE", [x, f.constant([0, 1, 0, 2]), f.constant([1, 3, 5, 4])], y)
    return [x], [y]


@case("SPLIT", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, parts = int16(f, 1, 6, 5, 8), [int16(f, 1, 6, 5, 4) for _ in range(2)]
    f.operator("SPLIT", [f.constant([3]), x], parts, NumSplits=2)
    return [x], parts


@case("PACK", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    a, b, y = int16(f, 1, 5, 3), int16(f, 1, 5, 3), int16(f, 1, 2, 5, 3)
    f.operator("PACK", [a, b], y, Axis=1, ValuesCount=2)
    return [a, b], [y]


@case("GATHER", "int16", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, y = int16(f, 6, 5), int16(f, 4, 5)
    f.operator("GATHER", [x, f.constant([4, 0, 0, 3])], y, Axis=0, BatchDims=0)
    return [x], [y]


@case("RELU", "int16-of-float32-quotients", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, y = int16(f, 1, 300, 300, scale=0.000_652_863_94), int16(f, 1, 300, 300, scale=0.000_893_883_76)
    f.operator("RELU", [x], y)
    return [x], [y]


@case("LEAKY_RELU", "int16-of-float32-quotients", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    x, y = int16(f, 1, 300, 300, scale=0.000_018_922_412), int16(f, 1, 300, 300, scale=0.000_014_670_368)
    f.operator("LEAKY_RELU", [x], y, Alpha=0.37)
    return [x], [y]


def magnitudes() -> None:
    for name, scale in (("", 0.001), ("-scaled", 0.0008), ("-halved", 0.002)):

        def absolute(f: FlatFile, scale: float = scale) -> Any:
            x, y = int16(f, 1, 9, 40), int16(f, 1, 9, 40, scale=scale)
            f.operator("ABS", [x], y)
            return [x], [y]

        case("ABS", f"int16{name}", lsb=0, oracle=False)(absolute)


magnitudes()


def tables() -> None:
    for op, scales in (("EXP", (0.0003, 0.0005)), ("LOG", (0.0004, 0.0003)), ("RSQRT", (0.02, 0.0005))):

        def table(f: FlatFile, op: str = op, scales: Any = scales) -> Any:
            """LiteRT computes LOG and RSQRT of values that are not negative."""
            x, y = int16(f, 1, 60, 70, scale=scales[0]), int16(f, 1, 60, 70, scale=scales[1])
            if op == "EXP":
                f.operator(op, [x], y)
                return [x], [y]
            f.operator("ABS", [x], z := int16(f, 1, 60, 70, scale=scales[0]))
            f.operator(op, [z], y)
            return [x], [y]

        case(op, "int16", lsb=0, oracle=False)(table)


tables()


def extremes() -> None:
    for op in ("MAXIMUM", "MINIMUM"):
        for name, other in (("", (1, 4, 5, 6)), ("-broadcast", (1, 1, 5, 1))):

            def extremum(f: FlatFile, op: str = op, other: Any = other) -> Any:
                a, b, y = int16(f, 1, 4, 5, 6), int16(f, *other), int16(f, 1, 4, 5, 6)
                f.operator(op, [a, b], y)
                return [a, b], [y]

            case(op, f"int16{name}", lsb=0, oracle=False)(extremum)

        def constant(f: FlatFile, op: str = op) -> Any:
            array = f.random.integers(-32768, 32768, (1, 1, 6))
            a, b = int16(f, 1, 4, 5, 6), f.constant(array, np.int16, scale=(0.001,), zero_point=(0,))
            f.operator(op, [a, b], y := int16(f, 1, 4, 5, 6))
            return [a], [y]

        case(op, "int16-constant", lsb=0, oracle=False)(constant)


extremes()


def products() -> None:
    for name, x, y, scale in (
        ("", (1, 6, 8), (1, 8, 5), 0.000_5),
        ("-heads", (1, 3, 6, 8), (1, 3, 8, 5), 0.000_5),
        ("-transposed", (1, 8, 6), (1, 5, 8), 0.000_5),
        ("-transposed-heads", (1, 3, 6, 80), (1, 3, 5, 80), 0.000_05),
    ):

        def product(f: FlatFile, name: str = name, args: Any = (x, y, scale)) -> Any:
            x, y, scale = args
            swapped, second = name == "-transposed", "transposed" in name
            shape = (*x[:-2], x[-1] if swapped else x[-2], y[-2] if second else y[-1])
            a, b, c = int16(f, *x), int16(f, *y, scale=0.0007), int16(f, *shape, scale=scale)
            f.operator("BATCH_MATMUL", [a, b], c, AdjX=swapped, AdjY=second)
            return [a, b], [c]

        case("BATCH_MATMUL", f"int16{name}", lsb=0, oracle=False)(product)

    for name, x, w, flags in (
        ("-constant", (1, 6, 80), (80, 5), {}),
        ("-constant-transposed", (2, 80, 6), (1, 5, 80), {"AdjX": True, "AdjY": True}),
    ):

        def by_constant(f: FlatFile, args: Any = (x, w, flags)) -> Any:
            x, w, flags = args
            a, b = int16(f, *x), f.weights(*w, axis=None)
            c = int16(f, x[0], 6, 5, scale=0.005)
            f.operator("BATCH_MATMUL", [a, b], c, **flags)
            return [a], [c]

        case("BATCH_MATMUL", f"int16{name}", lsb=0, oracle=False)(by_constant)


products()
