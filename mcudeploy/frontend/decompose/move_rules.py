"""Rules for operators that only move elements, or change their type."""

from __future__ import annotations

import numpy as np

from mcudeploy.common.text import printable
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import element_type


def center_crop_pad(make: Maker) -> None:
    """Replace CenterCropPad by a Pad, whose negative amounts crop."""
    x, wanted = make.inputs
    shape, sizes = make.shape(x), make.known(wanted)
    if shape is None or sizes is None:
        return
    rank = len(shape)
    axes = make.attributes.get("axes") or range(rank)
    amounts = [0] * (2 * rank)
    for axis, size in zip(axes, sizes.reshape(-1).tolist(), strict=True):
        growth = size - shape[axis]
        before = growth // 2 if growth > 0 else -(-growth // 2)
        amounts[axis % rank], amounts[axis % rank + rank] = before, growth - before
    make.add("Pad", x, make.int64(amounts), out=make.outputs[0])


def concat(make: Maker) -> None:
    """Leave out operands without elements, which no other operator may read."""
    shapes = [make.shape(name) for name in make.inputs]
    operands = [
        name for name, shape in zip(make.inputs, shapes, strict=True) if shape is None or 0 not in shape
    ]
    if operands and len(operands) < len(make.inputs):
        op, attributes = ("Concat", make.attributes) if len(operands) > 1 else ("Identity", {})
        make.add(op, *operands, out=make.outputs[0], **attributes)


def trilu(make: Maker) -> None:
    """Replace Trilu by a Where with a constant mask. Times 0, infinities would become NaN."""
    x, *optional = make.inputs
    shape = make.shape(x)
    diagonal = make.known(optional[0]) if optional and optional[0] else np.zeros((), np.int64)
    if shape is None or len(shape) < 2 or diagonal is None:
        return
    zero = make.constant(0, make.dtype(x) or np.float32)
    triangle = np.triu if make.attributes.get("upper", 1) else np.tril
    mask = triangle(np.ones(shape[-2:], np.bool_), int(diagonal.reshape(-1)[0]))
    make.add("Where", make.constant(mask, np.bool_), x, zero, out=make.outputs[0])


def cast_like(make: Maker) -> None:
    """Cast to the type of the second input."""
    x, like = make.inputs
    try:
        to = element_type(make.dtype(like) or "undefined")
    except TypeError as fault:  # a type that numpy does not have
        raise Unsupported(f"the type of {printable(like)!r} is not supported") from fault
    make.add("Cast", x, out=make.outputs[0], to=to)


def depth_to_space(make: Maker) -> None:
    """Move channels into blocks of pixels."""
    (batch, channels, rows, cols), block = make.sizes(make.inputs[0]), make.integer("blocksize")
    if block < 1 or channels % block**2:
        raise Unsupported(f"{channels} channels do not make blocks of {block} x {block} pixels")
    depth = channels // block**2
    if make.attributes.get("mode", b"DCR") == b"CRD":
        split_shape, perm = (batch, depth, block, block, rows, cols), (0, 1, 4, 2, 5, 3)
    else:
        split_shape, perm = (batch, block, block, depth, rows, cols), (0, 3, 4, 1, 5, 2)
    moved = make.add("Transpose", make.reshaped(make.inputs[0], split_shape), perm=perm)
    make.reshaped(moved, (batch, depth, rows * block, cols * block), out=make.outputs[0])


def space_to_depth(make: Maker) -> None:
    """Move blocks of pixels into channels."""
    (batch, channels, rows, cols), block = make.sizes(make.inputs[0]), make.integer("blocksize")
    if block < 1 or rows % block or cols % block:
        raise Unsupported(f"{rows} x {cols} pixels do not consist of blocks of {block} x {block}")
    split_shape = (batch, channels, rows // block, block, cols // block, block)
    crd = make.attributes.get("mode", b"DCR") == b"CRD"
    perm = (0, 1, 3, 5, 2, 4) if crd else (0, 3, 5, 1, 2, 4)
    moved = make.add("Transpose", make.reshaped(make.inputs[0], split_shape), perm=perm)
    make.reshaped(moved, (batch, channels * block**2, rows // block, cols // block), out=make.outputs[0])
