"""Graph outputs: their stored element type and order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.slice import slice_of
from mcudeploy.frontend.onnx.nodes import Info, Node, Unsupported, require_bounded
from mcudeploy.frontend.onnx.quantization import TRUTH
from mcudeploy.frontend.onnx.values import (
    STORED_TYPES,
    OnnxValue,
    default_layout,
    is_plain,
    natural_shape,
    permutation,
    positions,
    scattered,
)
from mcudeploy.ir.graph import UNSIGNED_OFFSET, DType, GraphIO, Quantization
from mcudeploy.ops.move.cast import Cast
from mcudeploy.ops.move.gather import GatherRows
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.move.quantize import Dequantize, Quantize

_CONSTANTS = ("float32", "int8", "uint8", "bool", "int32", "int64")
"""Element types of constant outputs."""


def output_io(builder: Builder, info: Info, *, float_io: bool) -> GraphIO:
    """Describe a model output, whose stored elements have the ONNX order or are channels last.

    Outputs in another order are rearranged by additional operators. A constant output is copied from flash.
    Raises Unsupported if no output depends on the inputs.
    """
    value, dtype = _output_value(builder, info, float_io=float_io)
    if any(_owner(builder, value.tensor) in state.chain for state in builder.states):
        copy = _copied(builder, value.tensor, builder.nodes_of(info.name))
        value = replace(value, tensor=copy)  # an output must not share the memory of a state
    return builder.io(info.name, _in_plain_order(builder, info.name, value), dtype)


def _owner(builder: Builder, tensor: str) -> str:
    """The tensor whose memory a tensor uses: for a view its source, else the tensor itself."""
    views = {it.output: it.inputs[0] for it in builder.operators if it.op.is_view}
    while tensor in views:
        tensor = views[tensor]
    return tensor


def copy_if_all_are_views(builder: Builder, outputs: tuple[GraphIO, ...]) -> tuple[GraphIO, ...]:
    """Return the outputs. If all are views of inputs, the first is copied: a program needs a step."""
    producers = {operator.output: operator for operator in builder.operators}

    def computed(tensor: str) -> bool:
        producer = producers.get(tensor)
        return producer is not None and (not producer.op.is_view or computed(producer.inputs[0]))

    if not outputs or any(computed(io.tensor) for io in outputs):
        return outputs
    first = outputs[0]
    copy = _copied(builder, first.tensor, builder.nodes_of(first.name))
    return (replace(first, tensor=copy), *outputs[1:])


def _copied(builder: Builder, tensor: str, nodes: Sequence[Node]) -> str:
    source = builder.tensors[tensor]
    op = Slice((0, 0, 0), (1, 1, 1), source.shape)
    return builder.emit(op, (tensor,), source.shape, source.dtype, source.quantization, nodes=nodes)


def _output_value(builder: Builder, info: Info, *, float_io: bool) -> tuple[OnnxValue, str]:
    """The value of an output as a tensor, and its ONNX element type."""
    if info.name in builder.constants:
        return _constant(builder, info.name)
    value = builder.value(info.name)
    if not value.real:
        return builder.integers(info.name), builder.model.dtype_of(info.name)
    dtype = builder.model.dtype_of(info.name)
    if dtype == "bool":
        return truth(builder, info.name), dtype
    if dtype != "float32":
        raise Unsupported(f"an output of {dtype} is not supported; put a Cast to float32 or int32 before it")
    if value.table is None:
        return value, "float32"
    int8_form = None if float_io else builder.int8_form(info.name)
    return (int8_form if int8_form is not None else builder.real(info.name)), "float32"


def _constant(builder: Builder, name: str) -> tuple[OnnxValue, str]:
    """A constant as a tensor that each run writes: a GatherRows from a table with one row."""
    array = builder.constants[name].value
    if builder.outputs <= set(builder.constants):
        raise Unsupported("it does not depend on the inputs, as no output does: the model is constant")
    require_bounded(array.shape, "it")
    dtype = array.dtype.name
    if dtype not in _CONSTANTS:
        raise Unsupported(f"it is constant, and of {dtype}: {', '.join(_CONSTANTS)} are supported")
    kind, table = STORED_TYPES[dtype], array.reshape(1, 1, -1)
    if kind is DType.INT32 and np.any(table.astype(np.float32).astype(np.int64) != table):
        raise Unsupported(
            "it is constant, with integers that float32 does not hold: compute it in the application"
        )
    if dtype == "uint8":
        table = table.astype(np.int16) - UNSIGNED_OFFSET
    quantization = None if kind is not DType.INT8 else TRUTH if dtype == "bool" else Quantization(1.0, 0)
    stored = DType.INT8 if kind is DType.INT8 else DType.FLOAT32
    constants = {"table": np.ascontiguousarray(table, stored.value)}
    tensor = builder.emit(
        GatherRows(array.size),
        (_any_index(builder),),
        (1, 1, array.size),
        stored,
        quantization,
        constants=constants,
    )
    if kind is DType.INT32:
        tensor = builder.emit(Cast(), (tensor,), (1, 1, array.size), kind)
    return OnnxValue(tensor, positions(array.shape), kind is DType.FLOAT32, quantization=quantization), dtype


def _any_index(builder: Builder) -> str:
    """An int32 tensor of one element, computed from the first input: GatherRows needs an index."""
    tensor = builder.values[builder.model.inputs[0].name].tensor
    source, one = builder.tensors[tensor], (1, 1, 1)
    if source.shape != one:
        op = Slice((0, 0, 0), one, one)
        tensor = builder.emit(op, (tensor,), one, source.dtype, source.quantization)
    if source.dtype is DType.INT8:
        tensor = builder.emit(Dequantize(), (tensor,), one, DType.FLOAT32)
    return tensor if source.dtype is DType.INT32 else builder.emit(Cast(), (tensor,), one, DType.INT32)


def truth(builder: Builder, name: str) -> OnnxValue:
    """Convert a value of 0 and 1 to an int8 tensor."""
    value = builder.value(name)
    if value.table is not None:
        return builder.requantized(name, TRUTH)
    shape, nodes = builder.shape_of(value.tensor), builder.nodes_of(name)
    tensor = builder.emit(Quantize(), (value.tensor,), shape, DType.INT8, TRUTH, nodes=nodes)
    return OnnxValue(tensor, value.index, real=False, quantization=TRUTH)


def _in_plain_order(builder: Builder, name: str, value: OnnxValue) -> OnnxValue:
    """The model output `name`, rearranged unless its elements have the ONNX order or are channels last."""
    if is_plain(value.index):
        return value
    nodes = builder.nodes_of(name)
    source = builder.tensors[value.tensor]
    pattern = slice_of(value.index, source.shape)
    if pattern is not None and min(pattern[0].step) < 0 and permutation(pattern[1]) is not None:
        op, places = pattern
        reversed_tensor = builder.emit(
            op, (value.tensor,), op.out_shape, source.dtype, source.quantization, nodes=nodes
        )
        value = replace(value, tensor=reversed_tensor, index=places)
    if not is_plain(value.index):
        shape, places = natural_shape(value.shape), positions(value.shape)
        if permutation(value.index) is None:
            shape, places = default_layout(value.shape)
        wanted = np.asarray(scattered(places, shape, value.index), np.int32)
        value = replace(value, tensor=builder.arranged(value.tensor, wanted, nodes), index=places)
    builder.define(name, value)
    return value
