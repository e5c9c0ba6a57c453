"""Gather: rows of a table that computed indices select."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.builder import Builder, OperatorLowering
from mcudeploy.frontend.lower.follow import finish, follow, fused_nodes
from mcudeploy.frontend.lower.inputs import stored_quantization
from mcudeploy.frontend.lower.packed import block_weights, in_blocks
from mcudeploy.frontend.lower.slice import axis_of, pick, real_pick
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import IndexArray, OnnxValue, positions
from mcudeploy.ir.graph import UNSIGNED_OFFSET, DType, Quantization
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.matrix.block_weights import GatherBlocks
from mcudeploy.ops.move.cast import Cast
from mcudeploy.ops.move.gather import GatherRows
from mcudeploy.ops.requantize import dequantize_table, quantize

_MAX_EXACT_FLOAT = 1 << 24
"""The largest integer up to which float32 has all integers."""

_BYTES, _AS_FLOATS = ("bool", "int8", "uint8"), ("int32", "int64")
"""Types of tables that are stored in bytes, and those that are stored as float32."""


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
    """The indices, and the int32 tensor that stores them as a vector."""
    value = builder.value(node.inputs[1])
    tensor = builder.arranged(value.tensor, value.index.reshape(1, 1, -1), (node,))
    return value, tensor


def _gathered_positions(indices: OnnxValue, rest: tuple[int, ...], axis: int) -> IndexArray:
    """The positions of a Gather's elements in a tensor with a row of shape `rest` for each index."""
    places = positions((*indices.shape, *rest))
    rank = indices.index.ndim
    return np.moveaxis(places, range(rank), range(axis, axis + rank))


def _embedding(builder: Builder, node: Node, constant: Constant) -> None:
    """Lower a Gather from a constant table, which is stored in 8 bits if it or the result is quantised so."""
    values, kind = constant.value, str(constant.value.dtype)
    real = kind == "float32"
    if kind in _AS_FLOATS and np.abs(values).max(initial=0) > _MAX_EXACT_FLOAT:
        raise Unsupported(f"a table of integers beyond {_MAX_EXACT_FLOAT:,} is not supported")
    if kind not in ("float32", *_AS_FLOATS, *_BYTES):
        supported = ", ".join(("float32", *_AS_FLOATS, *_BYTES))
        raise Unsupported(f"a table of {kind} is not supported; {supported} are")
    indices, vector = _indices(builder, node)
    axis = axis_of(node, values.ndim)
    rows = constant.moved(lambda array: np.moveaxis(array, axis, 0))
    index = _gathered_positions(indices, rows.shape[1:], axis)
    if kind in _AS_FLOATS:
        builder.define(node.output, _integer_rows(builder, node, _table(values, axis), vector, index))
        return
    ending = follow(builder, node.output)
    if real and ending.quantization is not None and not ending.clips:
        nodes = fused_nodes(node, ending, quantized=True)
        stored = quantize(_table(values, axis), ending.quantization)
        tensor = _rows(builder, nodes, vector, stored, ending.quantization)
        finish(builder, ending, OnnxValue(tensor, index, real=True), quantized=True)
        return
    packed = block_weights(rows) if real else None
    if packed is not None:
        op = GatherBlocks(prod(rows.shape[1:]), packed.block, packed.bits)
        shape = (indices.index.size, 1, op.width)
        constants = packed.constants
        tensor = builder.emit(op, (vector,), shape, DType.FLOAT32, constants=constants, nodes=(node,))
        builder.define(node.output, OnnxValue(tensor, index, real=True))
        return
    if in_blocks(rows):
        builder.widened += values.size
    quantization = _table_quantization(constant) if real else stored_quantization(builder, node.output)
    table: ConstantArray = _table(values, axis)
    if quantization is not None:
        unsigned = not constant.quantized.signed if constant.quantized else kind == "uint8"
        integers = constant.quantized.integers if constant.quantized else values
        table = (_table(integers, axis) - unsigned * UNSIGNED_OFFSET).astype(np.int8)
    float_table = dequantize_table(quantization) if real and quantization is not None else None
    tensor = _rows(builder, (node,), vector, table, quantization)
    builder.define(node.output, OnnxValue(tensor, index, real, float_table, quantization))


def _table_quantization(constant: Constant) -> Quantization | None:
    """The quantisation of a table of 8 bits with one scale and zero point; None for others."""
    stored = constant.quantized
    if stored is None or stored.bits != 8 or stored.integers.size == 0:
        return None
    scale, zero = stored.scale.flat[0], stored.zero_point.flat[0]
    if np.any(stored.scale != scale) or np.any(stored.zero_point != zero) or not scale > 0:
        return None
    return Quantization(float(scale), int(zero) - (not stored.signed) * UNSIGNED_OFFSET)


def _table(values: NDArray[np.generic], axis: int) -> NDArray[np.float32]:
    """The rows along an axis as float32 [rows, 1, width], the form that GatherRows reads."""
    rows = np.moveaxis(values, axis, 0)
    return np.ascontiguousarray(rows.reshape(len(rows), 1, prod(rows.shape[1:])), np.float32)


def _rows(
    builder: Builder,
    nodes: tuple[Node, ...],
    vector: str,
    table: ConstantArray,
    quantization: Quantization | None,
) -> str:
    """Emit the selection of rows of a constant table; return the tensor."""
    op, shape = GatherRows(table.shape[2]), (builder.shape_of(vector)[2], 1, table.shape[2])
    dtype = DType.FLOAT32 if quantization is None else DType.INT8
    return builder.emit(op, (vector,), shape, dtype, quantization, constants={"table": table}, nodes=nodes)


def _integer_rows(
    builder: Builder, node: Node, table: NDArray[np.float32], vector: str, index: IndexArray
) -> OnnxValue:
    """Emit the selection of rows of a float32 table with integers; `vector` has the row numbers."""
    rows = _rows(builder, (node,), vector, table, None)
    shape = builder.shape_of(rows)
    integers = builder.emit(Cast(), (rows,), shape, DType.INT32, nodes=(node,))
    return OnnxValue(integers, index, real=False)


def _gathered(builder: Builder, node: Node, table: OnnxValue) -> OnnxValue:
    """Lower a Gather of rows of a computed table."""
    indices, vector = _indices(builder, node)
    axis = axis_of(node, table.index.ndim)
    moved = np.moveaxis(table.index, axis, 0)
    rest = moved.shape[1:]
    source = builder.arranged(table.tensor, moved.reshape(moved.shape[0], 1, prod(rest)), (node,))
    like = builder.tensors[source]
    shape = (indices.index.size, 1, prod(rest))
    rows = builder.emit(GatherRows(), (vector, source), shape, like.dtype, like.quantization, nodes=(node,))
    return replace(table, tensor=rows, index=_gathered_positions(indices, rest, axis))


LOWERINGS: dict[str, OperatorLowering] = {
    "Gather": OperatorLowering(
        gather, "moved", only="computed indices that are outside take the nearest row", real=real_gather
    ),
}
