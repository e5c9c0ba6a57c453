"""Functions of integers: int8, uint8, int32 and int64 values without a quantisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.alignment import Operands, aligned
from mcudeploy.frontend.lower.builder import Builder, OperatorLowering
from mcudeploy.frontend.lower.elementwise import (
    WITH_INT8_KERNELS,
    binary,
    masked_constant,
    real_binary,
    real_unary,
    unary,
    where,
)
from mcudeploy.frontend.lower.graph_outputs import truth
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.quantization import TRUTH
from mcudeploy.frontend.onnx.scalar_functions import FUNCTIONS, OPERATIONS
from mcudeploy.frontend.onnx.values import STORED_TYPES, OnnxValue
from mcudeploy.ir.graph import UNSIGNED_OFFSET, DType, Quantization
from mcudeploy.ops.requantize import STORED, dequantize_table
from mcudeploy.ops.scalar.integer import IntegerBinary, IntegerFunction

_INTEGER_TYPES = ("int8", "uint8", "int32", "int64")
_FUNCTIONS: dict[str, IntegerFunction] = {
    "Add": "add",
    "BitwiseAnd": "and",
    "BitwiseOr": "or",
    "BitwiseXor": "xor",
    "Div": "div",
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Max": "max",
    "Min": "min",
    "Mod": "mod",
    "Mul": "mul",
    "Pow": "pow",
    "Sub": "sub",
}
_COMPARISONS = frozenset({"equal", "less", "less_equal"})
BITWISE = frozenset({"BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"})
"""Operators that floats do not have."""


def any_binary(builder: Builder, node: Node) -> None:
    """Lower a function of two values, on integers or floats."""
    if not _of_integers(builder, node.inputs):
        binary(builder, node)
        return
    operands = _operand(builder, node.inputs[0]), _operand(builder, node.inputs[1])
    function = _FUNCTIONS.get(node.op)
    if node.op == "BitShift":
        function = "shift_left" if node.text("direction", "LEFT") == "LEFT" else "shift_right"
    elif node.op == "Mod" and node.integer("fmod", 0):
        function = "fmod"
    if function is None:
        raise Unsupported("it is not supported of integers: put a Cast to float32 before it")
    builder.define(node.output, _emit(builder, node, function, operands, _kind(builder, node, 0)))


def any_unary(builder: Builder, node: Node) -> None:
    """Lower a function of one value, on integers or floats."""
    if not _of_integers(builder, node.inputs[:1]):
        unary(builder, node)
        return
    steps_of = _STEPS.get(node.op)
    if steps_of is None:
        raise Unsupported("it is not supported of integers: put a Cast to float32 before it")
    kind = _kind(builder, node, 0)
    value = builder.integers(node.inputs[0])
    if node.op == "Neg" and kind == "int8":
        table = np.negative(STORED).astype(np.int8)
        builder.define(node.output, replace(value, table=table, quantization=None))
        return
    is_unchanged = node.op == "Abs" and kind == "uint8"
    for step in () if is_unchanged else steps_of(builder, node):
        value = step(builder, node, value, kind)
    builder.define(node.output, value)


def any_where(builder: Builder, node: Node) -> None:
    """Lower Where on integers as the sum of the two masked operands."""
    if not _of_integers(builder, node.inputs[1:]):
        where(builder, node)
        return
    kind = _kind(builder, node, 1)
    mask, first, second = (
        _mask(builder, node.inputs[0]),
        *(_operand(builder, name) for name in node.inputs[1:]),
    )
    masked = _masked(builder, node, "keep", (mask, first), kind)
    rest = _masked(builder, node, "drop", (mask, second), kind)
    builder.define(node.output, _emit(builder, node, "add", (masked, rest), kind))


def _of_integers(builder: Builder, names: tuple[str, ...]) -> bool:
    """Whether the operands are integers. Raises Unsupported if computed operands mix integers and floats."""
    values = [builder.values[name] for name in names if name in builder.values]
    if not values:
        return all(builder.constants[name].value.dtype.kind in "iu" for name in names)
    if all(value.real for value in values):
        return False
    if any(value.real for value in values):
        raise Unsupported("its operands are integers and floats: put a Cast before it")
    return True


def _kind(builder: Builder, node: Node, place: int) -> str:
    kind = builder.model.dtype_of(node.inputs[place])
    if kind not in _INTEGER_TYPES:
        raise Unsupported(f"{kind} is not supported; {', '.join(_INTEGER_TYPES)} are")
    return kind


def _operand(builder: Builder, name: str) -> OnnxValue | Constant:
    constant = builder.constants.get(name)
    return builder.integers(name) if constant is None else _as_int32(constant.value)


def _as_int32(array: NDArray[np.generic]) -> Constant:
    """Convert a constant to int32. Raises Unsupported if a value changes."""
    narrow = array.astype(np.int32)
    if not np.array_equal(narrow, array):
        raise Unsupported("a constant operand does not fit 32 bits, in which integers are held")
    return Constant(narrow)


def _mask(builder: Builder, name: str) -> OnnxValue | Constant:
    constant = builder.constants.get(name)
    return truth(builder, name) if constant is None else _as_int32(constant.value != 0)


def _masked(
    builder: Builder, node: Node, function: IntegerFunction, operands: Operands, kind: str
) -> OnnxValue | Constant:
    masked = masked_constant(operands, function == "keep", np.int32)
    return _emit(builder, node, function, operands, kind) if masked is None else masked


Step = Callable[[Builder, Node, OnnxValue, str], OnnxValue]
"""Function that emits one operator for a node, on the value so far of the given element type."""


def _with(function: IntegerFunction, *, of: str = "", number: int = 0, number_first: bool = False) -> Step:
    """A step: `function` of the value and of `number`, or of the node's input `of`."""

    def step(builder: Builder, node: Node, value: OnnxValue, kind: str) -> OnnxValue:
        other = _operand(builder, of) if of else Constant(np.array(number, np.int32))
        operands: Operands = (other, value) if number_first else (value, other)
        return _emit(builder, node, function, operands, kind)

    return step


def _absolute(builder: Builder, node: Node, value: OnnxValue, kind: str) -> OnnxValue:
    negative = _with("sub", number_first=True)(builder, node, value, kind)
    return _emit(builder, node, "max", (value, negative), kind)


def _clip(builder: Builder, node: Node) -> tuple[Step, ...]:
    bounds: tuple[tuple[IntegerFunction, str], ...] = (("max", node.input(1)), ("min", node.input(2)))
    return tuple(_with(function, of=name) for function, name in bounds if name)


_STEPS: dict[str, Callable[[Builder, Node], tuple[Step, ...]]] = {
    "Abs": lambda builder, node: (_absolute,),
    "BitwiseNot": lambda builder, node: (_with("xor", number=-1),),
    "Clip": _clip,
    "Neg": lambda builder, node: (_with("sub", number_first=True),),
    "Relu": lambda builder, node: (_with("max"),),
    "Sign": lambda builder, node: (_with("min", number=1), _with("max", number=-1)),
}
"""Unary functions expressed as binary functions."""

INTEGER_OPERATORS = tuple(sorted({*_FUNCTIONS, *_STEPS, "BitShift", "Where"}))
"""Operators that compute with integers."""


def _emit(
    builder: Builder, node: Node, function: IntegerFunction, operands: Operands, kind: str
) -> OnnxValue:
    """Emit the operator; `kind` is the element type of all operands but masks, and of non-boolean results."""
    offset = UNSIGNED_OFFSET if kind == "uint8" else 0
    first_is_mask = function in ("keep", "drop")
    first, second = (
        0 if (first_is_mask and at == 0) or isinstance(operand, Constant) else offset
        for at, operand in enumerate(operands)
    )
    both = aligned(builder, operands, (node,))
    compares = function in _COMPARISONS
    dtype = DType.INT8 if compares else STORED_TYPES[kind]
    quantization = TRUTH if compares else Quantization(1.0, 0) if dtype is DType.INT8 else None
    op = IntegerBinary(function, both.place, both.constant_shape, (first, second, 0 if compares else offset))
    tensor = builder.emit(
        op, both.inputs, both.shape, dtype, quantization, constants=both.constants, nodes=(node,)
    )
    table = dequantize_table(TRUTH) if compares else None
    return OnnxValue(tensor, both.index, real=compares, table=table, quantization=quantization)


_ON_NUMBERS = "table with a constant number, else float"
LOWERINGS: dict[str, OperatorLowering] = {
    **dict.fromkeys(FUNCTIONS, OperatorLowering(any_unary, "table", real=real_unary)),
    **dict.fromkeys(OPERATIONS, OperatorLowering(any_binary, _ON_NUMBERS, real=real_binary)),
    **dict.fromkeys(WITH_INT8_KERNELS, OperatorLowering(any_binary, "kernel", real=real_binary)),
    **dict.fromkeys(BITWISE - {"BitwiseNot"}, OperatorLowering(any_binary, "", only="of integers")),
    "BitwiseNot": OperatorLowering(any_unary, "", only="of integers"),
    "Mod": OperatorLowering(any_binary, _ON_NUMBERS, only="of floats with fmod=1", real=real_binary),
    "Where": OperatorLowering(any_where),
}
