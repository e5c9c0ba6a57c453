"""Choice of boxes in .tflite files."""

from __future__ import annotations

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.onnx.constants import integers_of
from mcudeploy.frontend.onnx.nodes import Node
from mcudeploy.frontend.onnx.values import OnnxValue, positions
from mcudeploy.ir.graph import DType
from mcudeploy.ops.suppression import NonMaxSuppression


def box_selection(builder: Builder, node: Node) -> None:
    """BoxSelection: boxes [N, 4], scores [N], the number of results, the overlap and the lowest score."""
    boxes, scores = (builder.real(name) for name in node.inputs[:2])
    (count,) = integers_of(builder.constant(node.input(2), "the number of boxes"))
    most, least = (float(builder.constant(node.input(at), "a limit").value.item()) for at in (3, 4))
    number = boxes.shape[0]
    box_rows = builder.arranged(boxes.tensor, boxes.index.reshape(number, 1, 4), (node,))
    vector = builder.arranged(scores.tensor, scores.index.reshape(1, 1, number), (node,))
    op = NonMaxSuppression(count, least, most)
    tensor = builder.emit(op, (box_rows, vector), (1, 1, count), DType.INT32, nodes=(node,))
    builder.define(node.output, OnnxValue(tensor, positions((count,)), real=False))
