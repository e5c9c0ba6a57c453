"""Padding, resizing, blocks of pixels, and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator
from mcudeploy.frontend.tflite.moves import moved
from mcudeploy.frontend.tflite.scales import reals
from mcudeploy.frontend.tflite.writer import Writer


def pad(writer: Writer, operator: TfliteOperator) -> None:
    """PAD with zeros."""
    _pad(writer, operator, 0.0)


def pad_with_value(writer: Writer, operator: TfliteOperator) -> None:
    """PADV2: a constant with the scale of the input."""
    tensor = writer.input(operator, 2)
    if tensor.data is None or tensor.elements != 1:
        raise Unsupported("the value must be a constant scalar")
    _pad(writer, operator, float(reals(tensor).reshape(-1)[0]))


def _pad(writer: Writer, operator: TfliteOperator, filling: float) -> None:
    source, result = writer.input(operator, 0), writer.output(operator)
    amounts = writer.integers(operator, 1, "the padding")
    if len(amounts) != 2 * len(source.shape) or min(amounts, default=0) < 0:
        raise Unsupported(f"padding {amounts} does not fit {list(source.shape)}")
    pads = writer.int64(amounts[::2] + amounts[1::2])
    value = writer.constant(np.array(filling, np.float32))
    writer.finish(result, writer.node("Pad", [writer.real(source), pads, value]))


def resize_bilinear(writer: Writer, operator: TfliteOperator) -> None:
    """RESIZE_BILINEAR."""
    aligned, halves = operator.flag("AlignCorners"), operator.flag("HalfPixelCenters")
    image = writer.image(writer.input(operator, 0))
    made = _resize(
        writer, operator, image, mode="linear", coordinate_transformation_mode=_mode(aligned, halves)
    )
    writer.finish(writer.output(operator), writer.channels_last(made))


def resize_nearest(writer: Writer, operator: TfliteOperator) -> None:
    """RESIZE_NEAREST_NEIGHBOR: floor((x + 0.5) * scale) is the nearest of ONNX's coordinate, ties upwards."""
    aligned, halves = operator.flag("AlignCorners"), operator.flag("HalfPixelCenters")
    source = writer.input(operator, 0)
    rounding = "round_prefer_ceil" if aligned or halves else "floor"

    def move(names: list[str]) -> list[str]:
        image = writer.channels_first(names[0], source)
        mode = _mode(aligned, halves)
        made = _resize(
            writer,
            operator,
            image,
            mode="nearest",
            coordinate_transformation_mode=mode,
            nearest_mode=rounding,
        )
        return [writer.channels_last(made)]

    moved(writer, [source], [writer.output(operator)], move)


def _mode(aligned: bool, halves: bool) -> str:
    if aligned and halves:
        raise Unsupported("aligned corners and half-pixel centres exclude each other")
    return "align_corners" if aligned else "half_pixel" if halves else "asymmetric"


def _resize(writer: Writer, operator: TfliteOperator, image: str, **attributes: Any) -> str:
    source = writer.input(operator, 0)
    sizes = writer.integers(operator, 1, "the size")
    if len(sizes) != 2 or min(sizes) < 1:
        raise Unsupported(f"the size {sizes} is not one of rows and columns")
    wanted = writer.int64([source.shape[0], source.shape[3], *sizes])
    return writer.node("Resize", [image, "", "", wanted], **attributes)


_REDUCTIONS = {
    "MEAN": "ReduceMean",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd",
    "SUM": "ReduceSum",
}


def reduction(writer: Writer, operator: TfliteOperator) -> None:
    """MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD over constant axes."""
    source, axes = writer.input(operator, 0), writer.integers(operator, 1, "the axes")
    rank = len(source.shape)
    if any(not -rank <= axis < rank for axis in axes):
        raise Unsupported(f"axes {axes} are outside {rank} dimensions")
    along, keep = sorted({axis % rank for axis in axes}), int(operator.flag("KeepDims"))
    op, name = _REDUCTIONS[operator.op], writer.real(source)
    if op == "ReduceSum":
        made = writer.node(op, [name, writer.int64(along)], keepdims=keep)
    else:
        made = writer.node(op, [name], axes=along, keepdims=keep)
    writer.finish(writer.output(operator), made)


def blocks(writer: Writer, operator: TfliteOperator) -> None:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH: blocks of pixels as channels, row by row.

    ONNX Runtime has its operators of these names for few types, so the move is a transposition of blocks.
    """
    source, result, size = writer.input(operator, 0), writer.output(operator), operator.integer("BlockSize")
    if len(source.shape) != 4 or size < 1:
        raise Unsupported(f"blocks of {size} in a tensor of {len(source.shape)} dimensions")
    count, rows, cols, channels = source.shape
    if operator.op == "DEPTH_TO_SPACE":
        apart, fits = (count, rows, cols, size, size, channels // size**2), channels % size**2 == 0
    else:
        apart = (count, rows // size, size, cols // size, size, channels)
        fits = rows % size == 0 and cols % size == 0
    if not fits:
        raise Unsupported(f"{rows} x {cols} x {channels} values are no blocks of {size} x {size}")

    def move(names: list[str]) -> list[str]:
        swapped = writer.node("Transpose", [writer.reshaped(names[0], apart)], perm=(0, 1, 3, 2, 4, 5))
        return [writer.reshaped(swapped, result.shape)]

    moved(writer, [source], [result], move)
