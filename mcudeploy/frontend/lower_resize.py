"""Resize and Upsample-like nodes: nearest on what is stored, linear in int8 or float."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from mcudeploy.common.text import agree
from mcudeploy.frontend.builder import Builder
from mcudeploy.frontend.follow import Ending, fused_nodes
from mcudeploy.frontend.lower_pool import int8_or_float
from mcudeploy.frontend.model import Node, Unsupported, require_bounded
from mcudeploy.frontend.values import Value, image_index, image_positions
from mcudeploy.ir.graph import DType, Quantization
from mcudeploy.ops.resize import Resize, Samples, resize_samples


def resize(builder: Builder, node: Node) -> None:
    """Rows and columns of one image resampled; batch and channels must stay."""
    value = builder.value(node.inputs[0])
    if _mode(node) == "nearest":
        builder.define(node.output, _nearest(builder, node, value))
        return

    def emission(source: Value, dtype: DType, quantization: Quantization | None, ending: Ending) -> Value:
        nodes = fused_nodes(node, ending, quantized=quantization is not None)
        return _resized(builder, node, source, (dtype, quantization), nodes)

    int8_or_float(builder, node, emission)


def real_resize(builder: Builder, node: Node) -> Value:
    """The same on a float tensor."""
    return _resized(builder, node, builder.real(node.inputs[0]), (DType.FLOAT32, None), (node,))


def _mode(node: Node) -> Literal["nearest", "linear"]:
    match node.text("mode", "nearest"):
        case "nearest":
            return "nearest"
        case "linear":
            return "linear"
        case other:
            raise Unsupported(f"mode {other!r} is not supported; nearest and linear are")


def _nearest(builder: Builder, node: Node, value: Value) -> Value:
    tensor = builder.tensors[value.tensor]
    made = _resized(builder, node, value, (tensor.dtype, tensor.quantization), (node,))
    return replace(value, tensor=made.tensor, index=made.index)


def _resized(
    builder: Builder,
    node: Node,
    value: Value,
    made_as: tuple[DType, Quantization | None],
    nodes: tuple[Node, ...],
) -> Value:
    image = image_positions(value.index)
    sizes, scales = _target(builder, node, value.shape)
    if sizes[:2] != value.shape[:2]:
        raise Unsupported("batch and channels cannot be resized")
    require_bounded(sizes, "its result")
    if sizes == value.shape:  # the reference copies then, whatever the scales say
        scales = (1.0,) * len(sizes)
    samples = [
        _samples(node, value.shape[axis], sizes[axis], scales[axis]) for axis in range(2, value.index.ndim)
    ]
    rows, cols = samples if len(samples) == 2 else (samples[0], Samples((0,), (0.0,)))
    source = builder.arranged(value.tensor, image)
    op = Resize(_mode(node), rows, cols)
    shape = (*op.out_size, image.shape[2])
    tensor = builder.emit(op, (source,), shape, *made_as, nodes=nodes)
    return Value(tensor, image_index(shape, value.index.ndim), real=True)


def _samples(node: Node, size: int, out_size: int, scale: float) -> Samples:
    if node.integer("antialias", 0) and scale < 1:
        raise Unsupported("antialias is not supported")
    if node.integer("exclude_outside", 0):
        raise Unsupported("exclude_outside is not supported")
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    if coordinates == "align_corners" and abs(size * scale - out_size) > 0.01:
        raise Unsupported(
            f"align_corners with a scale that makes {size * scale:g} of {size}: ONNX and ONNX Runtime "
            "differ in where its corners are; give sizes in the place of scales"
        )
    return resize_samples(
        size,
        out_size,
        scale,
        mode=_mode(node),
        coordinates=coordinates,
        nearest_mode=node.text("nearest_mode", "round_prefer_floor"),
    )


def _target(
    builder: Builder, node: Node, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Size and scale of every axis."""
    rank = len(shape)
    if node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Unsupported("keep_aspect_ratio_policy other than stretch is not supported")
    axes = [axis % rank for axis in node.integers("axes") or tuple(range(rank))]
    sizes, scales = list(shape), [1.0] * rank
    scale_input = builder.constants.get(node.input(2))
    if scale_input is not None and scale_input.value.size:
        given = [float(item) for item in scale_input.value.reshape(-1)]
        _require_length(given, axes)
        for axis, scale in zip(axes, given, strict=True):
            if not np.isfinite(scale) or not 0 < scale < 2**16:
                raise Unsupported(f"the scale {scale} is not supported")
            scales[axis], sizes[axis] = scale, int(np.floor(np.float32(shape[axis]) * np.float32(scale)))
        return tuple(sizes), tuple(scales)
    wanted = [float(item) for item in builder.constant(node.input(3), "scales or sizes").value.reshape(-1)]
    _require_length(wanted, axes)
    for axis, size in zip(axes, wanted, strict=True):
        sizes[axis], scales[axis] = int(size), size / shape[axis]
    return tuple(sizes), tuple(scales)


def _require_length(given: list[float], axes: list[int]) -> None:
    if len(given) != len(axes):
        raise Unsupported(f"{len(given)} scales or sizes for {len(axes)} {agree(len(axes), 'axis', 'axes')}")
