"""Nodes of .tflite files that round their results, while ONNX leaves this to the next QuantizeLinear.

The front end reads such a node as an ONNX operator, and its rounding from a table beside the model. For the
reference the node is a function of ONNX operators that computes the rounded values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import FunctionProto, ModelProto, helper

from mcudeploy.frontend.onnx.protos import function_of
from mcudeploy.ir.graph import Quantization
from mcudeploy.ops.pool.pool import Ties

DOMAIN = "tflite"
"""The private domain, of nodes that ONNX does not have, or rounds differently."""
TRANSLATOR = "mcudeploy, of a .tflite file"
"""Producer of models that were .tflite files."""
_OPSET = 17


@dataclass(frozen=True, slots=True)
class ExactRounding:
    """The rounding of a node: the direction of ties, and the quantisation of both its input and its result.

    The zero point is that of the file's type.
    """

    ties: Ties
    quantization: Quantization


def round_exactly(proto: ModelProto, roundings: Mapping[str, ExactRounding]) -> None:
    """Replace the nodes with these names by functions that round as the file's format does."""
    for node in proto.graph.node:
        rounding = roundings.get(node.name)
        if rounding is None:
            continue
        node.domain = DOMAIN
        stored = rounding.quantization
        for name, value in (("scale", stored.scale), ("zero_point", float(stored.zero_point))):
            node.attribute.append(helper.make_attribute(name, value))
    if roundings:
        proto.functions.append(_average_pool())


def _average_pool() -> FunctionProto:
    """The function AveragePool: the mean of the stored values, with ties rounded away from zero."""
    text = """
    AveragePool <kernel_shape, strides, pads, scale, zero_point> (x) => (y) {
      scale = Constant <value_float: float = @scale> ()
      zero_point = Constant <value_float: float = @zero_point> ()
      half = Constant <value_float = 0.5> ()
      quotient = Div (x, scale)
      steps = Round (quotient)
      mean = AveragePool <
        kernel_shape: ints = @kernel_shape, strides: ints = @strides, pads: ints = @pads
      > (steps)
      stored = Add (mean, zero_point)
      size = Abs (stored)
      beyond = Add (size, half)
      whole = Floor (beyond)
      sign = Sign (stored)
      rounded = Mul (whole, sign)
      difference = Sub (rounded, zero_point)
      y = Mul (difference, scale)
    }
    """
    return function_of(text, DOMAIN, _OPSET)
