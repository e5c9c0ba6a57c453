"""Scalar functions that the element-wise operators of ONNX compute."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import numpy as np

from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.ops.scalar.functions import BINARY, UNARY, BinaryFunction, NumberAttribute, UnaryFunction
from mcudeploy.ops.scalar.unary import Unary

Constants = Mapping[str, Constant]

FUNCTIONS: Mapping[str, UnaryFunction] = {row.onnx: row for row in UNARY.values() if row.onnx}
"""Functions of one value, by ONNX operator."""
OPERATIONS: Mapping[str, BinaryFunction] = {name: row for row in BINARY.values() for name in row.onnx}
"""Functions of two values, by ONNX operator. True is 1 here, and false 0."""


def unary_of(constants: Constants, node: Node) -> Unary:
    """The function of a node with an operator of FUNCTIONS. Raises Unsupported for attributes without one."""
    row = FUNCTIONS[node.op]
    alpha, beta = (
        node.number(it.name, it.default) if isinstance(it, NumberAttribute) else it
        for it in (row.alpha, row.beta)
    )
    match row.name:
        case "clip" | "relu":
            bounds = clip_bounds(constants, node)
            if bounds is None:
                raise Unsupported("the bounds must be constant scalars, and not NaN")
            return Unary("relu") if bounds == (0.0, inf) else Unary("clip", *bounds)
        case "celu" if alpha == 0:
            raise Unsupported("alpha must not be 0")
        case "gelu" if (approximation := node.text("approximate", "none")) != "none":
            if approximation != "tanh":
                raise Unsupported(f"approximate={approximation!r} is not supported; none and tanh are")
            return Unary("gelu_tanh")
        case _:
            return Unary(row.name, alpha, beta)


def power(exponent: float) -> Unary:
    """`x` to a constant power."""
    special = {2.0: "square", 0.5: "sqrt", -1.0: "reciprocal"}
    return Unary(special[exponent]) if exponent in special else Unary("power", exponent)


def clip_bounds(constants: Constants, node: Node) -> tuple[float, float] | None:
    """The bounds of a Relu, or of a Clip with constant bounds other than NaN; None for other nodes."""
    if node.domain:
        return None
    if node.op == "Relu":
        return 0.0, inf
    if node.op != "Clip":
        return None
    bounds = []
    for position, open_end in ((1, -inf), (2, inf)):
        constant = constants.get(node.input(position))
        if constant is None and node.input(position):
            return None
        if constant is not None and (constant.value.size != 1 or np.any(np.isnan(constant.value))):
            return None
        bounds.append(open_end if constant is None else float(constant.value.reshape(-1)[0]))
    low, high = bounds
    return min(low, high), high
