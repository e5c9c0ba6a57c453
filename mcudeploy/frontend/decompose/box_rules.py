"""Rule for NonMaxSuppression with a fixed number of rows: a choice of boxes for each image and class."""

from __future__ import annotations

import numpy as np
from onnx import helper

from mcudeploy.frontend.decompose.index_rules import as_activation
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.rounding import DOMAIN


def non_max_suppression(make: Maker) -> None:
    """Return rows [image, class, box] in the order of ONNX, then rows of -1."""
    boxes, scores, most, overlap, least = make.inputs
    (images, count, _), (_, classes, _) = make.sizes(boxes), make.sizes(scores)
    wanted = min(int(_limit(make, most, "max_output_boxes_per_class")), count)
    if wanted < 1:
        raise Unsupported("max_output_boxes_per_class is 0, so that no box is chosen")
    limit = np.float32(_limit(make, least, "score_threshold"))
    limits = [
        make.int64([wanted]),
        make.constant(_limit(make, overlap, "iou_threshold")),
        make.constant(np.nextafter(limit, np.float32(np.inf))),  # ONNX leaves out scores that equal the limit
    ]
    if make.is_constant(scores):
        scores = as_activation(make, scores, make.reshaped(boxes, [-1]))
    elif make.is_constant(boxes):
        boxes = as_activation(make, boxes, make.reshaped(scores, [-1]))
    chosen = []
    for image in range(images):
        own = _corners(make, _entry(make, boxes, image))
        values = _entry(make, scores, image)
        for number in range(classes):
            inputs = [own, _entry(make, values, number), *limits]
            numbers = make.add("BoxSelection", *inputs, domain=DOMAIN)
            make.state(numbers, np.int64, (wanted,))
            chosen.append(make.reshaped(numbers, [wanted, 1]))
    rows = chosen[0] if len(chosen) == 1 else make.add("Concat", *chosen, axis=0)
    none = make.add("Min", rows, make.int64([[0]]))  # -1 where there is no box
    groups = np.repeat(np.arange(len(chosen)), wanted).reshape(-1, 1)
    columns = [_column(make, none, each) for each in (groups // classes, groups % classes)]
    if len(chosen) == 1:
        make.add("Concat", *columns, rows, out=make.outputs[0], axis=1)
        return
    triples = make.add("Concat", *columns, rows, axis=1)
    key, order = make.reshaped(none, [len(groups)]), f"{make.stem}/order"  # of equal values the first ones
    count_all = make.int64([len(groups)])
    make.nodes.append(helper.make_node("TopK", [key, count_all], [f"{order} key", order], name=make.label))
    make.add("Gather", triples, order, out=make.outputs[0], axis=0)


def _limit(make: Maker, name: str, label: str) -> float:
    return float(make.constant_of(name, label).reshape(-1)[0])


def _entry(make: Maker, x: str, number: int) -> str:
    """One entry along the first axis, without the axis."""
    return make.add("Gather", x, make.int64(number), axis=0)


def _corners(make: Maker, boxes: str) -> str:
    """Two opposite corners of boxes [count, 4]; of the centre and the size if the node has these."""
    if not make.integer("center_point_box"):
        return boxes
    middle, size = (make.slice(boxes, [first], [first + 2], [1]) for first in (0, 2))
    half = make.add("Mul", size, make.constant(0.5))
    return make.add("Concat", make.add("Sub", middle, half), make.add("Add", middle, half), axis=1)


def _column(make: Maker, none: str, numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> str:
    """These numbers where `none` is 0, and -1 where it is -1."""
    if not numbers.any():
        return none
    product = make.add("Mul", make.int64(numbers + 1), none)
    return make.add("Add", product, make.int64(numbers))
