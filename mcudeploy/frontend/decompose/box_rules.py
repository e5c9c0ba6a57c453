"""Rule for NonMaxSuppression with a fixed number of rows: one BoxSelection for each image and class."""

from __future__ import annotations

import numpy as np
from onnx import helper

from mcudeploy.frontend.decompose.index_rules import as_activation
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.rounding import DOMAIN


def non_max_suppression(make: Maker) -> None:
    """Write rows [image, class, box] in the order of ONNX, then rows of -1."""
    boxes, scores, max_boxes, max_overlap, min_score = make.inputs
    (images, count, _), (_, classes, _) = make.sizes(boxes), make.sizes(scores)
    per_class = min(int(_limit(make, max_boxes, "max_output_boxes_per_class")), count)
    if per_class < 1:
        raise Unsupported("max_output_boxes_per_class is 0, so that no box is chosen")
    score_limit = np.float32(_limit(make, min_score, "score_threshold"))
    limits = [
        make.int64([per_class]),
        make.constant(_limit(make, max_overlap, "iou_threshold")),
        make.constant(np.nextafter(score_limit, np.float32(np.inf))),  # ONNX omits scores equal to the limit
    ]
    if make.is_constant(scores):
        scores = as_activation(make, scores, make.reshaped(boxes, [-1]))
    elif make.is_constant(boxes):
        boxes = as_activation(make, boxes, make.reshaped(scores, [-1]))
    selections = []
    for image in range(images):
        corners = _corners(make, _entry(make, boxes, image))
        image_scores = _entry(make, scores, image)
        for class_number in range(classes):
            inputs = [corners, _entry(make, image_scores, class_number), *limits]
            selected = make.add("BoxSelection", *inputs, domain=DOMAIN)
            make.state(selected, np.int64, (per_class,))
            selections.append(make.reshaped(selected, [per_class, 1]))
    box_numbers = selections[0] if len(selections) == 1 else make.add("Concat", *selections, axis=0)
    gaps = make.add("Min", box_numbers, make.int64([[0]]))  # -1 where a row has no box, else 0
    groups = np.repeat(np.arange(len(selections)), per_class).reshape(-1, 1)
    columns = [_column(make, gaps, each) for each in (groups // classes, groups % classes)]
    if len(selections) == 1:
        make.add("Concat", *columns, box_numbers, out=make.outputs[0], axis=1)
        return
    rows = make.add("Concat", *columns, box_numbers, axis=1)
    # TopK keeps the order of equal keys, so that it moves the gaps to the end and nothing else.
    key, order = make.reshaped(gaps, [len(groups)]), f"{make.stem}/order"
    row_count = make.int64([len(groups)])
    make.nodes.append(helper.make_node("TopK", [key, row_count], [f"{order} key", order], name=make.label))
    make.add("Gather", rows, order, out=make.outputs[0], axis=0)


def _limit(make: Maker, name: str, label: str) -> float:
    return float(make.constant_of(name, label).reshape(-1)[0])


def _entry(make: Maker, x: str, number: int) -> str:
    """One entry along the first axis, without the axis."""
    return make.add("Gather", x, make.int64(number), axis=0)


def _corners(make: Maker, boxes: str) -> str:
    """Two opposite corners of boxes [count, 4], which the file may state by their centre and size."""
    if not make.integer("center_point_box"):
        return boxes
    middle, size = (make.slice(boxes, [first], [first + 2], [1]) for first in (0, 2))
    half = make.add("Mul", size, make.constant(0.5))
    return make.add("Concat", make.add("Sub", middle, half), make.add("Add", middle, half), axis=1)


def _column(make: Maker, gaps: str, numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> str:
    """The elements of `numbers` where `gaps` is 0, and -1 where it is -1."""
    if not numbers.any():
        return gaps
    product = make.add("Mul", make.int64(numbers + 1), gaps)
    return make.add("Add", product, make.int64(numbers))
