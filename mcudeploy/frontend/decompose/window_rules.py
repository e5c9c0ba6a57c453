"""Rules for windows in three dimensions, as windows in two, and for pools that are norms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported

_RANK = 5


def pool(make: Maker) -> None:
    """Replace a 3-D pool by a pool over rows and columns, then one over slices. A window's mean is the mean
    of its lines' means, which all cover the same number of elements.
    """
    shape, made = make.shape(make.inputs[0]), make.shape(make.outputs[0])
    indices = len(make.outputs) > 1 and make.outputs[1]
    if shape is None or made is None or len(shape) != _RANK or indices:
        return
    batch, channels, depth, *_ = shape
    planes = make.reshaped(make.inputs[0], (batch, channels * depth, *shape[3:]))
    pooled = make.add(make.op, planes, **_attributes(make, (1, 2)))
    slices = make.reshaped(pooled, (batch, channels, depth, prod(made[3:])))
    make.reshaped(make.add(make.op, slices, **_attributes(make, (0, None))), made, make.outputs[0])


def _attributes(make: Maker, axes: Sequence[int | None]) -> dict[str, Any]:
    """Select the attributes of a 3-D pool for some axes; None marks an axis that is left as it is."""
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
    """Stack all slices vertically."""
    shape = make.shape(make.inputs[0])
    if shape is None or len(shape) != _RANK:
        return
    image = make.reshaped(make.inputs[0], (*shape[:2], shape[2] * shape[3], shape[4]))
    make.reshaped(make.add(make.op, image), (*shape[:2], 1, 1, 1), out=make.outputs[0])


@dataclass(frozen=True, slots=True)
class _VolumeAxis:
    """One dimension of a convolution."""

    size: int
    made: int
    kernel: int
    stride: int
    dilation: int
    before: int

    @property
    def reach(self) -> int:
        """Distance from the first tap to the last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def needed(self) -> int:
        """Size of the padded input that the windows cover."""
        return (self.made - 1) * self.stride + self.reach


def conv(make: Maker) -> None:
    """Sum the 2-D convolutions over the slices of the kernel.

    The slices of the image are stacked vertically, with their padding. Windows across two slices are
    computed, but are no part of the result.
    """
    x, shape, made = make.inputs[0], make.shape(make.inputs[0]), make.shape(make.outputs[0])
    weights = make.known(make.inputs[1])
    if (
        shape is None
        or made is None
        or weights is None
        or weights.ndim != _RANK
        or weights.dtype != np.float32
    ):
        return
    depth, rows, cols = _axes(make, shape[2:], made[2:], weights.shape[2:])
    height = -(-max(rows.needed, rows.size + rows.before) // rows.stride) * rows.stride
    x = _padded(make, x, 3, rows.before, height - rows.size - rows.before)
    pad_after = max(depth.needed - depth.size - depth.before, 0)
    x = _padded(make, x, 2, depth.before, pad_after)
    slices = make.reshaped(x, (*shape[:2], depth.before + depth.size + pad_after, height * cols.size))
    blocks = height // rows.stride
    below = max((depth.made * blocks - 1) * rows.stride + rows.reach - depth.made * height, 0)
    after = max(cols.needed - cols.size - cols.before, 0)
    total = ""
    for tap in range(depth.kernel):
        first = tap * depth.dilation
        end = first + (depth.made - 1) * depth.stride + 1
        part = make.slice(slices, [first], [end], [2], [depth.stride])
        image = make.reshaped(part, (*shape[:2], depth.made * height, cols.size))
        inputs = [image, make.constant(weights[:, :, tap])]
        if tap == 0 and len(make.inputs) > 2 and make.inputs[2]:
            inputs.append(make.inputs[2])
        product = make.add(
            "Conv",
            *inputs,
            group=int(make.attributes.get("group", 1)),
            strides=[rows.stride, cols.stride],
            dilations=[rows.dilation, cols.dilation],
            pads=[0, cols.before, below, after],
        )
        total = make.add("Add", total, product) if total else product
    whole = make.reshaped(total, (*made[:2], depth.made, blocks, cols.made))
    make.slice(whole, [0], [rows.made], [3], out=make.outputs[0])


def _axes(make: Maker, sizes: Sequence[int], made: Sequence[int], kernel: Sequence[int]) -> list[_VolumeAxis]:
    strides, dilations = (make.attributes.get(name, (1, 1, 1)) for name in ("strides", "dilations"))
    pads, auto_pad = make.attributes.get("pads", (0,) * 6), make.attributes.get("auto_pad", b"NOTSET")
    axes = []
    for axis, size in enumerate(sizes):
        found = _VolumeAxis(size, made[axis], kernel[axis], strides[axis], dilations[axis], pads[axis])
        more = max(found.needed - size, 0)
        before = {b"SAME_UPPER": more // 2, b"SAME_LOWER": more - more // 2, b"VALID": 0}
        axes.append(replace(found, before=before.get(auto_pad, pads[axis])))
    return axes


def _padded(make: Maker, x: str, axis: int, before: int, after: int) -> str:
    """Zeros before and after an axis, or nothing if neither is needed."""
    if before == after == 0:
        return x
    amounts = [0] * (2 * _RANK)
    amounts[axis], amounts[axis + _RANK] = before, after
    return make.add("Pad", x, make.int64(amounts))


_DILATED_MEANS = 19
"""First opset in which AveragePool has dilations; LpPool has them earlier."""


def lp_pool(make: Maker) -> None:
    """Replace LpPool: the mean of powers in a window times their number, and the root of that."""
    shape, made = make.sizes(make.inputs[0])[2:], make.sizes(make.outputs[0])[2:]
    kernel = [int(size) for size in make.attributes["kernel_shape"]]
    ones = (1,) * len(kernel)
    strides, dilations = (make.attributes.get(name, ones) for name in ("strides", "dilations"))
    before, after = list[int](), list[int]()
    for axis, size in enumerate(kernel):
        reach = (made[axis] - 1) * strides[axis] + dilations[axis] * (size - 1) + 1
        before.append(_before(make, axis, len(kernel), max(reach - shape[axis], 0)))
        after.append(max(reach - shape[axis] - before[-1], 0))
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": before + after, "count_include_pad": 1}
    if any(step != 1 for step in dilations):
        if make.opset < _DILATED_MEANS:
            raise Unsupported(
                f"dilations {list(dilations)} need opset {_DILATED_MEANS}: export the model with it"
            )
        attributes["dilations"] = dilations
    powers = _power(make, make.inputs[0])
    sums = make.add("Mul", make.add("AveragePool", powers, **attributes), make.constant(float(prod(kernel))))
    _root(make, sums)


def _before(make: Maker, axis: int, rank: int, total: int) -> int:
    """Padding before an axis, given its total padding, if the sizes determine it."""
    match make.attributes.get("auto_pad", b"NOTSET"):
        case b"SAME_UPPER":
            return total // 2
        case b"SAME_LOWER":
            return total - total // 2
        case b"VALID":
            return 0
    return int(make.attributes.get("pads", (0,) * (2 * rank))[axis])


def global_lp_pool(make: Maker) -> None:
    """Replace GlobalLpPool by LpPool over the whole image."""
    axes = range(2, len(make.sizes(make.inputs[0])))
    _root(make, make.reduce("ReduceSum", _power(make, make.inputs[0]), axes))


def _power(make: Maker, x: str) -> str:
    p = make.integer("p", 2)
    if p < 1:
        raise Unsupported(f"p {p} is not supported; 1 and greater are")
    if p == 2:
        return make.add("Mul", x, x)
    size = make.add("Abs", x)
    return size if p == 1 else make.add("Pow", size, make.constant(float(p)))


def _root(make: Maker, sums: str) -> None:
    p, out = make.integer("p", 2), make.outputs[0]
    if p == 1:
        make.add("Identity", sums, out=out)
    elif p == 2:
        make.add("Sqrt", sums, out=out)
    else:
        make.add("Pow", sums, make.constant(1 / p), out=out)
