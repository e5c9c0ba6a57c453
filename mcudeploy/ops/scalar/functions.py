"""Tables of scalar functions: the ONNX operator, the C code, and the same function of numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]

GELU_SLOPE, GELU_CUBIC = sqrt(2 / pi), 0.044715
"""The constants of gelu_tanh: x / 2 * (1 + tanh(slope * (x + cubic * x^3)))."""


@dataclass(frozen=True, slots=True)
class NumberAttribute:
    """The attribute of an ONNX operator that is a function's alpha or beta."""

    name: str
    default: float


@dataclass(frozen=True, slots=True)
class UnaryFunction:
    """A function of one value.

    `meaning`: the formula, for documentation. `code`: a C expression, or statements; "" if the kernel is not
    printed. `compute`: the function of x, alpha and beta; in float32 if `single`, else in float64, rounded
    once. `alpha`, `beta`: attributes of `onnx`, or constants.
    """

    name: str
    onnx: str
    meaning: str
    code: str
    compute: Callable[[Values, Any, Any], Values]
    alpha: NumberAttribute | float = 0.0
    beta: NumberAttribute | float = 0.0
    single: bool = False


@dataclass(frozen=True, slots=True)
class BinaryFunction:
    """A function of two values, computed in the operands' type; `code` is an expression in C.

    `operation`: the C operator of a function that the kernel computes for eight pairs at a time.
    Comparisons yield 1 or 0. `onnx` also names operators of booleans, which are 1 and 0 here.
    """

    name: str
    onnx: tuple[str, ...]
    meaning: str
    code: str
    compute: Callable[[Values, Values], Values]
    called: str = "of"
    keeps_nan: bool = False
    operation: str = ""


def _of(function: Callable[[Values], Values]) -> Callable[[Values, Any, Any], Values]:
    """The `compute` of a function without alpha and beta."""
    return lambda x, alpha, beta: function(x)


def _softplus(x: Values) -> Values:
    return np.logaddexp(0.0, x)


def _erf(x: Values) -> Values:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x), np.float64)


def _line(x: Values, alpha: Any, beta: Any) -> Values:
    return np.asarray(np.maximum(0, np.minimum(1, alpha * x + beta)))


_LINE = "const float line = alpha * x + beta;\n"
_CUT = "line < 0.0f ? 0.0f : (line > 1.0f ? 1.0f : line)"
_ALPHA = NumberAttribute("alpha", 1.0)
_SIXTH = float(np.float32(1 / 6))

UNARY = {row.name: row for row in (
    UnaryFunction("abs", "Abs", "|in|", "fabsf(x)", _of(np.abs)),
    UnaryFunction("acos", "Acos", "acos(in)", "acosf(x)", _of(np.arccos)),
    UnaryFunction("acosh", "Acosh", "acosh(in)", "acoshf(x)", _of(np.arccosh)),
    UnaryFunction("asin", "Asin", "asin(in)", "asinf(x)", _of(np.arcsin)),
    UnaryFunction("asinh", "Asinh", "asinh(in)", "asinhf(x)", _of(np.arcsinh)),
    UnaryFunction("atan", "Atan", "atan(in)", "atanf(x)", _of(np.arctan)),
    UnaryFunction("atanh", "Atanh", "atanh(in)", "atanhf(x)", _of(np.arctanh)),
    UnaryFunction("ceil", "Ceil", "the least integer that is not below in", "ceilf(x)", _of(np.ceil)),
    UnaryFunction(
        "celu", "Celu", "in above 0, else alpha * (exp(in / alpha) - 1)",
        "x > 0.0f ? x : alpha * expm1f(x / alpha)",
        lambda x, alpha, beta: np.where(x > 0, x, alpha * np.expm1(x / alpha)), _ALPHA,
    ),
    UnaryFunction(
        "clip", "Clip", "in, but alpha below it and beta above it", "",
        lambda x, alpha, beta: np.minimum(np.maximum(x, alpha), beta), single=True,
    ),
    UnaryFunction("cos", "Cos", "cos(in)", "cosf(x)", _of(np.cos)),
    UnaryFunction("cosh", "Cosh", "cosh(in)", "coshf(x)", _of(np.cosh)),
    UnaryFunction(
        "elu", "Elu", "in above 0, else alpha * (exp(in) - 1)", "x > 0.0f ? x : alpha * expm1f(x)",
        lambda x, alpha, beta: np.where(x > 0, x, alpha * np.expm1(x)), _ALPHA,
    ),
    UnaryFunction("erf", "Erf", "the error function of in", "erff(x)", _of(_erf)),
    UnaryFunction("exp", "Exp", "exp(in)", "mcud_expf(x)", _of(np.exp)),
    UnaryFunction("floor", "Floor", "the largest integer that is not above in", "floorf(x)", _of(np.floor)),
    UnaryFunction(
        "gelu", "Gelu", "in * (1 + erf(in / sqrt(2))) / 2", "0.5f * x * (1.0f + erff(0.70710678f * x))",
        _of(lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))),
    ),
    UnaryFunction(
        "gelu_tanh", "", "in * (1 + tanh(sqrt(2 / pi) * (in + 0.044715 in^3))) / 2",
        "0.5f * x * (1.0f + mcud_tanhf(0.79788456f * (x + 0.044715f * x * x * x)))",
        _of(lambda x: 0.5 * x * (1 + np.tanh(GELU_SLOPE * (x + GELU_CUBIC * x**3)))),
    ),
    UnaryFunction("half", "", "the nearest float16", "", _of(lambda x: x.astype(np.float16))),
    UnaryFunction(
        "hard_sigmoid", "HardSigmoid", "alpha * in + beta, clipped to [0, 1]", f"{_LINE}return {_CUT};",
        _line, NumberAttribute("alpha", 0.2), NumberAttribute("beta", 0.5), single=True,
    ),
    UnaryFunction(
        "hard_swish", "HardSwish", "in * (alpha * in + beta, clipped to [0, 1])",
        f"{_LINE}return x * ({_CUT});",
        lambda x, alpha, beta: x * _line(x, alpha, beta), _SIXTH, 0.5, single=True,
    ),
    UnaryFunction(
        "leaky_relu", "LeakyRelu", "in where it is not negative, else alpha * in",
        "x < 0.0f ? alpha * x : x", lambda x, alpha, beta: np.where(x >= 0, x, alpha * x),
        NumberAttribute("alpha", 0.01), single=True,
    ),
    UnaryFunction("log", "Log", "the natural logarithm of in", "logf(x)", _of(np.log)),
    UnaryFunction(
        "logical_not", "Not", "1 if in is 0, else 0", "x == 0.0f ? 1.0f : 0.0f",
        _of(lambda x: np.where(x == 0, 1.0, 0.0)),
    ),
    UnaryFunction(
        "mish", "Mish", "in * tanh(log(1 + exp(in)))",
        "const float softplus = fmaxf(x, 0.0f) + log1pf(mcud_expf(-fabsf(x)));\n"
        "return x * mcud_tanhf(softplus);",
        _of(lambda x: x * np.tanh(_softplus(x))),
    ),
    UnaryFunction("neg", "Neg", "-in", "-x", _of(np.negative)),
    UnaryFunction(
        "power", "", "in to the power of alpha", "powf(x, alpha)", lambda x, alpha, beta: x**alpha
    ),
    UnaryFunction("reciprocal", "Reciprocal", "1 / in", "1.0f / x", _of(np.reciprocal)),
    UnaryFunction("relu", "Relu", "in, but 0 below it", "", _of(lambda x: np.maximum(x, 0)), single=True),
    UnaryFunction("round", "Round", "the nearest integer, the even one of two", "rintf(x)", _of(np.rint)),
    UnaryFunction(
        "selu", "Selu", "beta * in above 0, else beta * alpha * (exp(in) - 1)",
        "beta * (x > 0.0f ? x : alpha * expm1f(x))",
        lambda x, alpha, beta: beta * np.where(x > 0, x, alpha * np.expm1(x)),
        NumberAttribute("alpha", 1.6732632423543772), NumberAttribute("gamma", 1.0507009873554805),
    ),
    UnaryFunction(
        "shrink", "Shrink", "in + beta below -alpha, in - beta above alpha, else 0",
        "x < -alpha ? x + beta : (x > alpha ? x - beta : 0.0f)",
        lambda x, alpha, beta: np.where(x < -alpha, x + beta, np.where(x > alpha, x - beta, 0.0)),
        NumberAttribute("lambd", 0.5), NumberAttribute("bias", 0.0),
    ),
    UnaryFunction(
        "sigmoid", "Sigmoid", "1 / (1 + exp(-in))", "mcud_sigmoidf(x)",
        _of(lambda x: 1.0 / (1.0 + np.exp(-x))),
    ),
    UnaryFunction(
        "sign", "Sign", "-1, 0 or 1, or NaN of NaN",
        "return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x + 0.0f); /* 0.0 for -0.0, NaN for NaN */",
        _of(np.sign),
    ),
    UnaryFunction("sin", "Sin", "sin(in)", "sinf(x)", _of(np.sin)),
    UnaryFunction("sinh", "Sinh", "sinh(in)", "sinhf(x)", _of(np.sinh)),
    UnaryFunction(
        "softplus", "Softplus", "log(1 + exp(in))", "fmaxf(x, 0.0f) + log1pf(mcud_expf(-fabsf(x)))",
        _of(_softplus),
    ),
    UnaryFunction(
        "softsign", "Softsign", "in / (1 + |in|)", "x / (1.0f + fabsf(x))",
        _of(lambda x: x / (1 + np.abs(x))),
    ),
    UnaryFunction("sqrt", "Sqrt", "the square root of in", "sqrtf(x)", _of(np.sqrt)),
    UnaryFunction("square", "", "in * in", "x * x", _of(np.square)),
    UnaryFunction(
        "swish", "Swish", "in / (1 + exp(-alpha * in))", "x / (1.0f + mcud_expf(-alpha * x))",
        lambda x, alpha, beta: x / (1 + np.exp(-alpha * x)), _ALPHA,
    ),
    UnaryFunction("tan", "Tan", "tan(in)", "tanf(x)", _of(np.tan)),
    UnaryFunction("tanh", "Tanh", "tanh(in)", "mcud_tanhf(x)", _of(np.tanh)),
    UnaryFunction(
        "thresholded_relu", "ThresholdedRelu", "in above alpha, else 0", "x > alpha ? x : 0.0f",
        lambda x, alpha, beta: np.where(x > alpha, x, 0.0), _ALPHA,
    ),
)}  # fmt: skip
"""Functions of one value by name. relu is a clip; clip and half have separate C files."""

BINARY = {row.name: row for row in (
    BinaryFunction("add", ("Add",), "a + b", "a + b", np.add, "add", operation="+"),
    BinaryFunction("sub", ("Sub",), "a - b", "a - b", np.subtract, "subtract", operation="-"),
    BinaryFunction("mul", ("Mul",), "a * b", "a * b", np.multiply, "multiply", operation="*"),
    BinaryFunction("div", ("Div",), "a / b", "a / b", np.divide, "divide"),
    BinaryFunction(
        "max", ("Max", "Or"), "max(a, b)", "b <= a ? a : (a == a ? b : a)", np.maximum, keeps_nan=True
    ),
    BinaryFunction(
        "min", ("Min", "And"), "min(a, b)", "b >= a ? a : (a == a ? b : a)", np.minimum, keeps_nan=True
    ),
    BinaryFunction("pow", ("Pow",), "a to the power of b", "powf(a, b)", np.power),
    BinaryFunction(
        "prelu", ("PRelu",), "a where it is not negative, else a * b", "a < 0.0f ? a * b : a",
        lambda x, slope: np.where(x < 0, x * slope, x),
    ),
    BinaryFunction("fmod", ("Mod",), "a modulo b, with the sign of a", "fmodf(a, b)", np.fmod),
    BinaryFunction("less", ("Less",), "1 if a < b, else 0", "a < b ? 1.0f : 0.0f", np.less),
    BinaryFunction(
        "less_equal", ("LessOrEqual",), "1 if a <= b, else 0", "a <= b ? 1.0f : 0.0f", np.less_equal
    ),
    BinaryFunction(
        "equal", ("Equal",), "1 if a and b are equal, else 0", "a == b ? 1.0f : 0.0f", np.equal
    ),
    BinaryFunction(
        "not_equal", ("Xor",), "1 if a and b differ, else 0", "a != b ? 1.0f : 0.0f", np.not_equal
    ),
    BinaryFunction(
        "keep", (), "b if a is not 0, else 0", "a != 0.0f ? b : 0.0f", lambda a, b: np.where(a != 0, b, 0)
    ),
    BinaryFunction(
        "drop", (), "b if a is 0, else 0", "a != 0.0f ? 0.0f : b", lambda a, b: np.where(a != 0, 0, b)
    ),
)}  # fmt: skip
"""Functions of two values by name."""
