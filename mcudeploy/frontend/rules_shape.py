"""Rules for operators that only move elements, or change their type."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from mcudeploy.frontend.maker import Maker


def cast_like(node: NodeProto, make: Maker) -> bool:
    """A Cast to the type of the second input."""
    x, like = node.input
    try:
        to = helper.np_dtype_to_tensor_dtype(np.dtype(make.dtype(like) or "undefined"))
    except TypeError:  # a type that numpy does not have
        return False
    make.add("Cast", x, out=node.output[0], to=to)
    return True


def depth_to_space(node: NodeProto, make: Maker) -> bool:
    """Channels become blocks of pixels."""
    shape, block = make.shape(node.input[0]), int(make.attributes.get("blocksize", 0))
    if shape is None or len(shape) != 4 or block < 1 or shape[1] % block**2:
        return False
    batch, channels, rows, cols = shape
    depth = channels // block**2
    if make.attributes.get("mode", b"DCR") == b"CRD":
        apart, perm = (batch, depth, block, block, rows, cols), (0, 1, 4, 2, 5, 3)
    else:
        apart, perm = (batch, block, block, depth, rows, cols), (0, 3, 4, 1, 5, 2)
    moved = make.add("Transpose", make.reshaped(node.input[0], apart), perm=perm)
    make.reshaped(moved, (batch, depth, rows * block, cols * block), out=node.output[0])
    return True


def space_to_depth(node: NodeProto, make: Maker) -> bool:
    """Blocks of pixels become channels."""
    shape, block = make.shape(node.input[0]), int(make.attributes.get("blocksize", 0))
    if shape is None or len(shape) != 4 or block < 1 or shape[2] % block or shape[3] % block:
        return False
    batch, channels, rows, cols = shape
    apart = (batch, channels, rows // block, block, cols // block, block)
    crd = make.attributes.get("mode", b"DCR") == b"CRD"
    perm = (0, 1, 3, 5, 2, 4) if crd else (0, 3, 5, 1, 2, 4)
    moved = make.add("Transpose", make.reshaped(node.input[0], apart), perm=perm)
    make.reshaped(moved, (batch, channels * block**2, rows // block, cols // block), out=node.output[0])
    return True
