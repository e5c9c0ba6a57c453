"""TFLite_Detection_PostProcess: boxes decoded from anchors, the best of them, their classes and scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import FunctionProto, TensorProto

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import function_of
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.tflite.contents import TfliteOperator
from mcudeploy.frontend.tflite.scales import reals
from mcudeploy.frontend.tflite.writer import OPSET, Writer

BOX_SELECTION = "BoxSelection"
"""Operator that selects boxes. Inputs: boxes [N, 4], scores [N], the number of results, the largest overlap,
the lowest score, the next smaller float, and a vector of -1 for each result. Results: int64 numbers of boxes,
then -1. ONNX excludes scores that equal its limit, and so takes the next smaller float.
"""
_OPTIONS = "y_scale", "x_scale", "h_scale", "w_scale"


@dataclass(frozen=True, slots=True)
class _DetectionSizes:
    """The number of anchors, of selected boxes, and of classes for each of these."""

    anchors: int
    boxes: int
    classes: int


def detection(writer: Writer, operator: TfliteOperator) -> None:
    """Translate the fast variant, which selects boxes of all classes together.

    Inputs are encodings [1, N, 4], scores [1, N, classes] and constant anchors [N, 4]. Outputs are boxes,
    classes, scores, and the number of boxes; elements after the last box are zeros.
    """
    if operator.flag("use_regular_nms"):
        raise Unsupported("use_regular_nms is not supported: convert the model with use_regular_nms=false")
    encodings, scores = (writer.input(operator, at) for at in (0, 1))
    if len(encodings.shape) != 3 or len(scores.shape) != 3 or encodings.shape[0] != 1:
        raise Unsupported(
            f"{list(encodings.shape)} and {list(scores.shape)} are not boxes and scores of one image"
        )
    labels = operator.integer("num_classes")
    background = scores.shape[2] - labels
    sizes = _DetectionSizes(
        encodings.shape[1],
        operator.integer("max_detections"),
        min(operator.integer("max_classes_per_detection"), labels),
    )
    if min(sizes.boxes, sizes.classes) < 1 or background not in (0, 1):
        raise Unsupported(f"{labels} classes do not fit scores {list(scores.shape)}")
    boxes = _decoded(writer, operator, sizes.anchors)
    values = writer.reshaped(writer.real(scores), [sizes.anchors, scores.shape[2]])
    if background:
        limits = (writer.int64([each]) for each in (1, scores.shape[2], 1))
        values = writer.part("Slice", [values, *limits])
    best, classes = writer.nodes("TopK", [values, writer.int64([sizes.classes])], 2, main=False, axis=-1)
    highest = writer.part("Gather", [best, writer.int64(0)], axis=1)
    numbers = _selected(writer, operator, (boxes, highest), sizes.boxes)
    zero = writer.int64(0)
    is_box = writer.part("GreaterOrEqual", [numbers, zero])
    valid_numbers = writer.part("Max", [numbers, zero])
    box_flags = writer.part("Cast", [is_box], to=TensorProto.FLOAT)
    classes = writer.part("Cast", [classes], to=TensorProto.FLOAT)
    is_box_row = writer.reshaped(is_box, [sizes.boxes, 1])
    selected = [_rows(writer, table, valid_numbers, is_box_row) for table in (boxes, classes, best)]
    if sizes.classes > 1:
        repeated = writer.reshaped(selected[0], [sizes.boxes, 1, 4])
        shape = writer.int64([sizes.boxes, sizes.classes, 4])
        selected[0] = writer.part("Expand", [repeated, shape])
    count = writer.part("ReduceSum", [box_flags], keepdims=1)
    results = sizes.boxes * sizes.classes
    shapes = [1, results, 4], [1, results], [1, results], [1]
    for position, (name, result_shape) in enumerate(zip((*selected, count), shapes, strict=True)):
        tensor = writer.output(operator, position)
        if tensor.kind != "FLOAT32":
            raise Unsupported(f"its result {tensor.label} is {tensor.kind}; FLOAT32 is supported")
        writer.set_shape(tensor, tuple(result_shape))
        writer.keep(writer.output(operator, position), writer.reshaped(name, result_shape))


def _decoded(writer: Writer, operator: TfliteOperator, count: int) -> str:
    """The corners [N, 4] of the boxes: row and column of the first corner, then of the second one."""
    anchors = reals(writer.input(operator, 2))
    if anchors.shape != (count, 4):
        raise Unsupported(f"anchors {list(anchors.shape)} do not fit {count} boxes")
    encodings = writer.input(operator, 0)
    if encodings.shape[2] != 4:
        raise Unsupported(f"boxes of {encodings.shape[2]} values are not supported; of 4 they are")
    scales = np.array([operator.number(name) for name in _OPTIONS], np.float32)
    values = writer.reshaped(writer.real(encodings), [count, 4])
    values = writer.part("Div", [values, writer.constant(scales)])
    places, extents = writer.nodes("Split", [values, writer.int64([2, 2])], 2, main=False, axis=1)
    size, centre = (writer.constant(np.ascontiguousarray(each)) for each in (anchors[:, 2:], anchors[:, :2]))
    half_size = writer.constant(np.ascontiguousarray(anchors[:, 2:] * np.float32(0.5)))
    box_centre = writer.part("Add", [writer.part("Mul", [places, size]), centre])
    half_extent = writer.part("Mul", [writer.part("Exp", [extents]), half_size])
    corners = [writer.part(op, [box_centre, half_extent]) for op in ("Sub", "Add")]
    return writer.part("Concat", corners, axis=1)


def _selected(writer: Writer, operator: TfliteOperator, operands: tuple[str, str], count: int) -> str:
    """The numbers [count] of the selected boxes, then -1; `operands`: boxes and scores."""
    limits = [operator.number(name) for name in ("nms_iou_threshold", "nms_score_threshold")]
    max_overlap, min_score = (writer.float32(each) for each in limits)
    below = writer.constant(np.nextafter(np.float32(limits[1]), np.float32(-np.inf)))
    none = writer.constant(np.full(count, -1, np.int64))
    overload = writer.overload(_function)
    inputs = [*operands, writer.int64([count]), max_overlap, min_score, below, none]
    onnx_name = writer.node(BOX_SELECTION, inputs, domain=DOMAIN, overload=overload)
    writer.declare(onnx_name, (count,), "int64")
    return onnx_name


def _rows(writer: Writer, table: str, numbers: str, is_box: str) -> str:
    """The rows of a table with these numbers, zeros where there is no box."""
    rows = writer.part("Gather", [table, numbers], axis=0)
    return writer.part("Where", [is_box, rows, writer.float32(0)])


def _function(name: str) -> FunctionProto:
    """The operator BOX_SELECTION as ONNX operators, for the reference."""
    text = f"""
    {BOX_SELECTION} (boxes, scores, count, most, least, below, none) => (y) {{
      front = Constant <value_ints = [0]> ()
      fronts = Constant <value_ints = [0, 1]> ()
      box = Constant <value_int = 2> ()
      one_image = Unsqueeze (boxes, front)
      one_class = Unsqueeze (scores, fronts)
      triples = NonMaxSuppression (one_image, one_class, count, most, below)
      numbers = Gather <axis = 1> (triples, box)
      all = Concat <axis = 0> (numbers, none)
      y = Slice (all, front, count)
    }}
    """
    function = function_of(text, DOMAIN, OPSET)
    function.overload = name
    return function
