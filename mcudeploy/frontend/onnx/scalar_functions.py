"""Element-wise operators of ONNX: the function of each on a float tensor, and on a numpy array."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.ops.scalar.elementwise import BinaryFunction
from mcudeploy.ops.scalar.unary import GELU_CUBIC, GELU_SLOPE, UnaryFunction

Floats = NDArray[np.float32]
_Exact = NDArray[np.float64]
Constants = Mapping[str, Constant]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A function of one value: its operator on float tensors, and the same function on a float32 array."""

    kind: UnaryFunction
    alpha: float
    beta: float
    apply: Callable[[Floats], Floats]


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


def _clip(constants: Constants, node: Node) -> ScalarFunction:
    bounds = clip_bounds(constants, node)
    if bounds is None:
        raise Unsupported("the bounds must be constant scalars, and not NaN")
    low, high = bounds

    def apply(x: Floats) -> Floats:
        return np.minimum(np.maximum(x, np.float32(low)), np.float32(high))

    return ScalarFunction("relu" if bounds == (0.0, inf) else "clip", low, high, apply)


def _leaky_relu(constants: Constants, node: Node) -> ScalarFunction:
    alpha = node.number("alpha", 0.01)
    return ScalarFunction("leaky_relu", alpha, 0.0, lambda x: np.where(x >= 0, x, np.float32(alpha) * x))


def _hard_sigmoid(constants: Constants, node: Node) -> ScalarFunction:
    alpha, beta = node.number("alpha", 0.2), node.number("beta", 0.5)

    def apply(x: Floats) -> Floats:
        line = np.float32(alpha) * x + np.float32(beta)
        return np.asarray(np.maximum(np.float32(0), np.minimum(np.float32(1), line)), np.float32)

    return ScalarFunction("hard_sigmoid", alpha, beta, apply)


def _hard_swish(constants: Constants, node: Node) -> ScalarFunction:
    sixth = float(np.float32(1 / 6))

    def apply(x: Floats) -> Floats:
        line = np.float32(sixth) * x + np.float32(0.5)
        return np.asarray(x * np.maximum(np.float32(0), np.minimum(np.float32(1), line)), np.float32)

    return ScalarFunction("hard_swish", sixth, 0.5, apply)


def exactly(of: Callable[[_Exact], _Exact]) -> Callable[[Floats], Floats]:
    """Compute a function in float64 and round once."""

    def apply(x: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(of(x.astype(np.float64)), np.float32)

    return apply


def power(exponent: float) -> ScalarFunction:
    """`x` to a constant power."""
    special: dict[float, UnaryFunction] = {2.0: "square", 0.5: "sqrt", -1.0: "reciprocal"}
    kind = special.get(exponent, "power")
    return ScalarFunction(kind, exponent if kind == "power" else 0.0, 0.0, exactly(lambda x: x**exponent))


def _softplus(x: _Exact) -> _Exact:
    return np.logaddexp(0.0, x)


def _gelu(constants: Constants, node: Node) -> ScalarFunction:
    how = node.text("approximate", "none")
    if how == "tanh":
        curve = exactly(lambda x: 0.5 * x * (1 + np.tanh(GELU_SLOPE * (x + GELU_CUBIC * x**3))))
        return ScalarFunction("gelu_tanh", 0.0, 0.0, curve)
    if how != "none":
        raise Unsupported(f"approximate={how!r} is not supported; none and tanh are")
    return ScalarFunction("gelu", 0.0, 0.0, exactly(lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))))


def _erf(x: _Exact) -> _Exact:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x), np.float64)


def _plain(
    kind: UnaryFunction, of: Callable[[_Exact], _Exact]
) -> Callable[[Constants, Node], ScalarFunction]:
    made = ScalarFunction(kind, 0.0, 0.0, exactly(of))
    return lambda constants, node: made


def _with_alpha(
    kind: UnaryFunction, of: Callable[[_Exact, float], _Exact]
) -> Callable[[Constants, Node], ScalarFunction]:
    def function(constants: Constants, node: Node) -> ScalarFunction:
        alpha = node.number("alpha", 1.0)
        return ScalarFunction(kind, alpha, 0.0, exactly(lambda x: of(x, alpha)))

    return function


def _celu(constants: Constants, node: Node) -> ScalarFunction:
    alpha = node.number("alpha", 1.0)
    if alpha == 0:
        raise Unsupported("alpha must not be 0")
    return ScalarFunction(
        "celu", alpha, 0.0, exactly(lambda x: np.where(x > 0, x, alpha * np.expm1(x / alpha)))
    )


def _selu(constants: Constants, node: Node) -> ScalarFunction:
    alpha = node.number("alpha", 1.6732632423543772)
    gamma = node.number("gamma", 1.0507009873554805)
    curve = exactly(lambda x: gamma * np.where(x > 0, x, alpha * np.expm1(x)))
    return ScalarFunction("selu", alpha, gamma, curve)


def _shrink(constants: Constants, node: Node) -> ScalarFunction:
    bound, bias = node.number("lambd", 0.5), node.number("bias", 0.0)
    curve = exactly(lambda x: np.where(x < -bound, x + bias, np.where(x > bound, x - bias, 0.0)))
    return ScalarFunction("shrink", bound, bias, curve)


FUNCTIONS: dict[str, Callable[[Constants, Node], ScalarFunction]] = {
    "Abs": _plain("abs", np.abs),
    "Acos": _plain("acos", np.arccos),
    "Acosh": _plain("acosh", np.arccosh),
    "Asin": _plain("asin", np.arcsin),
    "Asinh": _plain("asinh", np.arcsinh),
    "Atan": _plain("atan", np.arctan),
    "Atanh": _plain("atanh", np.arctanh),
    "Ceil": _plain("ceil", np.ceil),
    "Celu": _celu,
    "Clip": _clip,
    "Cos": _plain("cos", np.cos),
    "Cosh": _plain("cosh", np.cosh),
    "Elu": _with_alpha("elu", lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x))),
    "Erf": _plain("erf", _erf),
    "Exp": _plain("exp", np.exp),
    "Floor": _plain("floor", np.floor),
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "LeakyRelu": _leaky_relu,
    "Log": _plain("log", np.log),
    "Mish": _plain("mish", lambda x: x * np.tanh(_softplus(x))),
    "Neg": _plain("neg", np.negative),
    "Not": _plain("logical_not", lambda x: np.where(x == 0, 1.0, 0.0)),
    "Reciprocal": _plain("reciprocal", np.reciprocal),
    "Relu": _clip,
    "Round": _plain("round", np.rint),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": _plain("sigmoid", lambda x: 1.0 / (1.0 + np.exp(-x))),
    "Sign": _plain("sign", np.sign),
    "Sin": _plain("sin", np.sin),
    "Sinh": _plain("sinh", np.sinh),
    "Softplus": _plain("softplus", _softplus),
    "Softsign": _plain("softsign", lambda x: x / (1 + np.abs(x))),
    "Sqrt": _plain("sqrt", np.sqrt),
    "Swish": _with_alpha("swish", lambda x, alpha: x / (1 + np.exp(-alpha * x))),
    "Tan": _plain("tan", np.tan),
    "Tanh": _plain("tanh", np.tanh),
    "ThresholdedRelu": _with_alpha("thresholded_relu", lambda x, alpha: np.where(x > alpha, x, 0.0)),
}
"""Functions of one value, by ONNX operator."""

_Operation = Callable[[Floats, Floats], Floats]

OPERATIONS: dict[str, tuple[BinaryFunction, _Operation]] = {
    "Add": ("add", np.add),
    "Sub": ("sub", np.subtract),
    "Mul": ("mul", np.multiply),
    "Div": ("div", np.divide),
    "Max": ("max", np.maximum),
    "Min": ("min", np.minimum),
    "Mod": ("fmod", np.fmod),
    "Pow": ("pow", np.power),
    "And": ("min", np.minimum),
    "Equal": ("equal", np.equal),
    "Less": ("less", np.less),
    "LessOrEqual": ("less_equal", np.less_equal),
    "Or": ("max", np.maximum),
    "Xor": ("not_equal", np.not_equal),
    "PRelu": ("prelu", lambda x, slope: np.where(x < 0, x * slope, x)),
}
"""Functions of two values, by ONNX operator. True and false of the model are 1 and 0 here."""
