"""Rows of tables that indices select when the model runs."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.follow import finish, follow, fused_nodes
from mcudeploy.frontend.lower.slice import axis_of, pick, real_pick
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import IndexArray, OnnxValue, positions
from mcudeploy.ir.graph import DType
from mcudeploy.ops.cast import Cast
from mcudeploy.ops.gather import GatherRows
from mcudeploy.ops.requantize import quantize

_EXACT, _INT32_BYTES = 1 << 24, 4
"""The largest integer up to which float32 has all integers; bytes of the shortest integers of a table."""


def gather(builder: Builder, node: Node) -> None:
    """Lower Gather: constant indices make a Slice; others select rows of a constant or computed table."""
    if node.inputs[1] in builder.constants:
        pick(builder, node)
        return
    table = builder.operand(node.inputs[0])
    if isinstance(table, Constant):
        _embedding(builder, node, table)
        return
    builder.define(node.output, _gathered(builder, node, table))


def real_gather(builder: Builder, node: Node) -> OnnxValue:
    """Lower the operator on a float tensor."""
    if node.inputs[1] in builder.constants:
        return real_pick(builder, node)
    return _gathered(builder, node, builder.real(node.inputs[0]))


def _indices(builder: Builder, node: Node) -> tuple[OnnxValue, str]:
    """The indices, and their form as an int32 vector."""
    value = builder.value(node.inputs[1])
    tensor = builder.arranged(value.tensor, value.index.reshape(1, 1, -1), (node,))
    return value, tensor


def _placed(indices: OnnxValue, rest: tuple[int, ...], axis: int) -> IndexArray:
    """The positions of a Gather's elements in a tensor with a row of shape `rest` for each index."""
    places = positions((*indices.shape, *rest))
    rank = indices.index.ndim
    return np.moveaxis(places, range(rank), range(axis, axis + rank))


def _embedding(builder: Builder, node: Node, constant: Constant) -> None:
    """Lower a Gather of rows of a constant table, which is quantised as the result is."""
    integers = constant.value.dtype.kind == "i" and constant.value.itemsize >= _INT32_BYTES
    if integers and np.abs(constant.value).max(initial=0) > _EXACT:
        raise Unsupported(f"a table of integers beyond {_EXACT:,} is not supported")
    if constant.value.dtype != np.float32 and not integers:
        raise Unsupported(f"a table of {constant.value.dtype} is not supported; float32, int32 and int64 are")
    indices, vector = _indices(builder, node)
    axis = axis_of(node, constant.value.ndim)
    moved = np.moveaxis(constant.value, axis, 0)
    rest = moved.shape[1:]
    table = np.ascontiguousarray(moved.reshape(moved.shape[0], 1, prod(rest)), np.float32)
    if integers:
        builder.define(node.output, _integer_rows(builder, node, table, vector, _placed(indices, rest, axis)))
        return
    ending = follow(builder, node.output)
    quantization = None if ending.clips else ending.quantization
    quantized = quantization is not None
    shape = (indices.index.size, 1, table.shape[2])
    nodes = fused_nodes(node, ending, quantized=True) if quantized else (node,)
    tensor = builder.emit(
        GatherRows(table.shape[2]),
        (vector,),
        shape,
        DType.INT8 if quantized else DType.FLOAT32,
        quantization,
        constants={"table": table if quantization is None else quantize(table, quantization)},
        nodes=nodes,
    )
    rows = OnnxValue(tensor, _placed(indices, rest, axis), real=True)
    if quantized:
        finish(builder, ending, rows, quantized=True)
    else:
        builder.define(node.output, rows)


def _integer_rows(
    builder: Builder, node: Node, table: NDArray[np.float32], vector: str, index: IndexArray
) -> OnnxValue:
    """Rows of a table of integers, which float32 holds exactly; `vector` has their numbers."""
    shape = (builder.shape_of(vector)[2], 1, table.shape[2])
    rows = builder.emit(
        GatherRows(table.shape[2]), (vector,), shape, DType.FLOAT32, constants={"table": table}, nodes=(node,)
    )
    integers = builder.emit(Cast(), (rows,), shape, DType.INT32, nodes=(node,))
    return OnnxValue(integers, index, real=False)


def _gathered(builder: Builder, node: Node, table: OnnxValue) -> OnnxValue:
    """Lower a Gather of rows of a computed table."""
    indices, vector = _indices(builder, node)
    axis = axis_of(node, table.index.ndim)
    moved = np.moveaxis(table.index, axis, 0)
    rest = moved.shape[1:]
    source = builder.arranged(table.tensor, moved.reshape(moved.shape[0], 1, prod(rest)), (node,))
    kind = builder.tensors[source]
    shape = (indices.index.size, 1, prod(rest))
    rows = builder.emit(GatherRows(), (vector, source), shape, kind.dtype, kind.quantization, nodes=(node,))
    return replace(table, tensor=rows, index=_placed(indices, rest, axis))
