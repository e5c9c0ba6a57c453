"""QuantizeLinear and DequantizeLinear on activations, and views."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcudeploy.frontend.lower.builder import Builder, OperatorLowering
from mcudeploy.frontend.lower.views import VIEWS, view_index
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.quantization import activation_parameters, is_identity, quantized_dtype
from mcudeploy.frontend.onnx.scalar_functions import FUNCTIONS, OPERATIONS
from mcudeploy.frontend.onnx.values import OnnxValue
from mcudeploy.ir.graph import DType
from mcudeploy.ops.move.quantize import Quantize
from mcudeploy.ops.requantize import quantize


def dequantize_linear(builder: Builder, node: Node) -> None:
    """Lower DequantizeLinear to a table on the stored tensor; a reader that needs floats adds an operator."""
    if node.inputs[0] in builder.constants:
        kind = builder.constants[node.inputs[0]].value.dtype
        raise Unsupported(f"a constant of type {kind} with these parameters is not supported")
    builder.define(node.output, builder.dequantized(node))


def quantize_linear(builder: Builder, node: Node) -> None:
    """Lower QuantizeLinear: on a float tensor to Quantize, on an int8 tensor to a lookup table or nothing."""
    dtype = quantized_dtype(builder.model, builder.constants, node)
    quantization = activation_parameters(builder.constants, node, dtype)
    value = builder.value(node.inputs[0])
    if not value.real:
        raise Unsupported("QuantizeLinear needs float32, its input is integer")
    if value.table is None:
        shape = builder.shape_of(value.tensor)
        tensor = builder.emit(Quantize(), (value.tensor,), shape, DType.INT8, quantization, nodes=(node,))
        builder.define(node.output, OnnxValue(tensor, value.index, real=False, quantization=quantization))
        return
    table = quantize(np.asarray(value.table, np.float32), quantization)
    result = replace(value, real=False, table=table, quantization=quantization)
    if is_identity(table):
        builder.define(node.output, replace(result, table=None))
        return
    builder.define(node.output, result)
    if not _can_stay_table(builder, node.output, value.tensor):
        builder.integers(node.output)


def _can_stay_table(builder: Builder, name: str, tensor: str) -> bool:
    """Whether all readers combine a value, which is a table on `tensor`, only with others on `tensor`.

    Then one table covers each combination, and the value needs no memory.
    """
    readers = builder.consumers.get(name, [])
    if name in builder.outputs or not readers:
        return False
    for reader in readers:
        if reader.op != "DequantizeLinear" or reader.output in builder.outputs:
            return False
        for user in builder.consumers.get(reader.output, []):
            if user.op in FUNCTIONS or user.op == "QuantizeLinear":
                continue
            if user.op not in OPERATIONS:
                return False
            for operand in user.inputs:
                value = builder.values.get(operand)
                constant = builder.constants.get(operand)
                if operand == reader.output or (constant is not None and constant.value.size == 1):
                    continue
                if value is None or value.tensor != tensor or value.table is None or not value.real:
                    return False
    return True


def view(builder: Builder, node: Node) -> None:
    """Lower a view: only the index array changes."""
    value = builder.value(node.inputs[0])
    builder.define(node.output, replace(value, index=view_index(builder.constants, node, value.index)))


def real_view(builder: Builder, node: Node) -> OnnxValue:
    """Lower the operator on a float tensor."""
    value = builder.real(node.inputs[0])
    return replace(value, index=view_index(builder.constants, node, value.index))


def dropout(builder: Builder, node: Node) -> None:
    """Refuse: simplification has removed Dropout nodes without effect."""
    raise Unsupported("Dropout in training mode, or with a mask that is read, is not supported")


LOWERINGS: dict[str, OperatorLowering] = {
    **dict.fromkeys(VIEWS, OperatorLowering(view, "free", real=real_view)),
    "DequantizeLinear": OperatorLowering(dequantize_linear, "free"),
    "Dropout": OperatorLowering(dropout, "free", only="inference"),
    "QuantizeLinear": OperatorLowering(quantize_linear, "free"),
    "Reshape": OperatorLowering(view, "free", only="shape constant", real=real_view),
}
