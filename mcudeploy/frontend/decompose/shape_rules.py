"""Rules for operators that only move elements, or change their type."""

from __future__ import annotations

import numpy as np
from onnx import helper

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.names import printable
from mcudeploy.frontend.onnx.nodes import Unsupported


def cast_like(make: Maker) -> None:
    """Cast to the type of the second input."""
    x, like = make.inputs
    try:
        to = helper.np_dtype_to_tensor_dtype(np.dtype(make.dtype(like) or "undefined"))
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
        apart, perm = (batch, depth, block, block, rows, cols), (0, 1, 4, 2, 5, 3)
    else:
        apart, perm = (batch, block, block, depth, rows, cols), (0, 3, 4, 1, 5, 2)
    moved = make.add("Transpose", make.reshaped(make.inputs[0], apart), perm=perm)
    make.reshaped(moved, (batch, depth, rows * block, cols * block), out=make.outputs[0])


def space_to_depth(make: Maker) -> None:
    """Move blocks of pixels into channels."""
    (batch, channels, rows, cols), block = make.sizes(make.inputs[0]), make.integer("blocksize")
    if block < 1 or rows % block or cols % block:
        raise Unsupported(f"{rows} x {cols} pixels do not consist of blocks of {block} x {block}")
    apart = (batch, channels, rows // block, block, cols // block, block)
    crd = make.attributes.get("mode", b"DCR") == b"CRD"
    perm = (0, 1, 3, 5, 2, 4) if crd else (0, 3, 5, 1, 2, 4)
    moved = make.add("Transpose", make.reshaped(make.inputs[0], apart), perm=perm)
    make.reshaped(moved, (batch, channels * block**2, rows // block, cols // block), out=make.outputs[0])
