"""Resize: nearest on stored values, linear in int8 or float, other weighted sums in float."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mcudeploy.common.text import agree
from mcudeploy.frontend.lower.builder import Builder, OperatorLowering
from mcudeploy.frontend.lower.pool import ResultType, int8_or_float
from mcudeploy.frontend.onnx.nodes import Node, Unsupported, require_bounded
from mcudeploy.frontend.onnx.values import OnnxValue, image_index, image_positions
from mcudeploy.ir.graph import DType
from mcudeploy.ops.image.resample import Filter, Resample, Taps, resize_taps
from mcudeploy.ops.image.resize import CROPPING, Resize, ResizedAxis, ResizeSamples, resize_samples

_MODES: dict[str, Literal["nearest", "linear", "cubic"]] = {
    "nearest": "nearest",
    "linear": "linear",
    "cubic": "cubic",
}


def resize(builder: Builder, node: Node) -> None:
    """Lower Resize of the rows and columns of one image."""
    value = builder.value(node.inputs[0])
    weighted = _needs_tables(node)
    if _mode(node) == "nearest" and not weighted:
        builder.define(node.output, _nearest(builder, node, value))
        return

    def emission(source: OnnxValue, result: ResultType) -> OnnxValue:
        return _resized(builder, node, source, result)

    int8_or_float(builder, node, emission, integers=not weighted)


def real_resize(builder: Builder, node: Node) -> OnnxValue:
    """Lower Resize on a float tensor."""
    return _resized(builder, node, builder.real(node.inputs[0]), ResultType(DType.FLOAT32, None, (node,)))


def _mode(node: Node) -> Literal["nearest", "linear", "cubic"]:
    mode = node.text("mode", "nearest")
    if mode not in _MODES:
        raise Unsupported(f"mode {mode!r} is not supported; nearest, linear and cubic are")
    return _MODES[mode]


def _needs_tables(node: Node) -> bool:
    """Whether the weights of pixels come from tables, the operator Resample."""
    crops = node.text("coordinate_transformation_mode", "half_pixel") == CROPPING
    return crops or _mode(node) == "cubic" or (_mode(node) == "linear" and bool(node.integer("antialias", 0)))


def _nearest(builder: Builder, node: Node, value: OnnxValue) -> OnnxValue:
    tensor = builder.tensors[value.tensor]
    resized = _resized(builder, node, value, ResultType(tensor.dtype, tensor.quantization, (node,)))
    return replace(value, tensor=resized.tensor, index=resized.index)


def _resized(builder: Builder, node: Node, value: OnnxValue, result: ResultType) -> OnnxValue:
    """Emit the Resize or Resample of a value."""
    image = image_positions(value.index)
    target = _target(builder, node, value.shape)
    if target.sizes[:2] != value.shape[:2]:
        raise Unsupported("batch and channels cannot be resized")
    require_bounded(target.sizes, "its result")
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    roi = _roi(builder, node, value.index.ndim) if coordinates == CROPPING else None
    if target.sizes == value.shape and roi is None:  # ONNX Runtime copies in this case, whatever the scales
        target = _Target(target.sizes, (1.0,) * len(target.sizes))
    axes = [
        ResizedAxis(size, out_size, scale, coordinates, (0.0, 1.0) if roi is None else roi[axis])
        for axis, (size, out_size, scale) in enumerate(
            zip(value.shape, target.sizes, target.scales, strict=True)
        )
    ][2:]
    for axis in axes:
        _require_corners(axis)
    op = _resample(node, axes) if _needs_tables(node) else _resize(node, axes)
    source = builder.arranged(value.tensor, image)
    shape = (*op.out_size, image.shape[2])
    tensor = builder.emit(op, (source,), shape, result.dtype, result.quantization, nodes=result.nodes)
    return OnnxValue(tensor, image_index(shape, value.index.ndim), real=True)


def _require_corners(axis: ResizedAxis) -> None:
    scaled_size = axis.in_size * axis.scale
    if axis.coordinates == "align_corners" and abs(scaled_size - axis.out_size) > 0.01:
        raise Unsupported(
            f"align_corners with a scale that makes {scaled_size:g} of {axis.in_size}: ONNX and ONNX Runtime "
            "differ in where its corners are; give sizes instead of scales"
        )


def _resize(node: Node, axes: list[ResizedAxis]) -> Resize:
    mode = _mode(node)
    assert mode != "cubic"
    nearest = node.text("nearest_mode", "round_prefer_floor")

    def samples(axis: ResizedAxis) -> ResizeSamples:
        sizes = axis.in_size, axis.out_size, axis.scale
        return resize_samples(*sizes, mode=mode, coordinates=axis.coordinates, nearest_mode=nearest)

    rows, *others = map(samples, axes)
    return Resize(mode, rows, others[0] if others else ResizeSamples((0,), (0.0,)))


def _resample(node: Node, axes: list[ResizedAxis]) -> Resample:
    mode = _mode(node)
    if mode == "nearest":
        raise Unsupported(f"{CROPPING} of the nearest pixels is not supported; linear and cubic are")
    kind = Filter(
        mode == "cubic",
        node.number("cubic_coeff_a", -0.75),
        bool(node.integer("antialias", 0)),
        bool(node.integer("exclude_outside", 0)) and mode == "cubic",
    )
    rows, *others = (resize_taps(axis, kind) for axis in axes)
    cols = others[0] if others else Taps((0,), ((1.0,),))
    return Resample(rows, cols, node.number("extrapolation_value", 0.0))


def _roi(builder: Builder, node: Node, rank: int) -> list[tuple[float, float]]:
    """The region of each axis that is resized, as fractions of the axis: start and end."""
    axes = _axes(node, rank)
    bounds = [float(bound) for bound in builder.constant(node.input(1), "the roi").value.reshape(-1)]
    _require_length(bounds, axes * 2)
    regions = [(0.0, 1.0)] * rank
    for position, axis in enumerate(axes):
        regions[axis] = bounds[position], bounds[position + len(axes)]
    return regions


@dataclass(frozen=True, slots=True)
class _Target:
    """Size of the result and scale of every axis."""

    sizes: tuple[int, ...]
    scales: tuple[float, ...]


def _axes(node: Node, rank: int) -> list[int]:
    return [axis % rank for axis in node.integers("axes") or tuple(range(rank))]


def _target(builder: Builder, node: Node, shape: tuple[int, ...]) -> _Target:
    rank = len(shape)
    axes = _axes(node, rank)
    sizes, scales = list(shape), [1.0] * rank
    scale_input = builder.constants.get(node.input(2))
    if scale_input is not None and scale_input.value.size:
        numbers = [float(item) for item in scale_input.value.reshape(-1)]
        _require_length(numbers, axes)
        for axis, scale in zip(axes, numbers, strict=True):
            if not np.isfinite(scale) or not 0 < scale < 2**16:
                raise Unsupported(f"the scale {scale} is not supported")
            scales[axis], sizes[axis] = scale, int(np.floor(np.float32(shape[axis]) * np.float32(scale)))
        return _Target(tuple(sizes), tuple(scales))
    wanted = [float(item) for item in builder.constant(node.input(3), "scales or sizes").value.reshape(-1)]
    _require_length(wanted, axes)
    for axis, size in zip(axes, wanted, strict=True):
        sizes[axis], scales[axis] = int(size), size / shape[axis]
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        _keep_aspect(policy, axes, shape, sizes, scales)
    return _Target(tuple(sizes), tuple(scales))


def _keep_aspect(
    policy: str, axes: list[int], shape: tuple[int, ...], sizes: list[int], scales: list[float]
) -> None:
    """Set one scale for all axes: the smallest or the largest of `scales`, which the sizes imply."""
    if policy not in ("not_larger", "not_smaller"):
        raise Unsupported(f"keep_aspect_ratio_policy {policy!r} is not supported")
    by_sizes = [scales[axis] for axis in axes]
    scale = min(by_sizes) if policy == "not_larger" else max(by_sizes)
    for axis in axes:
        scales[axis], sizes[axis] = scale, int(np.floor(scale * shape[axis] + 0.5))


def _require_length(numbers: list[float], axes: list[int]) -> None:
    if len(numbers) != len(axes):
        raise Unsupported(
            f"{len(numbers)} scales or sizes for {len(axes)} {agree(len(axes), 'axis', 'axes')}"
        )


LOWERINGS: dict[str, OperatorLowering] = {
    "Resize": OperatorLowering(
        resize,
        "kernel",
        only="rows, columns and depth; cubic, antialiased and cropped ones in float",
        real=real_resize,
    ),
}
