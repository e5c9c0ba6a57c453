"""Rules for volumes (images of three dimensions), and for convolutions whose weights are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS, Unsupported

RANK = 5
"""Dimensions of a batch of volumes."""


def pool(make: Maker) -> None:
    """Replace a 3-D pool by a pool over rows and columns, then one over slices.

    The mean of a window is the mean of the means of its slices, for all have the same number of elements.
    """
    shape, out_shape = make.shape(make.inputs[0]), make.shape(make.outputs[0])
    indices = len(make.outputs) > 1 and make.outputs[1]
    if shape is None or out_shape is None or len(shape) != RANK or indices:
        return
    batch, channels, depth, *_ = shape
    planes = make.reshaped(make.inputs[0], (batch, channels * depth, *shape[3:]))
    pooled = make.add(make.op, planes, **_attributes(make, (1, 2)))
    slices = make.reshaped(pooled, (batch, channels, depth, prod(out_shape[3:])))
    make.reshaped(make.add(make.op, slices, **_attributes(make, (0, None))), out_shape, make.outputs[0])


def _attributes(make: Maker, axes: Sequence[int | None]) -> dict[str, Any]:
    """The attributes of a 3-D pool for two axes; None stands for an axis that is not pooled."""
    attributes = {name: value for name, value in make.attributes.items() if name != "storage_order"}
    for name in ("kernel_shape", "strides", "dilations"):
        if name in attributes:
            attributes[name] = [1 if axis is None else attributes[name][axis] for axis in axes]
    if "pads" in attributes:
        pads = attributes["pads"]
        ends = (pads[:3], pads[3:])
        attributes["pads"] = [0 if axis is None else end[axis] for end in ends for axis in axes]
    return attributes


def global_pool(make: Maker) -> None:
    """Replace a global 3-D pool by one of an image, in which all slices are stacked vertically."""
    shape = make.shape(make.inputs[0])
    if shape is None or len(shape) != RANK:
        return
    image = make.reshaped(make.inputs[0], (*shape[:2], shape[2] * shape[3], shape[4]))
    make.reshaped(make.add(make.op, image), (*shape[:2], 1, 1, 1), out=make.outputs[0])


@dataclass(frozen=True, slots=True)
class VolumeAxis:
    """One dimension of a convolution: sizes of its input and result, the window, and the padding before."""

    size: int
    out_size: int
    kernel: int
    stride: int
    dilation: int
    before: int

    @property
    def reach(self) -> int:
        """Elements from the first tap to the last, both included."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def needed(self) -> int:
        """Size of the padded input that the windows cover."""
        return (self.out_size - 1) * self.stride + self.reach

    @property
    def pads(self) -> tuple[int, int]:
        """The padding before, and the padding after that the windows need."""
        return self.before, max(self.needed - self.size - self.before, 0)

    @property
    def places(self) -> NDArray[np.int64]:
        """The place in the padded input that each tap reads for each result: [kernel, out_size]."""
        return np.add.outer(np.arange(self.kernel) * self.dilation, np.arange(self.out_size) * self.stride)


@dataclass(frozen=True, slots=True, eq=False)
class Volumes:
    """The operands of a convolution; `bias` has one name or none."""

    x: str
    shape: tuple[int, ...]
    weights: NDArray[np.float32]
    bias: Sequence[str]
    groups: int


def conv(make: Maker) -> None:
    """Replace a 3-D convolution, and one whose weights are computed."""
    x, shape, out_shape = make.inputs[0], make.shape(make.inputs[0]), make.shape(make.outputs[0])
    weights = make.known(make.inputs[1])
    if shape is None or out_shape is None:
        return
    if weights is None:
        if make.is_computed(make.inputs[1]):
            _product_of_windows(make, shape, out_shape)
        return
    if weights.ndim != RANK or weights.dtype != np.float32:
        return
    volumes = Volumes(x, shape, weights, list(filter(None, make.inputs[2:])), make.integer("group", 1))
    axes = _volume_axes(make, shape[2:], out_shape[2:], weights.shape[2:])
    convolved(make, volumes, axes, out=make.outputs[0])


def convolved(make: Maker, volumes: Volumes, axes: Sequence[VolumeAxis], out: str = "") -> str:
    """Return a 3-D convolution: the sum of a 2-D convolution for each slice of the kernel.

    The slices of the volume are stacked vertically to an image, with their padding. Windows across two
    slices are computed, but are not part of the result.
    """
    x, shape, weights = volumes.x, volumes.shape, volumes.weights
    depth, rows, cols = axes
    height = -(-max(rows.needed, rows.size + rows.before) // rows.stride) * rows.stride
    x = _padded(make, x, 3, rows.before, height - rows.size - rows.before)
    pad_after = depth.pads[1]
    x = _padded(make, x, 2, depth.before, pad_after)
    slices = make.reshaped(x, (*shape[:2], depth.before + depth.size + pad_after, height * cols.size))
    blocks = height // rows.stride
    below = max((depth.out_size * blocks - 1) * rows.stride + rows.reach - depth.out_size * height, 0)
    after = cols.pads[1]
    total = ""
    for tap in range(depth.kernel):
        first = tap * depth.dilation
        end = first + (depth.out_size - 1) * depth.stride + 1
        part = make.slice(slices, [first], [end], [2], [depth.stride])
        image = make.reshaped(part, (*shape[:2], depth.out_size * height, cols.size))
        inputs = [image, make.constant(weights[:, :, tap])]
        if tap == 0:
            inputs += volumes.bias
        product = make.add(
            "Conv",
            *inputs,
            group=volumes.groups,
            strides=[rows.stride, cols.stride],
            dilations=[rows.dilation, cols.dilation],
            pads=[0, cols.before, below, after],
        )
        total = make.add("Add", total, product) if total else product
    all_rows = make.reshaped(total, (shape[0], len(weights), depth.out_size, blocks, cols.out_size))
    return make.slice(all_rows, [0], [rows.out_size], [3], out=out)


def _product_of_windows(make: Maker, shape: tuple[int, ...], out_shape: tuple[int, ...]) -> None:
    """Replace a convolution with computed weights by their product with the windows, one in each column."""
    kernel, groups = make.sizes(make.inputs[1]), make.integer("group", 1)
    if shape[0] != 1 or len(kernel) != len(shape):
        raise Unsupported(
            f"its weights are computed, which is supported for one image, not for {list(shape)}"
        )
    depth, results = shape[1] // groups * prod(kernel[2:]), prod(out_shape[2:])
    if groups * depth * results > MAX_TENSOR_ELEMENTS:
        raise Unsupported(
            f"its windows have more than {MAX_TENSOR_ELEMENTS} elements; make its weights constant"
        )
    axes = _volume_axes(make, shape[2:], out_shape[2:], kernel[2:])
    before, after = ([0, 0, *pads] for pads in zip(*(axis.pads for axis in axes), strict=True))
    image = make.inputs[0]
    if any(before) or any(after):
        image = make.add("Pad", image, make.int64([*before, *after]))
    padded = [axis.size + sum(axis.pads) for axis in axes]
    places = np.ravel_multi_index(np.ix_(*(axis.places.reshape(-1) for axis in axes)), padded)
    places = places.reshape([n for axis in axes for n in (axis.kernel, axis.out_size)])
    rank = len(axes)
    order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
    windows = make.int64(places.transpose(order).reshape(-1, results))
    pixels = make.reshaped(image, (shape[1], prod(padded)))
    columns = make.reshaped(make.add("Gather", pixels, windows, axis=1), (groups, depth, results))
    filters = make.reshaped(make.inputs[1], (groups, out_shape[1] // groups, depth))
    product = make.add("MatMul", filters, columns)
    if not make.input(2):
        make.reshaped(product, out_shape, out=make.outputs[0])
        return
    bias = make.reshaped(make.inputs[2], (1, -1, *[1] * rank))
    make.add("Add", make.reshaped(product, out_shape), bias, out=make.outputs[0])


_STRETCH, _CROPPING = b"stretch", b"tf_crop_and_resize"


def resize(make: Maker) -> None:
    """Replace a 3-D Resize by one of rows and columns, then one of slices."""
    shape, out_shape = make.shape(make.inputs[0]), make.shape(make.outputs[0])
    if shape is None or out_shape is None or len(shape) != RANK:
        return
    if make.attributes.get("coordinate_transformation_mode") == _CROPPING:
        raise Unsupported("a 3-D image cannot be cropped")
    if shape[:2] != out_shape[:2] or make.attributes.get("keep_aspect_ratio_policy", _STRETCH) != _STRETCH:
        raise Unsupported("only depth, rows and columns of a 3-D image can be resized, by sizes or scales")
    scales = [new / old for old, new in zip(shape, out_shape, strict=True)]
    constant = make.known(make.input(2)) if make.input(2) else None
    if constant is not None and constant.size:
        axes = make.attributes.get("axes", range(RANK))
        for axis, scale in zip(axes, constant.tolist(), strict=True):
            scales[axis] = scale
    elif constant is None and make.input(2):
        raise Unsupported("the scales must be constant")
    batch, channels, depth, rows, cols = shape
    by_scales = constant is not None and constant.size > 0

    def resized(image: str, sizes: tuple[int, ...], factors: list[float]) -> str:
        ends = ["", make.constant(factors)] if by_scales else ["", "", make.int64(sizes)]
        attributes = {name: value for name, value in make.attributes.items() if name != "axes"}
        return make.add(make.op, image, *ends, **attributes)

    planes = make.reshaped(make.inputs[0], (batch, channels * depth, rows, cols))
    planes = resized(planes, (batch, channels * depth, *out_shape[3:]), [1.0, 1.0, *scales[3:]])
    pixels = out_shape[3] * out_shape[4]
    slices = make.reshaped(planes, (batch, channels, depth, pixels))
    slices = resized(slices, (batch, channels, out_shape[2], pixels), [1.0, 1.0, scales[2], 1.0])
    make.reshaped(slices, out_shape, out=make.outputs[0])


def _volume_axes(
    make: Maker, sizes: Sequence[int], out_sizes: Sequence[int], kernel: Sequence[int]
) -> list[VolumeAxis]:
    strides, dilations = (make.attributes.get(name, (1, 1, 1)) for name in ("strides", "dilations"))
    pads, auto_pad = make.attributes.get("pads", (0,) * 6), make.attributes.get("auto_pad", b"NOTSET")
    axes = []
    for axis, size in enumerate(sizes):
        plain = VolumeAxis(size, out_sizes[axis], kernel[axis], strides[axis], dilations[axis], pads[axis])
        more = max(plain.needed - size, 0)
        before = {b"SAME_UPPER": more // 2, b"SAME_LOWER": more - more // 2, b"VALID": 0}
        axes.append(replace(plain, before=before.get(auto_pad, pads[axis])))
    return axes


def _padded(make: Maker, x: str, axis: int, before: int, after: int) -> str:
    """Add zeros before and after an axis."""
    if before == after == 0:
        return x
    amounts = [0] * (2 * RANK)
    amounts[axis], amounts[axis + RANK] = before, after
    return make.add("Pad", x, make.int64(amounts))
