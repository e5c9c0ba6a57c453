"""Regions of an image."""

from __future__ import annotations

import numpy as np

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, image_positions, positions
from mcudeploy.ir.graph import DType
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.roi_align import RoiAlign


def roi_align(builder: Builder, node: Node) -> None:
    """Lower RoiAlign in float. All regions are of the single image, so the batch indices are ignored."""
    image = builder.real(node.inputs[0])
    source = builder.arranged(image.tensor, image_positions(image.index), (node,))
    inputs, constants = [source], dict[str, ConstantArray]()
    regions = builder.constants.get(node.inputs[1])
    if regions is not None:
        constants["regions"] = np.ascontiguousarray(regions.value, np.float32)
        count = len(regions.value)
    else:
        value = builder.real(node.inputs[1])
        count = value.shape[0]
        inputs.append(builder.arranged(value.tensor, value.index.reshape(count, 1, 4), (node,)))
    how = node.text("coordinate_transformation_mode", "half_pixel")
    mode = node.text("mode", "avg")
    if mode not in ("avg", "max"):
        raise Unsupported(f"mode {mode!r} is not supported; avg and max are")
    bins = node.integer("output_height", 1), node.integer("output_width", 1)
    op = RoiAlign(
        bins,
        node.integer("sampling_ratio", 0),
        node.number("spatial_scale", 1.0),
        how == "half_pixel",
        mode == "max",
        count if regions is not None else None,
    )
    channels = builder.shape_of(source)[2]
    shape = (count * bins[0], bins[1], channels)
    tensor = builder.emit(op, inputs, shape, DType.FLOAT32, constants=constants, nodes=(node,))
    index = positions((count, *bins, channels)).transpose(0, 3, 1, 2)
    builder.define(node.output, OnnxValue(tensor, index, real=True))
