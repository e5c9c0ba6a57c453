"""Rules for windows: transposed convolution, and pools that are norms."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.decompose.volume_rules import RANK, VolumeAxis, Volumes, convolved
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS, Unsupported

_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class _ConvAxis:
    """One dimension of a transposed convolution, which an ordinary convolution computes in blocks.

    Block q has `stride` results. Before the padding is cut, result stride * q + r is the sum over j of input
    q - dilation * j times tap stride * j + r. The convolution has `taps` taps and the padding `pads`. Every
    `spread`-th tap is one of the filter, the others are 0. Results [first, end) of the computed blocks
    remain; blocks that lie in the padding as a whole are not computed.
    """

    stride: int
    taps: int
    dilation: int
    spread: int
    pads: tuple[int, int]
    first: int
    end: int

    @classmethod
    def of(cls, size: int, kernel: int, steps: tuple[int, int], before: int, out_size: int) -> _ConvAxis:
        """Make the parameters of an axis; `steps`: stride and dilation; `before`: results cut at the start.

        With a stride, zeros separate the taps of a dilated filter.
        """
        stride, dilation = steps
        spread = 1 if stride == 1 else dilation
        taps = -(-((kernel - 1) * spread + 1) // stride)
        tap_step = dilation // spread
        reach = (taps - 1) * tap_step
        cut = min(before // stride, reach)
        blocks = -(-(before + out_size) // stride)
        first = before - cut * stride
        return cls(
            stride, taps, tap_step, spread, (reach - cut, max(blocks - size, 0)), first, first + out_size
        )

    def blocks(self, size: int) -> int:
        """Number of blocks that the convolution of an image computes."""
        return size + sum(self.pads) - (self.taps - 1) * self.dilation


def conv_transpose(make: Maker) -> None:
    """Replace ConvTranspose with constant weights, of which those of 8 bits stay integers."""
    x, shape = make.inputs[0], make.sizes(make.inputs[0])
    weights = make.constant_of(make.inputs[1], "the weights")
    bias = make.constant_of(make.inputs[2], "the bias") if make.input(2) else None
    if weights.dtype != np.float32 or weights.ndim != len(shape):
        raise Unsupported(f"weights {list(weights.shape)} of {weights.dtype} do not fit {list(shape)}")
    rank, groups = weights.ndim - 2, make.integer("group", 1)
    if rank not in (1, 2, 3):
        raise Unsupported(f"weights of {weights.ndim} dimensions; 1-D, 2-D and 3-D images are supported")
    axes = _axes(make, shape[2:], weights.shape[2:])
    filled = [*weights.shape[:2], *(axis.taps * axis.stride for axis in axes)]
    if np.prod(filled, dtype=float) > MAX_TENSOR_ELEMENTS:
        raise Unsupported(
            f"its strides and dilations make weights of more than {MAX_TENSOR_ELEMENTS} elements"
        )
    strides = [axis.stride for axis in axes]
    group_channels = weights.shape[1]
    biases = []
    if bias is not None:
        by_group = bias.reshape(groups, 1, group_channels)
        biases.append(make.constant(np.tile(by_group, (1, int(np.prod(strides)), 1)).reshape(-1)))
    pads = [axis.pads[0] for axis in axes] + [axis.pads[1] for axis in axes]
    kernel, dilations = [axis.taps for axis in axes], [axis.dilation for axis in axes]
    blocks = [axis.blocks(size) for size, axis in zip(shape[2:], axes, strict=True)]
    if rank == RANK - 2:
        volumes = Volumes(x, shape, _filters(weights, axes, groups), biases, groups)
        volume_axes = [
            VolumeAxis(size, out_size, axis.taps, 1, axis.dilation, axis.pads[0])
            for size, out_size, axis in zip(shape[2:], blocks, axes, strict=True)
        ]
        result = convolved(make, volumes, volume_axes)
    else:
        inputs = [x, _weights(make, weights, axes, groups), *biases]
        result = make.add("Conv", *inputs, group=groups, pads=pads, kernel_shape=kernel, dilations=dilations)
    by_place = make.reshaped(result, (shape[0], groups, *strides, group_channels, *blocks))
    perm = [0, 1, rank + 2]
    for axis in range(rank):
        perm += [rank + 3 + axis, 2 + axis]
    full_sizes = [block * stride for block, stride in zip(blocks, strides, strict=True)]
    moved = make.add("Transpose", by_place, perm=perm)
    if all(axis.first == 0 and axis.end == size for axis, size in zip(axes, full_sizes, strict=True)):
        make.reshaped(moved, (shape[0], groups * group_channels, *full_sizes), out=make.outputs[0])
        return
    image = make.reshaped(moved, (shape[0], groups * group_channels, *full_sizes))
    starts, ends = [axis.first for axis in axes], [axis.end for axis in axes]
    make.slice(image, starts, ends, list(range(2, rank + 2)), out=make.outputs[0])


def _axes(make: Maker, sizes: tuple[int, ...], kernel: tuple[int, ...]) -> list[_ConvAxis]:
    """The parameters of every dimension of the image."""
    rank, attributes = len(sizes), make.attributes
    strides, dilations = (
        [int(step) for step in attributes.get(name, (1,) * rank)] for name in ("strides", "dilations")
    )
    out_sizes = make.sizes(make.outputs[0])[2:]
    if attributes.get("auto_pad", b"NOTSET") in (b"NOTSET", b"") and "output_shape" not in attributes:
        before = [int(pad) for pad in attributes.get("pads", (0,) * (2 * rank))[:rank]]
    else:
        more = attributes.get("output_padding", (0,) * rank)
        total = [
            max(stride * (size - 1) + int(extra) + (taps - 1) * tap_distance + 1 - out, 0)
            for stride, size, extra, taps, tap_distance, out in zip(
                strides, sizes, more, kernel, dilations, out_sizes, strict=True
            )
        ]
        upper = attributes.get("auto_pad") == b"SAME_UPPER"
        before = [pad // 2 if upper else pad - pad // 2 for pad in total]
    steps = zip(strides, dilations, strict=True)
    return [_ConvAxis.of(*each) for each in zip(sizes, kernel, steps, before, out_sizes, strict=True)]


def _weights(make: Maker, weights: NDArray[np.float32], axes: list[_ConvAxis], groups: int) -> str:
    """Add the filters as a constant: int8 with a scale for each channel if the file has such weights."""
    stored = make.quantized(make.inputs[1])
    if stored is None or stored.bits != 8 or not stored.signed or np.any(stored.zero_point):
        return make.constant(_filters(weights, axes, groups))
    others = tuple(axis for axis in range(weights.ndim) if axis != 1)
    scale = stored.scale.max(axis=others)
    if np.any(scale != stored.scale.min(axis=others)):
        return make.constant(_filters(weights, axes, groups))
    blocks = groups * prod(axis.stride for axis in axes)
    integers = make.constant(_filters(stored.integers, axes, groups), np.int8)
    return make.add("DequantizeLinear", integers, make.constant(np.tile(scale, blocks)), axis=0)


def _filters(weights: NDArray[_Number], axes: list[_ConvAxis], groups: int) -> NDArray[_Number]:
    """Convert weights [C, M, taps...] to [groups * stride... * M, C / groups, taps of the convolution...]."""
    depth, count = weights.shape[:2]
    full = np.zeros((depth, count, *(axis.taps * axis.stride for axis in axes)), weights.dtype)
    places = [np.arange(size) * axis.spread for axis, size in zip(axes, weights.shape[2:], strict=True)]
    full[np.ix_(np.arange(depth), np.arange(count), *places)] = weights
    split = full.reshape(groups, depth // groups, count, *(n for a in axes for n in (a.taps, a.stride)))
    taps = range(3, 3 + 2 * len(axes), 2)
    turned = np.flip(split, tuple(taps)).transpose(0, *(at + 1 for at in taps), 2, 1, *taps)
    return np.ascontiguousarray(turned.reshape(-1, depth // groups, *(axis.taps for axis in axes)))


_DILATED_MEANS = 19
"""First opset in which AveragePool has dilations; LpPool has them earlier."""


def lp_pool(make: Maker) -> None:
    """Replace LpPool: the root of a sum of powers, which is their mean times their number."""
    shape, out_sizes = make.sizes(make.inputs[0])[2:], make.sizes(make.outputs[0])[2:]
    kernel = [int(size) for size in make.attributes["kernel_shape"]]
    ones = (1,) * len(kernel)
    strides, dilations = (make.attributes.get(name, ones) for name in ("strides", "dilations"))
    before, after = list[int](), list[int]()
    for axis, size in enumerate(kernel):
        reach = (out_sizes[axis] - 1) * strides[axis] + dilations[axis] * (size - 1) + 1
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
    """Padding before an axis; `total`: its padding on both sides if auto_pad derives it from the sizes."""
    match make.attributes.get("auto_pad", b"NOTSET"):
        case b"SAME_UPPER":
            return total // 2
        case b"SAME_LOWER":
            return total - total // 2
        case b"VALID":
            return 0
    return int(make.attributes.get("pads", (0,) * (2 * rank))[axis])


def global_lp_pool(make: Maker) -> None:
    """Replace GlobalLpPool: the root of a sum of powers over the whole image."""
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
