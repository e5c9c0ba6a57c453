"""Arithmetic written as Python expressions, which become the nodes of an ONNX function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from onnx import FunctionProto, NodeProto, helper, numpy_helper

from mcudeploy.frontend.onnx.protos import element_type
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.tflite.writer import OPSET, Writer


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A value of a formula: int64, or float32 if the formula is made of floats."""

    formula: Formula
    name: str

    def __add__(self, other: Expression | float) -> Expression:
        return self.formula.node("Add", self, other)

    def __sub__(self, other: Expression | float) -> Expression:
        return self.formula.node("Sub", self, other)

    def __mul__(self, other: Expression | float) -> Expression:
        return self.formula.node("Mul", self, other)

    def __neg__(self) -> Expression:
        return self.formula.node("Neg", self)

    def __floordiv__(self, other: Expression | int) -> Expression:
        """The quotient, rounded down, by a positive `other`."""
        return self.formula.node("Div", self - self % other, other)

    def __mod__(self, other: Expression | int) -> Expression:
        """The remainder, in [0, other), of a division by a positive `other`."""
        return self.formula.node("Mod", self, other)

    def __rshift__(self, bits: int) -> Expression:
        return self if bits == 0 else self // (1 << bits)

    def __gt__(self, other: Expression | float) -> Expression:
        return self.formula.node("Greater", self, other)

    def __lt__(self, other: Expression | float) -> Expression:
        return self.formula.node("Less", self, other)

    def __le__(self, other: Expression | float) -> Expression:
        return self.formula.node("LessOrEqual", self, other)

    def both(self, other: Expression) -> Expression:
        """Whether this condition and the other one hold."""
        return self.formula.node("And", self, other)

    def choose(self, yes: Expression | float, no: Expression | float) -> Expression:
        """`yes` if this condition holds, else `no`."""
        return self.formula.node("Where", self, yes, no)

    def wrapped(self, bits: int, *, signed: bool = True) -> Expression:
        """The value modulo 2^bits."""
        half = 1 << (bits - 1)
        return (self + half) % (1 << bits) - half if signed else self % (1 << bits)

    def clipped(self, low: int, high: int) -> Expression:
        """The value within [low, high]."""
        return self.formula.node("Min", self.formula.node("Max", self, low), high)

    def at(self, places: ArrayLike | Expression, axis: int = 0) -> Expression:
        """Elements at these positions along an axis."""
        index = (
            places if isinstance(places, Expression) else self.formula.constant(np.asarray(places, np.int64))
        )
        return self.formula.node("Gather", self, index, axis=axis)

    def slice(self, first: int, end: int, axis: int) -> Expression:
        """A range along an axis."""
        limits = (self.formula.constant([value]) for value in (first, end, axis))
        return self.formula.node("Slice", self, *limits)

    def reshaped(self, *shape: int) -> Expression:
        """The elements in another shape."""
        return self.formula.node("Reshape", self, self.formula.constant(list(shape)))


@dataclass(slots=True)
class Formula:
    """Nodes of a function under construction.

    Python numbers become constants of the numpy type `number`; names of values begin with `prefix`.
    """

    number: Any = np.int64
    prefix: str = "v"
    nodes: list[NodeProto] = field(default_factory=list)

    def node(self, op: str, *operands: Expression | float, **attributes: Any) -> Expression:
        """Add a node of one output."""
        names = [
            it.name if isinstance(it, Expression) else self.constant(it, self.number).name for it in operands
        ]
        return self.results(op, names, 1, **attributes)[0]

    def results(self, op: str, names: Sequence[str], count: int, **attributes: Any) -> list[Expression]:
        """Add a node of several outputs, on values by name."""
        outputs = [f"{self.prefix}{len(self.nodes)}_{at}" for at in range(count)]
        self.nodes.append(helper.make_node(op, names, outputs, **attributes))
        return [Expression(self, name) for name in outputs]

    def constant(self, value: ArrayLike, dtype: Any = np.int64) -> Expression:
        """Add a constant."""
        return self.node("Constant", value=numpy_helper.from_array(np.asarray(value, dtype)))

    def given(self, name: str) -> Expression:
        """An input of the function: cast to int64, or as it is if the formula is made of floats."""
        if self.number is not np.int64:
            return Expression(self, name)
        return self.cast(Expression(self, name), "int64")

    def cast(self, value: Expression, dtype: str) -> Expression:
        """The value in another element type."""
        return self.node("Cast", value, to=element_type(dtype))

    def joined(self, terms: Sequence[Expression], axis: int) -> Expression:
        """The concatenation of terms along an axis."""
        return self.results("Concat", [term.name for term in terms], 1, axis=axis)[0]

    def power_of_two(self, bits: Expression) -> Expression:
        """2^bits, for `bits` from 0 to 32."""
        return self.constant([1 << at for at in range(33)]).at(bits)

    def bit_length(self, value: Expression) -> Expression:
        """The bit length of each of the numbers [count], which have at most 32 bits."""
        powers = self.constant([1 << at for at in range(32)])
        reached = self.cast(powers <= value.reshaped(-1, 1), "int64")
        return self.node("ReduceSum", reached, self.constant([1]), keepdims=0)

    def result(self, name: str, value: Expression) -> None:
        """Make a value the output `name` of the function."""
        self.nodes.append(helper.make_node("Identity", [value.name], [name]))

    def function(
        self, op: str, overload: str, inputs: Sequence[str], outputs: Sequence[str]
    ) -> FunctionProto:
        """The function of these nodes."""
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_function(DOMAIN, op, inputs, outputs, self.nodes, opsets, overload=overload)


def formula_node(
    writer: Writer, op: str, inputs: Mapping[str, str], result: Expression, /, **facts: int | list[int]
) -> str:
    """Add a node whose only output is the value of an expression; see `formula_nodes`."""
    result.formula.result("y", result)
    return formula_nodes(writer, op, inputs, result.formula, **facts)[0]


def formula_nodes(
    writer: Writer, op: str, inputs: Mapping[str, str], f: Formula, **facts: int | list[int]
) -> list[str]:
    """Add a node of the private domain that the formula defines; return the names of its outputs.

    `inputs`: by name in the formula, the ONNX values; `facts`: attributes for lowering.
    """
    outputs = [it.output[0] for it in f.nodes if it.op_type == "Identity"]
    overload = writer.overload(lambda name: f.function(op, name, list(inputs), outputs))
    attributes: dict[str, Any] = {**facts, "domain": DOMAIN, "overload": overload}
    return writer.nodes(op, list(inputs.values()), len(outputs), **attributes)
