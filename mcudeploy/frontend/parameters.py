"""Number of parameters of a model file."""

from __future__ import annotations

from math import prod
from pathlib import Path

from onnx import TensorProto

from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.frontend.onnx.protos import constants_of, graphs_of
from mcudeploy.frontend.onnx.shapes import NO_SHAPES, Shapes
from mcudeploy.frontend.parsing import parse

_VALUES = {
    "QuantizeLinear": (0,),
    "DequantizeLinear": (0,),
    "QLinearConv": (0, 3, 8),
    "QLinearMatMul": (0, 3),
    "QLinearAdd": (0, 3),
    "QLinearMul": (0, 3),
    "QGemm": (0, 3, 6),
    "ConvInteger": (0, 1),
    "MatMulInteger": (0, 1),
    "Clip": (0,),
    "Pad": (0,),
    "Resize": (0,),
    "Upsample": (0,),
}
"""Positions of the inputs with values; others state how values are quantised, clipped, padded or resized."""

_NOT_PARAMETERS = {TensorProto.INT64, TensorProto.UINT64, TensorProto.BOOL, TensorProto.STRING}
"""Types of shapes, axes, indices and masks."""
_PARAMETERS_IF_QUANTISED = {TensorProto.INT32, TensorProto.UINT32}
"""Types of shapes, axes and indices, and also of quantised biases."""


def parameter_count(path: Path, shapes: Shapes = NO_SHAPES) -> int:
    """Count the elements of weights, biases and other constants of values, each stored tensor once.

    `shapes`: those of --shape. Raises ModelError for files that cannot be parsed.
    """
    graphs = list(graphs_of(parse(path, InputChoices(shapes)).proto.graph))
    values, quantised = set[str](), set[str]()
    for node in (node for graph in graphs for node in graph.node):
        places = (0,) if node.op_type.startswith("QLinear") else range(len(node.input))
        names = {node.input[at] for at in _VALUES.get(node.op_type, places) if at < len(node.input)}
        values |= names
        quantised |= names if node.op_type in _VALUES else set()
    count = 0
    for graph in graphs:
        for name, tensor in constants_of(graph).items():
            read = quantised if tensor.data_type in _PARAMETERS_IF_QUANTISED else values
            if name in read and tensor.data_type not in _NOT_PARAMETERS:
                count += prod(tensor.dims)
        count += sum(prod(it.dims) for it in graph.sparse_initializer if it.values.name in values)
    return count
