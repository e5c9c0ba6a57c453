"""Nodes that read and replace states, as ONNX functions for the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, helper

from mcudeploy.frontend.onnx.rounding import DOMAIN

QUEUE = "Queue"
"""Operator on the newest rows and a state: the state without its oldest rows, and the newest at its end."""
LOAD = "Load"
"""Operator on a state: a copy of it."""


def queue_attributes(axis: int, rows: int) -> dict[str, Any]:
    """The attributes of a QUEUE that `rows` new rows enter along an axis."""
    return {"axis": axis, "axes": [axis], "first": [rows]}


def state_functions(opset: int) -> list[FunctionProto]:
    """The nodes as functions of ONNX operators."""
    opsets = [helper.make_opsetid("", opset)]
    nodes = [
        _constant("first", "start"),
        _constant("axes", "along"),
        helper.make_node("Constant", [], ["end"], value_ints=[np.iinfo(np.int32).max]),
        helper.make_node("Slice", ["state", "start", "end", "along"], ["younger"]),
        helper.make_node("Concat", ["younger", "x"], ["y"]),
    ]
    nodes[-1].attribute.append(AttributeProto(name="axis", ref_attr_name="axis", type=AttributeProto.INT))
    same = [helper.make_node("Identity", ["state"], ["y"])]
    return [
        helper.make_function(DOMAIN, QUEUE, ["x", "state"], ["y"], nodes, opsets, ["axis", "axes", "first"]),
        helper.make_function(DOMAIN, LOAD, ["state"], ["y"], same, opsets),
    ]


def _constant(attribute: str, name: str) -> NodeProto:
    node = helper.make_node("Constant", [], [name])
    node.attribute.append(
        AttributeProto(name="value_ints", ref_attr_name=attribute, type=AttributeProto.INTS)
    )
    return node
