"""Casts, rows written at computed indices, and largest elements with their indices."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from mcudeploy.frontend.lower.builder import Builder, OperatorLowering
from mcudeploy.frontend.lower.move import resized_index, with_size
from mcudeploy.frontend.lower.norm import axis_as_dimension
from mcudeploy.frontend.lower.pool import strictly_monotone
from mcudeploy.frontend.lower.slice import axis_of
from mcudeploy.frontend.onnx.constants import Constant, integers_of
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, positions
from mcudeploy.ir.graph import UNSIGNED_OFFSET, DType, Quantization, Shape
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.move.cast import Cast
from mcudeploy.ops.move.scatter import ScatterReduction, ScatterRows
from mcudeploy.ops.move.top_k import TopK
from mcudeploy.ops.requantize import dequantize_table
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.unary import Unary

_FLOAT, _INT8, _INT16, _INT32, _INT64, _BOOL, _HALF, _DOUBLE, _UINT32 = 1, 3, 5, 6, 7, 9, 10, 11, 12
"""Element types of TensorProto.DataType."""


def cast(builder: Builder, node: Node) -> None:
    """Lower Cast to float32, integers (int32 stores int64 and uint32), or bool; to float16 as a rounding."""
    builder.define(node.output, _cast(builder, node))


def real_cast(builder: Builder, node: Node) -> OnnxValue:
    """Lower the operator on a float tensor."""
    if builder.value(node.inputs[0]).real and node.integer("to", 0) == _FLOAT:
        return builder.real(node.inputs[0])
    return _cast(builder, node)


def _cast(builder: Builder, node: Node) -> OnnxValue:
    """Emit the operators of a Cast, by the type of its input and the target type."""
    name, to = node.inputs[0], node.integer("to", 0)
    value = builder.value(name)
    if to == _DOUBLE and not value.real and builder.tensors[value.tensor].dtype is DType.INT32:
        raise Unsupported(
            "it makes floats of integers that become integers again: floats are computed as float32, which "
            "loses those beyond 16,777,216. Export the model without it"
        )
    if not value.real and to in (_INT8, _INT16, _INT32, _INT64, _UINT32):
        resized = _resized(builder, node, value, to)
        if resized is not None:
            return resized
    if to in (_FLOAT, _DOUBLE):
        return _as_real(builder, node, value)
    if to == _HALF:
        real = _in_float(builder, node, _as_real(builder, node, value))
        shape = builder.shape_of(real.tensor)
        result = builder.emit(Unary("half"), (real.tensor,), shape, DType.FLOAT32, nodes=(node,))
        return OnnxValue(result, real.index, real=True)
    if to in (_INT32, _INT64):
        real = builder.real(name) if value.real else _as_real(builder, node, value)
        return _converted(builder, node, _in_float(builder, node, real), DType.INT32)
    if to == _BOOL:
        real = builder.real(name) if value.real else _in_float(builder, node, _as_real(builder, node, value))
        shape = builder.shape_of(real.tensor)
        zero = {"constant": np.zeros((1, 1, 1), np.float32)}
        unequal = Binary("not_equal", 1, (1, 1, 1))
        result = builder.emit(unequal, (real.tensor,), shape, DType.FLOAT32, constants=zero, nodes=(node,))
        return OnnxValue(result, real.index, real=True)
    raise Unsupported("casting activations to this type is not supported; float32, int32, int64 and bool are")


def _as_real(builder: Builder, node: Node, value: OnnxValue) -> OnnxValue:
    """Convert integers to floats: int8 by a table, int16 and int32 by an operator."""
    if value.real:
        return value
    if builder.model.dtype_of(node.inputs[0]) == "uint32":
        raise Unsupported("it makes floats of uint32: put a Cast to int32 before it")
    if builder.tensors[value.tensor].dtype in (DType.INT16, DType.INT32):
        return _converted(builder, node, value, DType.FLOAT32)
    stored = builder.integers(node.inputs[0])
    unsigned = builder.model.dtype_of(node.inputs[0]) == "uint8"
    quantization = Quantization(1.0, -UNSIGNED_OFFSET if unsigned else 0)
    return replace(stored, real=True, table=dequantize_table(quantization), quantization=quantization)


def _resized(builder: Builder, node: Node, value: OnnxValue, to: int) -> OnnxValue | None:
    """Convert integers to another size, without the bits that do not fit; None for integers of one byte."""
    source, name = builder.tensors[value.tensor].dtype, node.inputs[0]
    if source is DType.INT8:
        return None
    if builder.model.dtype_of(name) == "uint32" and to == _INT64:
        raise Unsupported("it makes int64 of uint32, and 32 bits hold both: put a Cast to int32 before it")
    target = {_INT8: DType.INT8, _INT16: DType.INT16}.get(to, DType.INT32)
    if source is target:
        return value
    if (source, target) == (DType.INT16, DType.INT8):
        raise Unsupported("it makes int8 of int16: put a Cast to int32 between them")
    quantization = Quantization(1.0, 0) if target is DType.INT8 else None
    shape = builder.shape_of(value.tensor)
    tensor = builder.emit(Cast(), (value.tensor,), shape, target, quantization, nodes=(node,))
    return OnnxValue(tensor, value.index, real=False, quantization=quantization)


def _in_float(builder: Builder, node: Node, value: OnnxValue) -> OnnxValue:
    """Store a value as a float32 tensor without a pending table."""
    if value.table is None:
        return value
    name = f"{node.output}:float"
    builder.values[name] = value
    return builder.real(name)


def _converted(builder: Builder, node: Node, value: OnnxValue, dtype: DType) -> OnnxValue:
    shape = builder.shape_of(value.tensor)
    tensor = builder.emit(Cast(), (value.tensor,), shape, dtype, nodes=(node,))
    return OnnxValue(tensor, value.index, real=dtype is DType.FLOAT32)


def arg_extreme(builder: Builder, node: Node) -> None:
    """Lower ArgMax and ArgMin. As in ONNX Runtime, a NaN matters only as the first element."""
    value = strictly_monotone(builder, node.inputs[0])
    axis = axis_of(node, value.index.ndim)
    last = node.integer("select_last_index", 0) != 0
    indices = _top(builder, node, value, axis, TopK(0, 1, "indices", node.op == "ArgMax", last, True))
    if node.integer("keepdims", 1) == 0:
        indices = replace(indices, index=indices.index.squeeze(axis))
    builder.define(node.output, indices)


def top_k(builder: Builder, node: Node) -> None:
    """Lower TopK: an operator for the elements and one for their indices, if these results are read."""
    (count,) = integers_of(builder.constant(node.input(1), "k"))
    value = strictly_monotone(builder, node.inputs[0])
    axis = axis_of(node, value.index.ndim, default=-1)
    if not 1 <= count <= value.shape[axis]:
        raise Unsupported(f"k is {count}; the axis has {value.shape[axis]} elements")
    results: tuple[Literal["values", "indices"], ...] = ("values", "indices")
    for name, result in zip(node.outputs, results, strict=False):
        if builder.is_read(name):
            op = TopK(0, count, result, node.integer("largest", 1) != 0)
            builder.define(name, _top(builder, node, value, axis, op))


def _top(builder: Builder, node: Node, value: OnnxValue, axis: int, wanted: TopK) -> OnnxValue:
    placed, dimension = axis_as_dimension(builder, value, axis)
    op = replace(wanted, axis=dimension)
    source = builder.tensors[placed.tensor]
    shape: Shape = with_size(source.shape, dimension, wanted.count)
    index = resized_index(placed.index, source.shape, [axis], [dimension], shape)
    if wanted.result == "indices":
        tensor = builder.emit(op, (placed.tensor,), shape, DType.INT32, nodes=(node,))
        return OnnxValue(tensor, index, real=False)
    tensor = builder.emit(op, (placed.tensor,), shape, source.dtype, source.quantization, nodes=(node,))
    return replace(placed, tensor=tensor, index=index)


def scatter(builder: Builder, node: Node) -> None:
    """Lower ScatterND of data [rows, width], indices [count, 1] and updates [count, width].

    Constant data is zero: rules have made other constants activations.
    """
    data = builder.operand(node.inputs[0])
    updates = builder.value(node.inputs[2])
    reduction = _scatter_reduction(node)
    rows, width = data.shape
    count = updates.shape[0]
    sources = _sources(builder, node, data, reduction)
    inputs, constants = _places(builder, node, count)
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


def _scatter_reduction(node: Node) -> ScatterReduction:
    name = node.text("reduction", "none")
    for known in get_args(ScatterReduction):
        if name == known:
            reduction: ScatterReduction = known
            return reduction
    raise Unsupported(f"reduction {name!r} is not supported")


def _places(builder: Builder, node: Node, count: int) -> tuple[list[str], dict[str, ConstantArray]]:
    """The tensor of computed indices as the first inputs, or the constant with the indices."""
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
        return _stored_integers(builder, names, reduction)
    if reduction == "none":
        forms = [builder.int8_form(name) for name in names]
        if None not in forms and len({it.quantization for it in forms if it is not None}) == 1:
            return [it for it in forms if it is not None]
    return [builder.real(name) for name in names]


def _stored_integers(builder: Builder, names: list[str], reduction: ScatterReduction) -> list[OnnxValue]:
    values = [builder.integers(name) for name in names]
    if builder.tensors[values[0].tensor].dtype is DType.INT32:
        return values
    if reduction != "none":
        raise Unsupported(
            f"reduction {reduction!r} of 8-bit integers: put a Cast to int32 or float32 before it"
        )
    unsigned = builder.model.dtype_of(names[0]) == "uint8"
    quantization = Quantization(1.0, -UNSIGNED_OFFSET if unsigned else 0)
    return [
        replace(value, tensor=builder.reinterpreted(value.tensor, quantization), quantization=quantization)
        for value in values
    ]


LOWERINGS: dict[str, OperatorLowering] = {
    "ArgMax": OperatorLowering(arg_extreme, "moved"),
    "ArgMin": OperatorLowering(arg_extreme, "moved"),
    "Cast": OperatorLowering(
        cast,
        only="to float32, int32, int64, bool, to float16 if a Cast follows; of floats beyond 32 bits the "
        "nearest integer, of NaN 0",
        real=real_cast,
    ),
    "ScatterND": OperatorLowering(scatter, "moved", only="8-bit integers without reduction"),
    "TopK": OperatorLowering(top_k, "moved", only="k constant"),
}
