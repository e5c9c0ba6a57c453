"""Fusion of the nodes that compute Swish or Gelu into one node, which has a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.nodes import Node, OnnxModel
from mcudeploy.ops.scalar.functions import GELU_CUBIC, GELU_SLOPE

_Polynomial = NDArray[Any]
"""The coefficients, from the highest power down."""

_PRECISION = 2e-5
"""Relative difference that is allowed, since exporters round constants."""
_MAX_DEPTH = 5
"""Limit of the nodes in a row between a value and a polynomial of it."""
_GELU_ARGUMENTS = {"Erf": (sqrt(0.5), 0.0), "Tanh": (GELU_SLOPE * GELU_CUBIC, 0.0, GELU_SLOPE, 0.0)}
"""The polynomial of x that is the argument of each function from which Gelu is computed."""


def join_activations(model: OnnxModel) -> OnnxModel:
    """Replace the last node of each Swish and Gelu of a float value; others are removed later as unread."""
    gates = [node for node in model.nodes if not node.domain and node.op in ("Sigmoid", *_GELU_ARGUMENTS)]
    if not gates:
        return model
    products, joined = _Products(model), dict[str, Node]()
    for node in gates:
        function = products.function(node)
        if function is not None:
            joined[function.output] = function
    nodes = tuple(joined.get(node.output, node) for node in model.nodes)
    return replace(model, nodes=nodes) if joined else model


class _Products:
    """The products and polynomials that a model computes."""

    def __init__(self, model: OnnxModel) -> None:
        self._model = model
        self._producers, self._readers = model.producers(), model.consumers()
        self._outputs = {info.name for info in model.outputs}

    def function(self, gate: Node) -> Node | None:
        """The Swish or Gelu node that replaces a product of the gate and a value; None if there is none.

        The gate is a function of a polynomial of the value.
        """
        argument = gate.inputs[0]
        for x in self._within(argument):
            inner = self._polynomial(argument, x)
            if inner is None or self._is_table(x):
                continue
            attributes: dict[str, Any] = {}
            if gate.op == "Sigmoid" and inner.size == 2 and inner[0] and not inner[1]:
                last, attributes = self._product(gate.output, x, (1.0, 0.0)), {"alpha": float(inner[0])}
            elif gate.op in _GELU_ARGUMENTS and _equal(inner, _GELU_ARGUMENTS[gate.op]):
                last = self._product(self._plus_one(gate.output), x, (0.5, 0.0))
                attributes = {"approximate": "tanh" if gate.op == "Tanh" else "none"}
            else:
                continue
            if last is not None and self._shape(x) == self._shape(last.output) is not None:
                op = "Swish" if gate.op == "Sigmoid" else "Gelu"
                return replace(last, op=op, inputs=(x,), attributes=attributes)
        return None

    def _within(self, name: str) -> Iterator[str]:
        """The values of which a value may be a polynomial, itself first."""
        level = [name]
        for _ in range(_MAX_DEPTH):
            yield from level
            producers = [self._producers[it] for it in level if it in self._producers]
            level = list(dict.fromkeys(it for node in producers if _computes(node) for it in node.inputs))

    def _polynomial(self, name: str, x: str, depth: int = _MAX_DEPTH) -> _Polynomial | None:
        """A value as a polynomial of `x`; None if it is not one."""
        if name == x:
            return np.array([1.0, 0.0])
        constant, node = self._model.constants.get(name), self._producers.get(name)
        if constant is not None:
            return constant.value.astype(float).reshape(-1) if constant.value.size == 1 else None
        if node is None or not depth or not _computes(node):
            return None
        first, second = (self._polynomial(it, x, depth - 1) for it in node.inputs)
        if first is None or second is None:
            return None
        if node.op == "Add":
            return np.polyadd(first, second)
        if node.op == "Mul":
            return np.polymul(first, second)
        if second.size > 1 or not second[0]:
            return None
        if node.op == "Div":
            quotient: _Polynomial = first / second[0]
            return quotient
        square = np.polymul(first, first)
        powers: dict[float, _Polynomial] = {2.0: square, 3.0: np.polymul(square, first)}
        return powers.get(float(second[0]))

    def _reader(self, name: str, *ops: str) -> Node | None:
        """The only reader of a value, if its operator is one of these."""
        readers = self._readers.get(name, [])
        if len(readers) != 1 or name in self._outputs or readers[0].domain:
            return None
        return readers[0] if readers[0].op in ops else None

    def _plus_one(self, name: str) -> str:
        """The name of the value plus 1; "" if no node computes this sum."""
        node = self._reader(name, "Add")
        other = None if node is None else self._polynomial(_other(node, name), "")
        return node.output if node is not None and other is not None and _equal(other, (1.0,)) else ""

    def _product(self, name: str, x: str, wanted: tuple[float, ...]) -> Node | None:
        """The last of the Mul nodes that multiply a value by the polynomial `wanted` of `x`; None without."""
        factor = np.array([1.0])
        while len(factor) <= len(wanted):
            last = self._reader(name, "Mul")
            other = None if last is None else self._polynomial(_other(last, name), x)
            if last is None or other is None:
                return None
            factor = np.polymul(factor, other)
            if _equal(factor, wanted):
                return last
            name = last.output
        return None

    def _is_table(self, name: str) -> bool:
        """Whether a value is stored in 8 bits, so that a table can compute any function of it."""
        return name in self._producers and self._producers[name].op == "DequantizeLinear"

    def _shape(self, name: str) -> tuple[int, ...] | None:
        return self._model.infos[name].shape if name in self._model.infos else None


def _computes(node: Node) -> bool:
    return not node.domain and node.op in ("Add", "Div", "Mul", "Pow")


def _other(node: Node, name: str) -> str:
    """The other one of a node's two operands."""
    return node.inputs[1] if node.inputs[0] == name else node.inputs[0]


def _equal(polynomial: _Polynomial, wanted: tuple[float, ...]) -> bool:
    return polynomial.shape == (len(wanted),) and np.allclose(polynomial, wanted, rtol=_PRECISION, atol=0)
