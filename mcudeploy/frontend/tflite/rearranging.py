"""Operators that repeat, mirror or reorder elements."""

from __future__ import annotations

import numpy as np

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.filling import padding_of
from mcudeploy.frontend.tflite.moves import moved_one
from mcudeploy.frontend.tflite.writer import Writer

_SYMMETRIC = 1
"""The mirror repeats the edge; without it the edge is the mirror."""


def mirror_pad(writer: Writer, operator: TfliteOperator) -> None:
    """MIRROR_PAD: positions of the source along each padded axis."""
    source = writer.input(operator, 0)
    amounts, symmetric = padding_of(writer, operator), operator.integer("Mode") == _SYMMETRIC
    padding = "symmetric" if symmetric else "reflect"
    places = []
    for axis, size in enumerate(source.shape):
        ends = amounts[2 * axis], amounts[2 * axis + 1]
        if max(ends) > size - (not symmetric):
            raise Unsupported(f"padding {list(ends)} mirrors more than the {size} rows of axis {axis}")
        places.append(np.pad(np.arange(size), ends, padding))  # type: ignore[call-overload]

    def move(name: str) -> str:
        for axis, each in enumerate(places):
            if len(each) > source.shape[axis]:
                name = writer.node("Gather", [name, writer.int64(each.tolist())], axis=axis)
        return name

    moved_one(writer, source, writer.output(operator), move)


def reverse(writer: Writer, operator: TfliteOperator) -> None:
    """REVERSE_V2 along constant axes."""
    source, axes = writer.input(operator, 0), writer.integers(operator, 1, "the axes")

    def move(name: str) -> str:
        ends = ([-1] * len(axes), [np.iinfo(np.int64).min] * len(axes), axes, [-1] * len(axes))
        return writer.node("Slice", [name, *(writer.int64(it) for it in ends)])

    moved_one(writer, source, writer.output(operator), move)


def tile(writer: Writer, operator: TfliteOperator) -> None:
    """TILE by constant repeats."""
    source, result = writer.input(operator, 0), writer.output(operator)
    times = writer.int64(writer.integers(operator, 1, "the repeats"))
    moved_one(writer, source, result, lambda name: writer.node("Tile", [name, times]))


def broadcast(writer: Writer, operator: TfliteOperator) -> None:
    """BROADCAST_TO a constant shape."""
    source, result = writer.input(operator, 0), writer.output(operator)
    shape = writer.int64(writer.integers(operator, 1, "the shape"))
    moved_one(writer, source, result, lambda name: writer.node("Expand", [name, shape]))


def space_to_batch(writer: Writer, operator: TfliteOperator) -> None:
    """SPACE_TO_BATCH_ND: a padded image as a batch of every n-th pixel."""
    source, result = writer.input(operator, 0), writer.output(operator)
    block, pads = _blocks(writer, operator, source)
    batch, *sizes = source.shape
    spatial, rest = sizes[: len(block)], sizes[len(block) :]
    padded = [size + sum(ends) for size, ends in zip(spatial, pads, strict=True)]
    if any(size % each for size, each in zip(padded, block, strict=True)):
        raise Unsupported(f"blocks of {block} do not divide {padded}")
    begins, ends = ([each[side] for each in pads] for side in (0, 1))
    around = [0, *begins, *([0] * len(rest)), 0, *ends, *([0] * len(rest))]
    inner = [part for size, each in zip(padded, block, strict=True) for part in (size // each, each)]
    count = len(block)
    order = [*(2 * at + 2 for at in range(count)), 0, *(2 * at + 1 for at in range(count))]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    name = writer.real(source)
    if any(around):
        zero = writer.float32(0)
        name = writer.node("Pad", [name, writer.int64(around), zero])
    name = writer.node("Reshape", [name, writer.int64([batch, *inner, *rest])])
    name = writer.node("Transpose", [name], perm=order)
    shape = [
        batch * int(np.prod(block)),
        *(size // each for size, each in zip(padded, block, strict=True)),
        *rest,
    ]
    if list(result.shape) != shape:
        raise Unsupported(f"{list(source.shape)} becomes {shape}, and not {list(result.shape)}")
    writer.finish(result, writer.node("Reshape", [name, writer.int64(shape)]))


def batch_to_space(writer: Writer, operator: TfliteOperator) -> None:
    """BATCH_TO_SPACE_ND: a batch of every n-th pixel as a cropped image."""
    source, result = writer.input(operator, 0), writer.output(operator)
    block, crops = _blocks(writer, operator, source)
    count = len(block)
    batch, *sizes = source.shape
    spatial, rest = sizes[:count], sizes[count:]
    product = int(np.prod(block))
    if batch % product:
        raise Unsupported(f"a batch of {batch} is no multiple of {product} pixels")
    order = [count, *(part for at in range(count) for part in (count + 1 + at, at))]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    whole = [size * each for size, each in zip(spatial, block, strict=True)]
    limits = (
        [begin for begin, _ in crops],
        [size - end for size, (_, end) in zip(whole, crops, strict=True)],
        list(range(1, count + 1)),
    )

    def move(name: str) -> str:
        name = writer.node("Reshape", [name, writer.int64([*block, batch // product, *sizes])])
        name = writer.node("Transpose", [name], perm=order)
        name = writer.node("Reshape", [name, writer.int64([batch // product, *whole, *rest])])
        if any(map(any, crops)):
            name = writer.node("Slice", [name, *(writer.int64(each) for each in limits)])
        return name

    moved_one(writer, source, result, move)


def _blocks(
    writer: Writer, operator: TfliteOperator, source: TfliteTensor
) -> tuple[list[int], list[tuple[int, int]]]:
    """The block of pixels, and two numbers of pixels at the ends of each of its axes."""
    block = writer.integers(operator, 1, "the block")
    ends = writer.integers(operator, 2, "the padding")
    sound = min(block, default=0) >= 1 and min(ends, default=0) >= 0
    if not sound or len(ends) != 2 * len(block) or len(block) >= len(source.shape):
        raise Unsupported(f"blocks of {block} with {ends} at the ends do not fit {list(source.shape)}")
    return block, list(zip(ends[::2], ends[1::2], strict=True))
