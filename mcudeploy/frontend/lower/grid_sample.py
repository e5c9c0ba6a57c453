"""GridSample: an image at computed positions, in float."""

from __future__ import annotations

import numpy as np

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, image_index, image_positions
from mcudeploy.ir.graph import DType
from mcudeploy.ops.grid_sample import MODES, PADDINGS, GridSample


def grid_sample(builder: Builder, node: Node) -> None:
    """Lower GridSample of one two-dimensional image with a computed grid."""
    mode, padding = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    if mode not in MODES or padding not in PADDINGS:
        raise Unsupported(f"mode {mode!r} with padding_mode {padding!r} is not supported")
    image, grid = (builder.real(name) for name in node.inputs)
    if image.index.ndim != 4 or grid.index.ndim != 4 or grid.shape[0] != 1:
        raise Unsupported(f"an image {list(image.shape)} is not supported: one of two dimensions is")
    source = builder.arranged(image.tensor, image_positions(image.index))
    places = builder.arranged(grid.tensor, np.ascontiguousarray(grid.index[0]))
    op = GridSample(MODES[mode], padding, bool(node.integer("align_corners", 0)))
    shape = (*builder.shape_of(places)[:2], builder.shape_of(source)[2])
    tensor = builder.emit(op, (source, places), shape, DType.FLOAT32, nodes=(node,))
    builder.define(node.output, OnnxValue(tensor, image_index(shape, 4), real=True))
