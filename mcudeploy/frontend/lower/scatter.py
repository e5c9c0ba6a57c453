"""ScatterND of rows of a matrix, the form to which rules reduce all operators that write at indices."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, positions
from mcudeploy.ir.graph import UNSIGNED_OFFSET, DType, Quantization
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.scatter import ScatterReduction, ScatterRows


def scatter(builder: Builder, node: Node) -> None:
    """Lower ScatterND: data [rows, width], indices [count, 1], updates [count, width]; constant data is
    zero.
    """
    data = builder.operand(node.inputs[0])
    updates = builder.value(node.inputs[2])
    reduction = _reduction(node)
    rows, width = data.shape
    count = updates.shape[0]
    sources = _sources(builder, node, data, reduction)
    inputs, constants = _indices(builder, node, count)
    for value in sources:
        shaped = value.index.reshape(value.shape[0], 1, width)
        inputs.append(builder.arranged(value.tensor, shaped, (node,)))
    op = ScatterRows(reduction, rows if isinstance(data, Constant) else None, bool(constants))
    like = builder.tensors[inputs[-1]]
    shape = (rows, 1, width)
    tensor = builder.emit(
        op, inputs, shape, like.dtype, like.quantization, constants=constants, nodes=(node,)
    )
    builder.define(node.output, replace(sources[0], tensor=tensor, index=positions((rows, width))))


def _reduction(node: Node) -> ScatterReduction:
    found = node.text("reduction", "none")
    for known in get_args(ScatterReduction):
        if found == known:
            reduction: ScatterReduction = known
            return reduction
    raise Unsupported(f"reduction {found!r} is not supported")


def _indices(builder: Builder, node: Node, count: int) -> tuple[list[str], dict[str, ConstantArray]]:
    """The input that holds the indices, or the constant."""
    constant = builder.constants.get(node.inputs[1])
    if constant is not None:
        return [], {"indices": constant.value.astype(np.int32).reshape(-1)}
    value = builder.value(node.inputs[1])
    return [builder.arranged(value.tensor, value.index.reshape(1, 1, count), (node,))], {}


def _sources(
    builder: Builder, node: Node, data: OnnxValue | Constant, reduction: ScatterReduction
) -> list[OnnxValue]:
    """Updates and computed data in one element type and quantisation."""
    names = [node.inputs[2]] if isinstance(data, Constant) else [node.inputs[2], node.inputs[0]]
    if not builder.value(names[0]).real:
        return _integers(builder, names, reduction)
    if reduction == "none":
        pure = [builder.pure(name) for name in names]
        first = pure[0]
        if first is not None and all(it is not None and it.quantization == first.quantization for it in pure):
            return [it for it in pure if it is not None]
    return [builder.real(name) for name in names]


def _integers(builder: Builder, names: list[str], reduction: ScatterReduction) -> list[OnnxValue]:
    values = [builder.integers(name) for name in names]
    if builder.tensors[values[0].tensor].dtype is DType.INT32:
        return values
    if reduction != "none":
        raise Unsupported(
            f"reduction {reduction!r} of 8-bit integers: put a Cast to int32 or float32 before it"
        )
    unsigned = builder.model.dtype_of(names[0]) == "uint8"
    meaning = Quantization(1.0, -UNSIGNED_OFFSET if unsigned else 0)
    return [
        replace(value, tensor=builder.reinterpreted(value.tensor, meaning), quantization=meaning)
        for value in values
    ]
