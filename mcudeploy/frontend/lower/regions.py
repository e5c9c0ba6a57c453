"""Regions of images: selected boxes, pixels at computed positions, and pools over regions."""

from __future__ import annotations

import numpy as np

from mcudeploy.frontend.lower.builder import Builder, Lowering, OperatorLowering
from mcudeploy.frontend.onnx.constants import integers_of
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, image_index, image_positions, positions
from mcudeploy.ir.graph import DType
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.image.grid_sample import MODES, PADDINGS, GridSample
from mcudeploy.ops.image.roi_align import RoiAlign
from mcudeploy.ops.image.suppression import NonMaxSuppression


def box_selection(builder: Builder, node: Node) -> None:
    """Lower BoxSelection, whose inputs are boxes [N, 4], scores [N] and limits.

    The limits are the number of results, the largest overlap and the lowest score.
    """
    boxes, scores = (builder.real(name) for name in node.inputs[:2])
    (count,) = integers_of(builder.constant(node.input(2), "the number of boxes"))
    overlap, score = (float(builder.constant(node.input(at), "a limit").value.item()) for at in (3, 4))
    box_count = boxes.shape[0]
    box_rows = builder.arranged(boxes.tensor, boxes.index.reshape(box_count, 1, 4), (node,))
    score_row = builder.arranged(scores.tensor, scores.index.reshape(1, 1, box_count), (node,))
    op = NonMaxSuppression(count, score, overlap)
    tensor = builder.emit(op, (box_rows, score_row), (1, 1, count), DType.INT32, nodes=(node,))
    builder.define(node.output, OnnxValue(tensor, positions((count,)), real=False))


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


def roi_align(builder: Builder, node: Node) -> None:
    """Lower RoiAlign in float. There is one image, so the batch indices of regions are ignored."""
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
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    mode = node.text("mode", "avg")
    if mode not in ("avg", "max"):
        raise Unsupported(f"mode {mode!r} is not supported; avg and max are")
    bins = node.integer("output_height", 1), node.integer("output_width", 1)
    op = RoiAlign(
        bins,
        node.integer("sampling_ratio", 0),
        node.number("spatial_scale", 1.0),
        coordinates == "half_pixel",
        mode == "max",
        count if regions is not None else None,
    )
    channels = builder.shape_of(source)[2]
    shape = (count * bins[0], bins[1], channels)
    tensor = builder.emit(op, inputs, shape, DType.FLOAT32, constants=constants, nodes=(node,))
    index = positions((count, *bins, channels)).transpose(0, 3, 1, 2)
    builder.define(node.output, OnnxValue(tensor, index, real=True))


LOWERINGS: dict[str, OperatorLowering] = {
    "GridSample": OperatorLowering(grid_sample, only="2-D images"),
    "RoiAlign": OperatorLowering(roi_align, only="batch 1; float32"),
}
PRIVATE: dict[str, Lowering] = {"BoxSelection": box_selection}
