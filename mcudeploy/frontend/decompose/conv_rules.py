"""Rule for transposed convolution, as a convolution whose channels are the pixels of a block."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS, Unsupported

_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class _ConvAxis:
    """One dimension of the image: stride, `taps` of the convolution, its padding, and the part of the blocks
    that is the result.

    Result stride * q + r, before the padding is cut, is the sum over j of input q - j times tap
    stride * j + r.
    """

    stride: int
    taps: int
    pads: tuple[int, int]
    first: int
    end: int

    @classmethod
    def of(cls, size: int, kernel: int, stride: int, before: int, made: int) -> _ConvAxis:
        """Parameters along one axis; `made` pixels of the result follow `before` pixels that are cut."""
        taps = -(-kernel // stride)
        blocks = -(-(before + made) // stride)
        return cls(stride, taps, (taps - 1, max(blocks - size, 0)), before, before + made)


def conv_transpose(make: Maker) -> None:
    """Replace ConvTranspose; weights must be constant, dilations 1. Weights of 8 bits stay integers."""
    x, shape = make.inputs[0], make.sizes(make.inputs[0])
    weights = make.constant_of(make.inputs[1], "the weights")
    bias = make.constant_of(make.inputs[2], "the bias") if make.input(2) else None
    if weights.dtype != np.float32 or weights.ndim != len(shape):
        raise Unsupported(f"weights {list(weights.shape)} of {weights.dtype} do not fit {list(shape)}")
    rank, groups = weights.ndim - 2, make.integer("group", 1)
    if rank not in (1, 2):
        raise Unsupported(f"weights of {weights.ndim} dimensions; 1-D and 2-D images are supported")
    axes = _axes(make, shape[2:], weights.shape[2:])
    filled = [*weights.shape[:2], *(axis.taps * axis.stride for axis in axes)]
    if np.prod(filled, dtype=float) > MAX_TENSOR_ELEMENTS:
        raise Unsupported(f"its strides make weights of more than {MAX_TENSOR_ELEMENTS} elements")
    strides = [axis.stride for axis in axes]
    count = weights.shape[1]
    inputs = [x, _weights(make, weights, axes, groups)]
    if bias is not None:
        by_group = bias.reshape(groups, 1, count)
        inputs.append(make.constant(np.tile(by_group, (1, int(np.prod(strides)), 1)).reshape(-1)))
    pads = [axis.pads[0] for axis in axes] + [axis.pads[1] for axis in axes]
    made = make.add("Conv", *inputs, group=groups, pads=pads, kernel_shape=[axis.taps for axis in axes])
    blocks = [size + sum(axis.pads) - axis.taps + 1 for size, axis in zip(shape[2:], axes, strict=True)]
    apart = make.reshaped(made, (shape[0], groups, *strides, count, *blocks))
    perm = [0, 1, rank + 2]
    for axis in range(rank):
        perm += [rank + 3 + axis, 2 + axis]
    whole = [block * stride for block, stride in zip(blocks, strides, strict=True)]
    moved = make.add("Transpose", apart, perm=perm)
    if all(axis.first == 0 and axis.end == size for axis, size in zip(axes, whole, strict=True)):
        make.reshaped(moved, (shape[0], groups * count, *whole), out=make.outputs[0])
        return
    image = make.reshaped(moved, (shape[0], groups * count, *whole))
    starts, ends = [axis.first for axis in axes], [axis.end for axis in axes]
    make.slice(image, starts, ends, list(range(2, rank + 2)), out=make.outputs[0])


def _axes(make: Maker, sizes: tuple[int, ...], kernel: tuple[int, ...]) -> list[_ConvAxis]:
    """The parameters of every dimension of the image."""
    rank, given = len(sizes), make.attributes
    if any(step != 1 for step in given.get("dilations", ())):
        raise Unsupported(f"dilations {list(given['dilations'])} are not supported; 1 is")
    strides = [int(stride) for stride in given.get("strides", (1,) * rank)]
    made = make.sizes(make.outputs[0])[2:]
    if given.get("auto_pad", b"NOTSET") in (b"NOTSET", b"") and "output_shape" not in given:
        before = [int(pad) for pad in given.get("pads", (0,) * (2 * rank))[:rank]]
    else:
        more = given.get("output_padding", (0,) * rank)
        total = [
            max(stride * (size - 1) + int(extra) + taps - out, 0)
            for stride, size, extra, taps, out in zip(strides, sizes, more, kernel, made, strict=True)
        ]
        upper = given.get("auto_pad") == b"SAME_UPPER"
        before = [pad // 2 if upper else pad - pad // 2 for pad in total]
    return [_ConvAxis.of(*each) for each in zip(sizes, kernel, strides, before, made, strict=True)]


def _weights(make: Maker, weights: NDArray[np.float32], axes: list[_ConvAxis], groups: int) -> str:
    """The filters as a constant: int8 with a scale for each channel if the file has the weights so."""
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
    """[C, M, taps...] -> [groups * stride... * M, C / groups, taps of the convolution...]."""
    depth, count, *kernel = weights.shape
    more = [(0, axis.taps * axis.stride - size) for axis, size in zip(axes, kernel, strict=True)]
    full = np.pad(weights, [(0, 0), (0, 0), *more])
    split = full.reshape(groups, depth // groups, count, *(n for a in axes for n in (a.taps, a.stride)))
    taps = range(3, 3 + 2 * len(axes), 2)
    turned = np.flip(split, tuple(taps)).transpose(0, *(at + 1 for at in taps), 2, 1, *taps)
    return np.ascontiguousarray(turned.reshape(-1, depth // groups, *(axis.taps for axis in axes)))
