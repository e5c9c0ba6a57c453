"""Nodes that round as the file's format defines, if ONNX leaves the rounding to the next QuantizeLinear.

The front end reads such a node as its ONNX operator, with the rounding beside it. For the reference it is a
function of ONNX operators that computes the rounded values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, helper

from mcudeploy.ir.graph import Quantization
from mcudeploy.ops.pool import Ties

DOMAIN = "tflite"
"""Domain of nodes that ONNX lacks or rounds otherwise."""
TRANSLATOR = "mcudeploy, of a .tflite file"
"""Producer of models that were .tflite files."""
_OPSET = 17


@dataclass(frozen=True, slots=True)
class ExactRounding:
    """Direction in which ties of a node's result round; the result is quantised as its input, with this scale
    and zero point of the file's type.
    """

    ties: Ties
    quantization: Quantization


def round_exactly(proto: ModelProto, roundings: Mapping[str, ExactRounding]) -> None:
    """Turn these nodes, by name, into the functions that round exactly."""
    for node in proto.graph.node:
        rounding = roundings.get(node.name)
        if rounding is None:
            continue
        node.domain = DOMAIN
        meaning = rounding.quantization
        for name, value in (("scale", meaning.scale), ("zero_point", float(meaning.zero_point))):
            node.attribute.append(helper.make_attribute(name, value))
    if roundings:
        proto.functions.append(_average_pool())


def _average_pool() -> FunctionProto:
    """Compute the mean of the stored values, with ties rounded away from zero."""
    lists = dict.fromkeys(("kernel_shape", "strides", "pads"), AttributeProto.INTS)
    numbers = dict.fromkeys(("scale", "zero_point"), AttributeProto.FLOAT)
    pool = _node("AveragePool", "steps", "mean")
    pool.attribute.extend(_reference(name, name, kind) for name, kind in lists.items())
    nodes = [
        *(_constant(name) for name in numbers),
        _node("Constant", "", "half", value_float=0.5),
        _node("Div", "x scale", "quotient"),
        _node("Round", "quotient", "steps"),
        pool,
        _node("Add", "mean zero_point", "stored"),
        _node("Abs", "stored", "size"),
        _node("Add", "size half", "beyond"),
        _node("Floor", "beyond", "whole"),
        _node("Sign", "stored", "sign"),
        _node("Mul", "whole sign", "rounded"),
        _node("Sub", "rounded zero_point", "difference"),
        _node("Mul", "difference scale", "y"),
    ]
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_function(DOMAIN, "AveragePool", ["x"], ["y"], nodes, opsets, [*lists, *numbers])


def _node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


def _constant(name: str) -> NodeProto:
    node = _node("Constant", "", name)
    node.attribute.append(_reference("value_float", name, AttributeProto.FLOAT))
    return node


def _reference(name: str, to: str, kind: AttributeProto.AttributeType) -> AttributeProto:
    return AttributeProto(name=name, ref_attr_name=to, type=kind)
