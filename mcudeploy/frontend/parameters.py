"""Number of parameters of a file: elements of the tensors that nodes compute with, each counted once."""

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
"""The inputs with values; the others say how these are quantised, limited, padded or resized."""

_NEVER = {TensorProto.INT64, TensorProto.UINT64, TensorProto.BOOL, TensorProto.STRING}
_SELDOM = {TensorProto.INT32, TensorProto.UINT32}
"""Shapes, axes and indices; 32-bit integers are parameters if they are quantised, as biases are."""


def parameter_count(path: Path, shapes: Shapes = NO_SHAPES) -> int:
    """Count the elements of weights, biases and other parameters, as stored; `shapes`: those of --shape.

    Raises ModelError.
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
            read = quantised if tensor.data_type in _SELDOM else values
            if name in read and tensor.data_type not in _NEVER:
                count += prod(tensor.dims)
        count += sum(prod(it.dims) for it in graph.sparse_initializer if it.values.name in values)
    return count
