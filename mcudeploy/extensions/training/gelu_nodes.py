"""The tanh approximation of Gelu, and its slope, as ONNX nodes over images."""

from __future__ import annotations

from mcudeploy.extensions.training.node_list import NodeList
from mcudeploy.ops.scalar.functions import GELU_CUBIC, GELU_SLOPE


def share(nodes: NodeList, x: str) -> str:
    """Gelu(x) / x: (1 + tanh(slope * (x + cubic * x^3))) / 2."""
    curve = nodes.add("Tanh", [_odd(nodes, x, GELU_CUBIC)], nodes.shapes[x])
    return _line(nodes, curve, 0.5, 0.5)


def slope(nodes: NodeList, x: str) -> str:
    """The derivative at `x`: share * (1 + 2 * x * (1 - share) * derivative of the argument of tanh)."""
    shape, passed = nodes.shapes[x], share(nodes, x)
    rest = nodes.add("Mul", [_line(nodes, passed, -2.0, 2.0), _odd(nodes, x, 3 * GELU_CUBIC)], shape)
    return nodes.add("Mul", [passed, _line(nodes, rest, 1.0, 1.0)], shape)


def _odd(nodes: NodeList, x: str, cubic: float) -> str:
    """Slope * (x + cubic * x^3)."""
    square = nodes.add("Mul", [x, x], nodes.shapes[x])
    return nodes.add("Mul", [x, _line(nodes, square, GELU_SLOPE * cubic, GELU_SLOPE)], nodes.shapes[x])


def _line(nodes: NodeList, x: str, factor: float, constant: float) -> str:
    """Factor * x + constant."""
    product = nodes.add("Mul", [x, nodes.reals(factor)], nodes.shapes[x])
    return nodes.add("Add", [product, nodes.reals(constant)], nodes.shapes[x])
