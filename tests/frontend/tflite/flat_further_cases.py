"""Files of operators that ONNX has in another form."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from flat_cases import NONE, case, window
from flat_files import VALID, FlatFile

INT8, FLOAT = "int8", "float"


def image(f: FlatFile, kind: str, *shape: int) -> int:
    """An activation; int8 ones have one scale, as moved elements keep theirs."""
    return f.int8(*shape) if kind == INT8 else f.add(*shape)


for each in (INT8, FLOAT):
    for mode, name in enumerate(("reflect", "symmetric")):

        @case("MIRROR_PAD", f"{each}-{name}")
        def _(f: FlatFile, kind: str = each, mode: int = mode) -> Any:
            x, pads = image(f, kind, 1, 4, 5, 3), f.constant([[0, 0], [2, 1], [1, 3], [0, 0]])
            f.operator("MIRROR_PAD", [x, pads], y := image(f, kind, 1, 7, 9, 3), Mode=mode)
            return [x], [y]

    @case("REVERSE_V2", each)
    def _(f: FlatFile, kind: str = each) -> Any:
        x = image(f, kind, 1, 4, 5, 3)
        f.operator("REVERSE_V2", [x, f.constant([1])], y := image(f, kind, 1, 4, 5, 3))
        return [x], [y]

    @case("TILE", each)
    def _(f: FlatFile, kind: str = each) -> Any:
        x = image(f, kind, 1, 2, 3, 2)
        f.operator("TILE", [x, f.constant([1, 2, 1, 3])], y := image(f, kind, 1, 4, 3, 6))
        return [x], [y]

    @case("BROADCAST_TO", each)
    def _(f: FlatFile, kind: str = each) -> Any:
        x = image(f, kind, 1, 1, 3, 2)
        f.operator("BROADCAST_TO", [x, f.constant([1, 4, 3, 2])], y := image(f, kind, 1, 4, 3, 2))
        return [x], [y]

    @case("SPACE_TO_BATCH_ND", each)
    def _(f: FlatFile, kind: str = each) -> Any:
        x, block, pads = image(f, kind, 1, 5, 6, 3), f.constant([2, 2]), f.constant([[1, 2], [0, 2]])
        f.operator("SPACE_TO_BATCH_ND", [x, block, pads], y := image(f, kind, 4, 4, 4, 3))
        return [x], [y]

    @case("BATCH_TO_SPACE_ND", each)
    def _(f: FlatFile, kind: str = each) -> Any:
        x, block, crops = image(f, kind, 4, 3, 4, 3), f.constant([2, 2]), f.constant([[1, 0], [0, 2]])
        f.operator("BATCH_TO_SPACE_ND", [x, block, crops], y := image(f, kind, 1, 5, 6, 3))
        return [x], [y]

    @case("SPACE_TO_BATCH_ND", f"{each}-dilation")
    def _(f: FlatFile, kind: str = each) -> Any:
        """A convolution with a dilation of 5 rows and 4 columns, and more padding than cropping."""
        x, block = image(f, kind, 1, 8, 9, 2), f.constant([5, 4])
        pads, crops = f.constant([[5, 7], [4, 7]]), f.constant([[1, 2], [0, 3]])
        f.operator("SPACE_TO_BATCH_ND", [x, block, pads], a := image(f, kind, 20, 4, 5, 2))
        if kind == INT8:
            w = f.weights(3, 3, 3, 2)
            b, made = f.bias(x, w, 3), [f.int8(20, 2, 3, 3, scale=0.5), f.int8(1, 7, 9, 3, scale=0.5)]
        else:
            w, b = (f.constant(f.random.normal(size=it), np.float32) for it in ((3, 3, 3, 2), 3))
            made = [f.add(20, 2, 3, 3), f.add(1, 7, 9, 3)]
        f.operator("CONV_2D", [a, w, b], made[0], **window(VALID, 1))
        f.operator("BATCH_TO_SPACE_ND", [made[0], block, crops], made[1])
        return [x], [made[1]]

    for op in ("ARG_MAX", "ARG_MIN"):

        @case(op, each, oracle=False)
        def _(f: FlatFile, op: str = op, kind: str = each) -> Any:
            x, y = image(f, kind, 1, 5, 9), f.add(1, 5, kind="INT32")
            f.operator(op, [x, f.constant(2)], y, OutputType=2)
            return [x], [y]


for op in ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"):

    @case(op, FLOAT, oracle=False)
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

    @case(op, INT8, oracle=False)
    def _(f: FlatFile, op: str = op) -> Any:
        x, y = f.int8(1, 6, 5), f.int8(1, 6, 5)
        f.operator("GREATER", [x, y], c := f.add(1, 6, 5, kind="BOOL"))
        f.operator(op, [c, y, x], z := f.int8(1, 6, 5))
        return [x, y], [z]


for op in ("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"):

    @case(op, FLOAT, oracle=False)
    def _(f: FlatFile, op: str = op) -> Any:
        x, y = f.add(1, 6, 5), f.add(1, 6, 5)
        zero = f.constant(np.float32(0), np.float32)
        f.operator("GREATER", [x, zero], a := f.add(1, 6, 5, kind="BOOL"))
        f.operator("GREATER", [y, zero], b := f.add(1, 6, 5, kind="BOOL"))
        f.operator(op, [a] if op == "LOGICAL_NOT" else [a, b], c := f.add(1, 6, 5, kind="BOOL"))
        f.operator("SELECT_V2", [c, x, y], z := f.add(1, 6, 5))
        return [x, y], [z]


@case("CAST", "to integers and back", oracle=False)
def _(f: FlatFile) -> Any:
    x = f.add(1, 30)
    f.operator("CAST", [x], whole := f.add(1, 30, kind="INT32"))
    f.operator("CAST", [whole], y := f.add(1, 30))
    return [x], [y]


@case("ADD_N", FLOAT)
def _(f: FlatFile) -> Any:
    sources = [f.add(1, 7) for _ in range(3)]
    f.operator("ADD_N", sources, y := f.add(1, 7))
    return sources, [y]


for exclusive, backwards in ((0, 0), (1, 1)):

    @case("CUMSUM", f"{exclusive}-{backwards}")
    def _(f: FlatFile, how: Any = (exclusive, backwards)) -> Any:
        x, axis = f.add(1, 4, 6), f.constant(1)
        f.operator("CUMSUM", [x, axis], y := f.add(1, 4, 6), Exclusive=how[0], Reverse=how[1])
        return [x], [y]


@case("FILL", FLOAT)
def _(f: FlatFile) -> Any:
    x = f.add(1, 4)
    f.operator("FILL", [f.constant([1, 4]), f.constant(np.float32(3), np.float32)], c := f.add(1, 4))
    f.operator("SUB", [x, c], y := f.add(1, 4), FusedActivationFunction=NONE)
    return [x], [y]


for op in ("FLOOR_DIV", "FLOOR_MOD"):
    for divisor in (0.75, -0.3):

        @case(op, f"float{divisor}", oracle=False)
        def _(f: FlatFile, op: str = op, divisor: float = divisor) -> Any:
            x, by = f.add(1, 30), f.constant(np.float32(divisor), np.float32)
            f.operator(op, [x, by], y := f.add(1, 30))
            return [x], [y]

    @case(op, "whole quotients", oracle=False)
    def _(f: FlatFile, op: str = op) -> Any:
        """Quotients that are whole numbers if they are rounded to float32."""
        x, by = f.add(1, 30), f.constant(np.float32(0.1), np.float32)
        f.operator("ROUND", [x], whole := f.add(1, 30))
        f.operator(op, [whole, by], y := f.add(1, 30))
        return [x], [y]


for approximate in (0, 1):

    @case("GELU", f"float-{approximate}", oracle=False)
    def _(f: FlatFile, approximate: int = approximate) -> Any:
        f.operator("GELU", [x := f.add(1, 30)], y := f.add(1, 30), Approximate=approximate)
        return [x], [y]


@case("L2_NORMALIZATION", FLOAT, oracle=False)
def _(f: FlatFile) -> Any:
    f.operator("L2_NORMALIZATION", [x := f.add(1, 4, 6)], y := f.add(1, 4, 6), FusedActivationFunction=NONE)
    return [x], [y]


@case("L2_NORMALIZATION", INT8, oracle=False)
def _(f: FlatFile) -> Any:
    x, y = f.int8(1, 4, 6), f.int8(1, 4, 6, scale=1 / 128, zero=0)
    f.operator("L2_NORMALIZATION", [x], y, FusedActivationFunction=NONE)
    return [x], [y]


@case("LOG_SOFTMAX", FLOAT, oracle=False)
def _(f: FlatFile) -> Any:
    f.operator("LOG_SOFTMAX", [x := f.add(1, 12)], y := f.add(1, 12))
    return [x], [y]


@case("REDUCE_PROD", FLOAT)
def _(f: FlatFile) -> Any:
    f.operator("REDUCE_PROD", [x := f.add(1, 4, 6), f.constant([1])], y := f.add(1, 6), KeepDims=False)
    return [x], [y]


for each in (INT8, FLOAT):

    @case("GATHER", f"{each}-computed", oracle=False)
    def _(f: FlatFile, kind: str = each) -> Any:
        """Indices that are the positions of the largest values."""
        x, table = f.add(1, 4, 6), image(f, kind, 6, 5)
        f.operator("ARG_MAX", [x, f.constant(2)], at := f.add(1, 4, kind="INT32"), OutputType=2)
        f.operator("GATHER", [table, at], y := image(f, kind, 1, 4, 5), Axis=0, BatchDims=0)
        return [x, table], [y]

    @case("GATHER", f"{each}-batch", oracle=False)
    def _(f: FlatFile, kind: str = each) -> Any:
        x, table = f.add(1, 4, 6), image(f, kind, 1, 6, 5)
        f.operator("ARG_MAX", [x, f.constant(2)], at := f.add(1, 4, kind="INT32"), OutputType=2)
        f.operator("GATHER", [table, at], y := image(f, kind, 1, 4, 5), Axis=1, BatchDims=1)
        return [x, table], [y]

    @case("GATHER_ND", f"{each}-constant")
    def _(f: FlatFile, kind: str = each) -> Any:
        x, at = image(f, kind, 4, 3, 5), f.constant([[0, 2], [3, 1]])
        f.operator("GATHER_ND", [x, at], y := image(f, kind, 2, 5))
        return [x], [y]

    @case("TOPK_V2", each, oracle=False)
    def _(f: FlatFile, kind: str = each) -> Any:
        x, y, at = image(f, kind, 3, 9), image(f, kind, 3, 4), f.add(3, 4, kind="INT32")
        f.operator("TOPK_V2", [x, f.constant(4)], [y, at])
        return [x], [y, at]


@case("REVERSE_SEQUENCE", FLOAT)
def _(f: FlatFile) -> Any:
    x, lengths = f.add(3, 5, 4), f.constant([3, 1, 4])
    f.operator("REVERSE_SEQUENCE", [x, lengths], y := f.add(3, 5, 4), SeqDim=1, BatchDim=0)
    return [x], [y]


@case("REVERSE_SEQUENCE", "last axis")
def _(f: FlatFile) -> Any:
    x, lengths = f.add(3, 2, 5), f.constant([3, 4])
    f.operator("REVERSE_SEQUENCE", [x, lengths], y := f.add(3, 2, 5), SeqDim=2, BatchDim=1)
    return [x], [y]


@case("EMBEDDING_LOOKUP", FLOAT, oracle=False)
def _(f: FlatFile) -> Any:
    x, table = f.add(4, 6), f.constant(f.random.normal(size=(6, 5)), np.float32)
    f.operator("ARG_MAX", [x, f.constant(1)], at := f.add(4, kind="INT32"), OutputType=2)
    f.operator("EMBEDDING_LOOKUP", [at, table], y := f.add(4, 5))
    return [x], [y]


for axis in (-1, 1):

    @case("ONE_HOT", f"axis {axis}", oracle=False)
    def _(f: FlatFile, axis: int = axis) -> Any:
        x, depth = f.add(1, 4, 6), f.constant(5)
        on, off = (f.constant(np.float32(value), np.float32) for value in (2, -1))
        f.operator("ARG_MAX", [x, f.constant(2)], at := f.add(1, 4, kind="INT32"), OutputType=2)
        y = f.add(*((1, 4, 5) if axis < 0 else (1, 5, 4)))
        f.operator("ONE_HOT", [at, depth, on, off], y, Axis=axis)
        return [x], [y]


@case("SCATTER_ND", FLOAT, oracle=False)
def _(f: FlatFile) -> Any:
    """Two updates of the same row."""
    x, at, shape = f.add(3, 4), f.constant([[4], [1], [4]]), f.constant([6, 4])
    f.operator("SCATTER_ND", [at, x, shape], y := f.add(6, 4))
    return [x], [y]


@case("LOCAL_RESPONSE_NORMALIZATION", FLOAT, oracle=False, reference=False)
def _(f: FlatFile) -> Any:
    """LiteRT's reference kernel leaves out the last neighbour."""
    x, y = f.add(1, 3, 4, 9), f.add(1, 3, 4, 9)
    f.operator("LOCAL_RESPONSE_NORMALIZATION", [x], y, Radius=2, Bias=1.5, Alpha=0.3, Beta=0.75)
    return [x], [y]


for op in ("REDUCE_ALL", "REDUCE_ANY"):

    @case(op, FLOAT, oracle=False)
    def _(f: FlatFile, op: str = op) -> Any:
        x, zero = f.add(1, 16, 3), f.constant(np.float32(0), np.float32)
        f.operator("GREATER", [x, zero], c := f.add(1, 16, 3, kind="BOOL"))
        f.operator(op, [c, f.constant([2])], d := f.add(1, 16, kind="BOOL"), KeepDims=False)
        f.operator("CAST", [d], y := f.add(1, 16))
        return [x], [y]


for op in ("FLOOR_DIV", "FLOOR_MOD"):
    for divisor in (3, -4):

        @case(op, f"int32 by {divisor}", oracle=False)
        def _(f: FlatFile, op: str = op, divisor: int = divisor) -> Any:
            x, ten = f.add(1, 30), f.constant(np.float32(10), np.float32)
            f.operator("MUL", [x, ten], scaled := f.add(1, 30), FusedActivationFunction=NONE)
            f.operator("CAST", [scaled], whole := f.add(1, 30, kind="INT32"))
            f.operator(op, [whole, f.constant(divisor)], z := f.add(1, 30, kind="INT32"))
            f.operator("CAST", [z], y := f.add(1, 30))
            return [x], [y]

    for divisor in (3 << 29, -(3 << 29)):

        @case(op, f"int32 of the whole range by {divisor}", oracle=False)
        def _(f: FlatFile, op: str = op, divisor: int = divisor) -> Any:
            """A multiple of the divisor below a number may be out of range."""
            x, y = f.add(1, 30, kind="INT32"), f.add(1, 30, kind="INT32")
            f.operator(op, [x, f.constant(divisor)], y)
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


def spectra() -> None:
    for name, shape, lengths in (
        ("", (3, 1, 32), (1, 32)),
        ("-filled", (2, 3, 24), (4, 32)),
        ("-cut", (2, 5, 40), (2, 16)),
    ):
        rows, bins = lengths[0], lengths[1] // 2 + 1
        made = (*shape[:-2], rows, bins)

        def transform(f: FlatFile, args: Any = (shape, lengths, made)) -> Any:
            shape, lengths, made = args
            x, size = f.add(*shape), f.constant(lengths)
            f.operator("RFFT2D", [x, size], spectrum := f.add(*made, kind="COMPLEX64"))
            flat = f.add(prod(made), kind="COMPLEX64")
            f.operator("RESHAPE", [spectrum, f.constant([prod(made)])], flat)
            f.operator("COMPLEX_ABS", [flat], y := f.add(prod(made)))
            return [x], [y]

        case("RFFT2D", f"float{name}", oracle=False)(transform)

    for op in ("REAL", "IMAG", "COMPLEX_ABS"):

        def part(f: FlatFile, op: str = op) -> Any:
            x = f.add(2, 1, 16)
            f.operator("RFFT2D", [x, f.constant([1, 16])], spectrum := f.add(2, 1, 9, kind="COMPLEX64"))
            f.operator(op, [spectrum], y := f.add(2, 1, 9))
            return [x], [y]

        case(op, FLOAT, oracle=False)(part)


spectra()


@case("CONCATENATION", "plain int8", lsb=0, oracle=False)
def _(f: FlatFile) -> Any:
    a, b = (f.add(1, size, kind="INT8") for size in (5, 3))
    f.operator("CONCATENATION", [a, b], y := f.add(1, 8, kind="INT8"), Axis=1)
    return [a, b], [y]


for slopes in ((4, 4, 6), (4, 4, 1), (4, 1, 6)):

    @case("PRELU", f"int8 {slopes}", oracle=False)
    def _(f: FlatFile, shape: Any = slopes) -> Any:
        x = f.int8(1, 4, 4, 6)
        slope = f.constant(f.random.integers(-50, 128, shape), np.int8, scale=[0.002], zero_point=[3])
        f.operator("PRELU", [x, slope], y := f.int8(1, 4, 4, 6, scale=0.04, zero=-40))
        return [x], [y]


for shape in ((1, 2, 4, 5, 3), (1, 1, 1, 1, 1)):

    @case("PAD", f"three axes of {shape}", lsb=0, oracle=False)
    def _(f: FlatFile, shape: Any = shape) -> Any:
        x = f.int8(*shape)
        amounts = np.array([[0, 0], [1, 1], [1, 2], [3, 0], [0, 0]], np.int32)
        made = [size + sum(more) for size, more in zip(shape, amounts.tolist(), strict=True)]
        f.operator("PAD", [x, f.constant(amounts)], y := f.int8(*made))
        return [x], [y]
