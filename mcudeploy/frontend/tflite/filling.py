"""Padding, resizing, DEPTH_TO_SPACE, SPACE_TO_DEPTH and reductions."""

from __future__ import annotations

from typing import Any

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator
from mcudeploy.frontend.tflite.moves import axes_of, moved_one, padding_of
from mcudeploy.frontend.tflite.scales import reals
from mcudeploy.frontend.tflite.writer import Writer


def pad(writer: Writer, operator: TfliteOperator) -> None:
    """PAD with zeros."""
    _pad(writer, operator, 0.0)


def pad_with_value(writer: Writer, operator: TfliteOperator) -> None:
    """PADV2: padding with a constant, which has the scale of the input."""
    tensor = writer.input(operator, 2)
    if tensor.data is None or tensor.elements != 1:
        raise Unsupported("the value must be a constant scalar")
    _pad(writer, operator, float(reals(tensor).reshape(-1)[0]))


def _pad(writer: Writer, operator: TfliteOperator, filling: float) -> None:
    source, result, amounts = writer.input(operator, 0), writer.output(operator), padding_of(writer, operator)
    pads = writer.int64(amounts[::2] + amounts[1::2])
    value = writer.float32(filling)
    writer.finish(result, writer.node("Pad", [writer.real(source), pads, value]))


def resize_bilinear(writer: Writer, operator: TfliteOperator) -> None:
    """RESIZE_BILINEAR."""
    image, coordinates = writer.image(writer.input(operator, 0)), _coordinates(operator)
    onnx_name = _resize(writer, operator, image, mode="linear", coordinate_transformation_mode=coordinates)
    writer.finish(writer.output(operator), writer.channels_last(onnx_name))


def resize_nearest(writer: Writer, operator: TfliteOperator) -> None:
    """RESIZE_NEAREST_NEIGHBOR reads pixel floor((x + 0.5) * scale): ONNX's nearest, with ties upwards."""
    source, coordinates = writer.input(operator, 0), _coordinates(operator)
    rounding = "floor" if coordinates == "asymmetric" else "round_prefer_ceil"

    def move(name: str) -> str:
        image = writer.channels_first(name, source)
        modes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        return writer.channels_last(_resize(writer, operator, image, mode="nearest", **modes))

    moved_one(writer, source, writer.output(operator), move)


def _coordinates(operator: TfliteOperator) -> str:
    """ONNX's name for the transformation of coordinates of a resizing operator."""
    aligned, half_pixel = operator.flag("AlignCorners"), operator.flag("HalfPixelCenters")
    if aligned and half_pixel:
        raise Unsupported("aligned corners and half-pixel centres exclude each other")
    return "align_corners" if aligned else "half_pixel" if half_pixel else "asymmetric"


def _resize(writer: Writer, operator: TfliteOperator, image: str, **attributes: Any) -> str:
    source = writer.input(operator, 0)
    sizes = writer.integers(operator, 1, "the size")
    if len(sizes) != 2 or min(sizes) < 1:
        raise Unsupported(f"the size {sizes} is not one of rows and columns")
    all_sizes = writer.int64([source.shape[0], source.shape[3], *sizes])
    return writer.node("Resize", [image, "", "", all_sizes], **attributes)


_REDUCTIONS = {
    "MEAN": "ReduceMean",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd",
    "SUM": "ReduceSum",
}


def reduction(writer: Writer, operator: TfliteOperator) -> None:
    """MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD over constant axes."""
    axes, keep = axes_of(writer, operator), int(operator.flag("KeepDims"))
    op, name = _REDUCTIONS[operator.op], writer.real(writer.input(operator, 0))
    if op == "ReduceSum":
        onnx_name = writer.node(op, [name, writer.int64(axes)], keepdims=keep)
    else:
        onnx_name = writer.node(op, [name], axes=axes, keepdims=keep)
    writer.finish(writer.output(operator), onnx_name)


def blocks(writer: Writer, operator: TfliteOperator) -> None:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH, whose channels are blocks of pixels, row by row.

    ONNX Runtime has its operators of these names for few types only, so a Transpose of blocks replaces them.
    """
    source, result, size = writer.input(operator, 0), writer.output(operator), operator.integer("BlockSize")
    if len(source.shape) != 4 or size < 1:
        raise Unsupported(f"blocks of {size} in a tensor of {len(source.shape)} dimensions")
    count, rows, cols, channels = source.shape
    if operator.op == "DEPTH_TO_SPACE":
        split_shape, fits = (count, rows, cols, size, size, channels // size**2), channels % size**2 == 0
    else:
        split_shape = (count, rows // size, size, cols // size, size, channels)
        fits = rows % size == 0 and cols % size == 0
    if not fits:
        raise Unsupported(f"{rows} x {cols} x {channels} values are not blocks of {size} x {size}")

    def move(name: str) -> str:
        swapped = writer.node("Transpose", [writer.reshaped(name, split_shape)], perm=(0, 1, 3, 2, 4, 5))
        return writer.reshaped(swapped, result.shape)

    moved_one(writer, source, result, move)
