"""Functions of one value, and Add, Sub, Mul, Div. On int8 tensors, what depends on one value is a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.builder import Builder
from mcudeploy.frontend.constants import Constant
from mcudeploy.frontend.follow import Ending, clip_bounds, finish, follow, fused_nodes
from mcudeploy.frontend.model import Node, Unsupported
from mcudeploy.frontend.values import IndexArray, Value, compressed, default_layout, positions, scattered
from mcudeploy.ir.graph import UNSIGNED_OFFSET, DType, Quantization, Shape
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.elementwise import Binary, BinaryFunction, Unary, UnaryFunction, sum_error

_Floats = NDArray[np.float32]
_MOST_SUM_ERROR = 2.0**-8
"""Steps of the output that an int8 sum may be off by before it is rounded; others are computed in float."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one value: the operator for float tensors, and the same on an array of float32."""

    kind: UnaryFunction
    alpha: float
    beta: float
    apply: Callable[[_Floats], _Floats]


def _clip(builder: Builder, node: Node) -> Function:
    bounds = clip_bounds(builder.constants, node)
    if bounds is None:
        raise Unsupported("the bounds must be constant scalars, and not NaN")
    low, high = bounds

    def apply(x: _Floats) -> _Floats:
        return np.minimum(np.maximum(x, np.float32(low)), np.float32(high))

    return Function("relu" if bounds == (0.0, inf) else "clip", low, high, apply)


def _leaky_relu(builder: Builder, node: Node) -> Function:
    alpha = node.number("alpha", 0.01)
    return Function("leaky_relu", alpha, 0.0, lambda x: np.where(x >= 0, x, np.float32(alpha) * x))


def _sigmoid(builder: Builder, node: Node) -> Function:
    def apply(x: _Floats) -> _Floats:
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + np.exp(-x.astype(np.float64))), np.float32)

    return Function("sigmoid", 0.0, 0.0, apply)


def _tanh(builder: Builder, node: Node) -> Function:
    return Function("tanh", 0.0, 0.0, lambda x: np.tanh(x.astype(np.float64)).astype(np.float32))


def _hard_sigmoid(builder: Builder, node: Node) -> Function:
    alpha, beta = node.number("alpha", 0.2), node.number("beta", 0.5)

    def apply(x: _Floats) -> _Floats:
        line = np.float32(alpha) * x + np.float32(beta)
        return np.asarray(np.maximum(np.float32(0), np.minimum(np.float32(1), line)), np.float32)

    return Function("hard_sigmoid", alpha, beta, apply)


def _hard_swish(builder: Builder, node: Node) -> Function:
    sixth = float(np.float32(1 / 6))

    def apply(x: _Floats) -> _Floats:
        line = np.float32(sixth) * x + np.float32(0.5)
        return np.asarray(x * np.maximum(np.float32(0), np.minimum(np.float32(1), line)), np.float32)

    return Function("hard_swish", sixth, 0.5, apply)


FUNCTIONS: dict[str, Callable[[Builder, Node], Function]] = {
    "Relu": _clip,
    "Clip": _clip,
    "LeakyRelu": _leaky_relu,
    "Sigmoid": _sigmoid,
    "Tanh": _tanh,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
}
"""The functions of one value by ONNX operator."""


def unary(builder: Builder, node: Node) -> None:
    """On an int8 tensor the function joins the value's table; on a float tensor it is an operator."""
    function = FUNCTIONS[node.op](builder, node)
    value = builder.value(node.inputs[0])
    if not value.real:
        raise Unsupported("it computes on integers; a DequantizeLinear must stand before it")
    if value.table is not None:
        with np.errstate(all="ignore"):
            table = function.apply(np.asarray(value.table, np.float32))
        builder.define(node.output, replace(value, table=table, quantization=None))
        return
    ending = follow(builder, node.output)
    made = _real_unary(builder, value, function, (node, *ending.nodes), ending)
    finish(builder, ending, made, quantized=False)


def real_unary(builder: Builder, node: Node) -> Value:
    """The function on a float tensor."""
    function = FUNCTIONS[node.op](builder, node)
    return _real_unary(builder, builder.real(node.inputs[0]), function, (node,), None)


def _real_unary(
    builder: Builder,
    value: Value,
    function: Function,
    nodes: tuple[Node, ...],
    ending: Ending | None,
) -> Value:
    shape = builder.shape_of(value.tensor)
    op = Unary(function.kind, function.alpha, function.beta)
    if function.kind == "relu":
        op = Unary("relu")
    tensor = builder.emit(op, (value.tensor,), shape, DType.FLOAT32, nodes=nodes[:1] if ending else nodes)
    if ending is not None and ending.clips:
        clip = Unary("clip", ending.low, ending.high)
        tensor = builder.emit(clip, (tensor,), shape, DType.FLOAT32, nodes=nodes[1:])
    return Value(tensor, value.index, real=True)


_Operation = Callable[[_Floats, _Floats], _Floats]

OPERATIONS: dict[str, tuple[BinaryFunction, _Operation]] = {
    "Add": ("add", np.add),
    "Sub": ("sub", np.subtract),
    "Mul": ("mul", np.multiply),
    "Div": ("div", np.divide),
}
"""The functions of two values by ONNX operator."""

Operands = tuple[Value | Constant, Value | Constant]


def binary(builder: Builder, node: Node) -> None:
    """A table where both operands depend on one int8 value; int8 where all is quantised, well; else float."""
    operands = builder.operand(node.inputs[0]), builder.operand(node.inputs[1])
    table = _table_form(node, operands)
    if table is not None:
        builder.define(node.output, table)
        return
    ending = follow(builder, node.output)
    if ending.quantization is not None:
        quantized = _quantized_operands(builder, node)
        if quantized is not None and _rounds_well(node, quantized, ending.quantization):
            made = _emit(builder, node, quantized, ending, ending.quantization)
            finish(builder, ending, made, quantized=True)
            return
    made = _emit(builder, node, _real_operands(builder, node), ending, None)
    finish(builder, ending, made, quantized=False)


def _rounds_well(node: Node, operands: Operands, output: Quantization) -> bool:
    """Whether an int8 sum is right but for ties; it is not where the scale of an operand is too coarse."""
    if OPERATIONS[node.op][0] not in ("add", "sub"):
        return True
    a, b = (
        constant_quantization(operand) if isinstance(operand, Constant) else operand.quantization
        for operand in operands
    )
    return a is None or b is None or sum_error(a, b, output) <= _MOST_SUM_ERROR


def real_binary(builder: Builder, node: Node) -> Value:
    """The operation on float tensors."""
    return _emit(builder, node, _real_operands(builder, node), None, None)


def _table_form(node: Node, operands: Operands) -> Value | None:
    """The result as a table over one int8 tensor; None where it depends on more than one stored value."""
    shape = np.broadcast_shapes(operands[0].shape, operands[1].shape)
    leading = next((item for item in operands if isinstance(item, Value)), None)
    if leading is None or not leading.real or leading.table is None or prod(shape) != leading.index.size:
        return None
    tables: list[_Floats] = []
    for operand in operands:
        if isinstance(operand, Constant):
            if operand.value.size != 1:
                return None
            tables.append(operand.value.astype(np.float32).reshape(1))
        elif operand.table is not None and _lies_like(operand, leading):
            tables.append(np.asarray(operand.table, np.float32))
        else:
            return None
    with np.errstate(all="ignore"):
        table = OPERATIONS[node.op][1](*tables)
    index = leading.index.reshape(shape)
    return Value(leading.tensor, index, True, np.asarray(table, np.float32), None)


def _lies_like(value: Value, other: Value) -> bool:
    """True where both are float values of the same stored elements in the same order."""
    if value.tensor != other.tensor or not value.real or value.index.size != other.index.size:
        return False
    return np.array_equal(value.index.reshape(-1), other.index.reshape(-1))


def _real_operands(builder: Builder, node: Node) -> Operands:
    first, second = (
        builder.operand(name) if name in builder.constants else builder.real(name) for name in node.inputs[:2]
    )
    return first, second


def _quantized_operands(builder: Builder, node: Node) -> Operands | None:
    """Both operands as int8; None where one of them is not."""
    found: list[Value | Constant] = []
    for name in node.inputs[:2]:
        constant = builder.constants.get(name)
        if constant is not None:
            if constant_quantization(constant) is None:
                return None
            found.append(constant)
            continue
        value = builder.pure(name)
        if value is None:
            return None
        found.append(value)
    return found[0], found[1]


def constant_quantization(constant: Constant) -> Quantization | None:
    """The quantisation of a constant of 8 bits that is quantised per tensor, in int8 terms."""
    stored = constant.quantized
    if stored is None or stored.bits != 8 or stored.integers.size == 0:
        return None
    scale, zero_point = float(stored.scale.reshape(-1)[0]), int(stored.zero_point.reshape(-1)[0])
    if not np.all(stored.scale == np.float32(scale)) or not np.all(stored.zero_point == zero_point):
        return None
    shift = 0 if stored.signed else UNSIGNED_OFFSET
    return Quantization(scale, zero_point - shift)


def _emit(
    builder: Builder, node: Node, operands: Operands, ending: Ending | None, quantization: Quantization | None
) -> Value:
    """The operator, its operands brought into one layout: that of the largest activation."""
    shape = np.broadcast_shapes(operands[0].shape, operands[1].shape)
    stored, index = _common_layout(builder, operands, shape)
    inputs: list[str] = []
    constants: dict[str, ConstantArray] = {}
    position: int | None = None
    constant_shape: Shape | None = None
    meaning: Quantization | None = None
    for place, operand in enumerate(operands):
        if isinstance(operand, Value):
            wanted = scattered(index, stored, np.broadcast_to(operand.index, shape))
            inputs.append(builder.arranged(operand.tensor, compressed(np.asarray(wanted, np.int32))))
            continue
        array, meaning = _stored_constant(operand, shape, index, stored, quantized=quantization is not None)
        position, constants = place, {"constant": array}
        constant_shape = (array.shape[0], array.shape[1], array.shape[2])
    low, high = (-inf, inf) if ending is None else (ending.low, ending.high)
    op = Binary(OPERATIONS[node.op][0], position, constant_shape, meaning, low, high)
    nodes = (node,) if ending is None else fused_nodes(node, ending, quantized=quantization is not None)
    dtype = DType.FLOAT32 if quantization is None else DType.INT8
    tensor = builder.emit(op, inputs, stored, dtype, quantization, constants=constants, nodes=nodes)
    return Value(tensor, index, real=True)


def _common_layout(builder: Builder, operands: Operands, shape: tuple[int, ...]) -> tuple[Shape, IndexArray]:
    for operand in operands:
        if isinstance(operand, Value) and operand.index.size == prod(shape):
            return builder.shape_of(operand.tensor), operand.index.reshape(shape)
    return default_layout(shape)


def _stored_constant(
    constant: Constant, shape: tuple[int, ...], index: IndexArray, stored: Shape, *, quantized: bool
) -> tuple[ConstantArray, Quantization | None]:
    """A constant operand in the stored layout, without the dimensions along which it repeats."""
    places = np.broadcast_to(positions(constant.shape), shape)
    wanted = compressed(np.asarray(scattered(index, stored, places), np.int32))
    if not quantized:
        return constant.value.astype(np.float32).reshape(-1)[wanted], None
    meaning = constant_quantization(constant)
    if meaning is None or constant.quantized is None:
        raise Unsupported("a constant operand is not quantised per tensor")
    shift = 0 if constant.quantized.signed else UNSIGNED_OFFSET
    integers = (constant.quantized.integers - shift).astype(np.int8)
    return integers.reshape(-1)[wanted], meaning
