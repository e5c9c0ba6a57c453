"""Functions of one or two floats or quantised integers. Functions of one int8 value become tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, prod
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.alignment import Aligned, Operands, aligned
from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.follow import Ending, finish, follow, fused_nodes
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.scalar_functions import OPERATIONS, power, unary_of
from mcudeploy.frontend.onnx.values import OnnxValue
from mcudeploy.ir.graph import UNSIGNED_OFFSET, DType, Quantization
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.scalar.elementwise import Binary, sum_error
from mcudeploy.ops.scalar.integer import IntegerBinary
from mcudeploy.ops.scalar.unary import Unary

_MOST_SUM_ERROR = 2.0**-8
"""Limit of the error of an int8 sum before rounding, in steps of the output; others are computed in float."""


def unary(builder: Builder, node: Node) -> None:
    """Lower a function of one value: on an int8 tensor to a table, on a float tensor to an operator."""
    op = unary_of(builder.constants, node)
    value = builder.value(node.inputs[0])
    if not value.real:
        raise Unsupported("it computes on integers; a DequantizeLinear must stand before it")
    if value.table is not None:
        with np.errstate(all="ignore"):
            table = op.apply(np.asarray(value.table, np.float32))
        builder.define(node.output, replace(value, table=table, quantization=None))
        return
    ending = follow(builder, node.output)
    result = _real_unary(builder, value, op, (node, *ending.nodes), ending)
    finish(builder, ending, result, quantized=False)


def real_unary(builder: Builder, node: Node) -> OnnxValue:
    """Lower the function on a float tensor."""
    op = unary_of(builder.constants, node)
    return _real_unary(builder, builder.real(node.inputs[0]), op, (node,), None)


def _real_unary(
    builder: Builder,
    value: OnnxValue,
    op: Unary,
    nodes: tuple[Node, ...],
    ending: Ending | None,
) -> OnnxValue:
    shape = builder.shape_of(value.tensor)
    tensor = builder.emit(op, (value.tensor,), shape, DType.FLOAT32, nodes=nodes[:1] if ending else nodes)
    if ending is not None and ending.clips:
        clip = Unary("clip", ending.low, ending.high)
        tensor = builder.emit(clip, (tensor,), shape, DType.FLOAT32, nodes=nodes[1:])
    return OnnxValue(tensor, value.index, real=True)


WITH_INT8_KERNELS = frozenset({"Add", "Sub", "Mul", "Div"})
"""Operators with kernels for int8 operands; others are computed in float."""


def binary(builder: Builder, node: Node) -> None:
    """Lower a function of two values: to a table if both depend on one int8 value, to int8, or to float."""
    if node.op == "Mod" and not node.integer("fmod", 0):
        raise Unsupported("of floats it needs fmod=1")
    operands = builder.operand(node.inputs[0]), builder.operand(node.inputs[1])
    table = _table_form(node, operands)
    if table is not None:
        builder.define(node.output, table)
        return
    ending = follow(builder, node.output)
    if ending.quantization is not None and node.op in WITH_INT8_KERNELS:
        quantized = _quantized_operands(builder, node)
        if quantized is not None and _rounds_well(node, quantized, ending.quantization):
            result = _emit(builder, node, quantized, ending, ending.quantization)
            finish(builder, ending, result, quantized=True)
            return
    extreme = _stored_extreme(builder, node, ending)
    if extreme is not None:
        finish(builder, ending, extreme, quantized=True)
        return
    result = _real_form(builder, node, ending)
    finish(builder, ending, result, quantized=False)


def _stored_extreme(builder: Builder, node: Node, ending: Ending) -> OnnxValue | None:
    """The maximum or minimum of stored values; None unless operands and result share one quantisation."""
    if node.op not in ("Max", "Min") or ending.quantization is None or ending.clips:
        return None
    operands = _quantized_operands(builder, node)
    if operands is None or any(_quantization_of(it) != ending.quantization for it in operands):
        return None
    both = aligned(builder, operands, elements=lambda it: _integers(it).astype(np.int32))
    op = IntegerBinary("max" if node.op == "Max" else "min", both.place, both.constant_shape)
    return _emitted(builder, op, both, ending.quantization, fused_nodes(node, ending, quantized=True))


def _emitted(
    builder: Builder,
    op: Binary | IntegerBinary,
    both: Aligned,
    quantization: Quantization | None,
    nodes: Sequence[Node],
) -> OnnxValue:
    dtype = DType.FLOAT32 if quantization is None else DType.INT8
    tensor = builder.emit(
        op, both.inputs, both.shape, dtype, quantization, constants=both.constants, nodes=nodes
    )
    return OnnxValue(tensor, both.index, real=True)


def _quantization_of(operand: OnnxValue | Constant) -> Quantization | None:
    return constant_quantization(operand) if isinstance(operand, Constant) else operand.quantization


def where(builder: Builder, node: Node) -> None:
    """Lower Where as the sum of the two masked operands, in float."""
    mask, first, second = (
        builder.constants[name] if name in builder.constants else builder.real(name) for name in node.inputs
    )
    masked = _masked(builder, node, "keep", (mask, first))
    rest = _masked(builder, node, "drop", (mask, second))
    if isinstance(masked, Constant) and isinstance(rest, Constant):
        raise Unsupported("all its operands are constant, and it is not folded")
    shape = np.broadcast_shapes(masked.shape, rest.shape)
    if (
        isinstance(masked, OnnxValue)
        and isinstance(rest, Constant)
        and not rest.value.any()
        and shape == masked.shape
    ):
        builder.define(node.output, masked)
        return
    builder.define(node.output, _emit(builder, node, (masked, rest), function="add"))


def _masked(builder: Builder, node: Node, function: str, operands: Operands) -> OnnxValue | Constant:
    masked = masked_constant(operands, function == "keep", np.float32)
    return _emit(builder, node, operands, function=function) if masked is None else masked


def masked_constant(
    operands: Operands, keep: bool, dtype: type[np.float32] | type[np.int32]
) -> Constant | None:
    """The second operand where the first, a mask, equals `keep`, else 0; None unless both are constant."""
    mask, other = operands
    if not isinstance(mask, Constant) or not isinstance(other, Constant):
        return None
    return Constant(np.where(mask.value.astype(np.bool_) == keep, other.value, 0).astype(dtype))


def _is_number(operand: OnnxValue | Constant, other: OnnxValue) -> TypeGuard[Constant]:
    """Whether the operand is a constant of one element that does not extend the other's shape."""
    single = isinstance(operand, Constant) and operand.value.size == 1
    return single and len(operand.shape) <= other.index.ndim


def _rounds_well(node: Node, operands: Operands, output: Quantization) -> bool:
    """Whether an int8 sum rounds as the exact sum does, except for ties. Large operand scales prevent it."""
    if OPERATIONS[node.op].name not in ("add", "sub"):
        return True
    a, b = (_quantization_of(operand) for operand in operands)
    return a is None or b is None or sum_error(a, b, output) <= _MOST_SUM_ERROR


def real_binary(builder: Builder, node: Node) -> OnnxValue:
    """Lower the operation on float tensors."""
    return _real_form(builder, node, None)


def _real_form(builder: Builder, node: Node, ending: Ending | None) -> OnnxValue:
    base, exponent = _real_operands(builder, node)
    if node.op == "Pow" and isinstance(base, OnnxValue) and _is_number(exponent, base):
        op = power(float(exponent.value.reshape(-1)[0]))
        nodes = (node,) if ending is None else (node, *ending.nodes)
        return _real_unary(builder, base, op, nodes, ending)
    return _emit(builder, node, (base, exponent), ending, None)


def _table_form(node: Node, operands: Operands) -> OnnxValue | None:
    """The result as a table over one int8 tensor; None if it depends on more than one stored value."""
    shape = np.broadcast_shapes(operands[0].shape, operands[1].shape)
    first = next((item for item in operands if isinstance(item, OnnxValue)), None)
    if first is None or not first.real or first.table is None or prod(shape) != first.index.size:
        return None
    tables: list[NDArray[np.float32]] = []
    for operand in operands:
        if isinstance(operand, Constant):
            if operand.value.size != 1:
                return None
            tables.append(operand.value.astype(np.float32).reshape(1))
        elif operand.table is not None and _has_same_elements(operand, first):
            tables.append(np.asarray(operand.table, np.float32))
        else:
            return None
    with np.errstate(all="ignore"):
        table = OPERATIONS[node.op].compute(*tables)
    return replace(
        first, index=first.index.reshape(shape), table=np.asarray(table, np.float32), quantization=None
    )


def _has_same_elements(value: OnnxValue, other: OnnxValue) -> bool:
    """Whether both are float values of the same stored elements in the same order."""
    if value.tensor != other.tensor or not value.real or value.index.size != other.index.size:
        return False
    return np.array_equal(value.index.reshape(-1), other.index.reshape(-1))


def _real_operands(builder: Builder, node: Node) -> Operands:
    first, second = (
        builder.operand(name) if name in builder.constants else builder.real(name) for name in node.inputs[:2]
    )
    return first, second


def _quantized_operands(builder: Builder, node: Node) -> Operands | None:
    """Both operands as int8; None if one of them is not."""
    operands: list[OnnxValue | Constant] = []
    for name in node.inputs[:2]:
        constant = builder.constants.get(name)
        if constant is not None:
            if constant_quantization(constant) is None:
                return None
            operands.append(constant)
            continue
        value = builder.int8_form(name)
        if value is None:
            return None
        operands.append(value)
    return operands[0], operands[1]


def constant_quantization(constant: Constant) -> Quantization | None:
    """The quantisation in int8 terms of a constant of 8 bits that is quantised per tensor."""
    stored = constant.quantized
    if stored is None or stored.bits != 8 or stored.integers.size == 0:
        return None
    scale, zero_point = float(stored.scale.reshape(-1)[0]), int(stored.zero_point.reshape(-1)[0])
    if not np.all(stored.scale == np.float32(scale)) or not np.all(stored.zero_point == zero_point):
        return None
    shift = 0 if stored.signed else UNSIGNED_OFFSET
    return Quantization(scale, zero_point - shift)


def _emit(
    builder: Builder,
    node: Node,
    operands: Operands,
    ending: Ending | None = None,
    quantization: Quantization | None = None,
    *,
    function: str | None = None,
) -> OnnxValue:
    """Emit the operator `function`, by default the node's, with operands in the layout of the larger one."""
    quantized = quantization is not None
    both = aligned(builder, operands, elements=_integers if quantized else _floats)
    of_constant = None
    if quantized and both.place is not None:
        of_constant = _quantization_of(operands[both.place])
    low, high = (-inf, inf) if ending is None else (ending.low, ending.high)
    kind = function or OPERATIONS[node.op].name
    op = Binary(kind, both.place, both.constant_shape, of_constant, low, high)
    nodes = (node,) if ending is None else fused_nodes(node, ending, quantized=quantized)
    return _emitted(builder, op, both, quantization, nodes)


def _floats(constant: Constant) -> ConstantArray:
    return constant.value.astype(np.float32)


def _integers(constant: Constant) -> ConstantArray:
    """The elements of a constant that is quantised per tensor, as int8."""
    if constant_quantization(constant) is None or constant.quantized is None:
        raise Unsupported("a constant operand is not quantised per tensor")
    shift = 0 if constant.quantized.signed else UNSIGNED_OFFSET
    return (constant.quantized.integers - shift).astype(np.int8)
