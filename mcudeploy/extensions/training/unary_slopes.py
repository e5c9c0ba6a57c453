"""The slopes of scalar functions, and whether a gradient reads the function's argument or its result."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.node_list import NotTrainable
from mcudeploy.extensions.training.training_unary import Slope
from mcudeploy.ops.scalar.unary import Unary


def reads_argument(op: Unary) -> bool:
    """Whether the gradient reads the argument of the function."""
    if op.function in SLOPES and clip_bounds(op) is None:
        return not SLOPES[op.function](op).of_result
    return op.function in SMOOTH or op.function == "gelu_tanh"


def clip_bounds(op: Unary) -> tuple[float, float] | None:
    """The bounds of a function that only clips its argument; None for others."""
    if op.function == "clip":
        return op.alpha, op.beta
    if op.function == "relu" or (op.function in ("leaky_relu", "elu") and op.alpha == 0):
        return 0.0, inf
    return None


def _rising(op: Unary, lower: tuple[float, float], upper: float = 1.0) -> Slope:
    """The slope of a function that is 0 at 0 and rises on both sides; its result decides the side.

    `lower`: the slope below 0, as in `Slope`; `upper`: the slope above.
    """
    if op.alpha < 0:
        raise NotTrainable(
            f"{op.function} with an alpha of {op.alpha:g} does not rise everywhere: it has no gradient here"
        )
    return Slope(low=0.0, high=0.0, lower=lower, upper=upper)


SLOPES: dict[str, Callable[[Unary], Slope]] = {
    "abs": lambda op: Slope(low=0.0, high=0.0, lower=(-1.0, 0.0), upper=1.0, of_result=False),
    "celu": lambda op: _rising(op, (1.0, 1.0 / op.alpha)),
    "elu": lambda op: _rising(op, (op.alpha, 1.0)),
    "exp": lambda op: Slope(middle=(0.0, 1.0, 0.0)),
    "hard_sigmoid": lambda op: Slope(low=0.0, high=1.0, middle=(op.alpha, 0.0, 0.0)),
    "hard_swish": lambda op: Slope(
        low=-op.beta / op.alpha,
        high=(1.0 - op.beta) / op.alpha,
        middle=(op.beta, 2.0 * op.alpha, 0.0),
        upper=1.0,
        of_result=False,
    ),
    "leaky_relu": lambda op: _rising(op, (op.alpha, 0.0)),
    "selu": lambda op: _rising(op, (op.alpha * op.beta, 1.0), op.beta),
    "sigmoid": lambda op: Slope(middle=(0.0, 1.0, -1.0)),
    "square": lambda op: Slope(middle=(0.0, 2.0, 0.0), of_result=False),
    "tanh": lambda op: Slope(middle=(1.0, 0.0, -1.0)),
}
"""The slope of each function for which it is a piecewise polynomial of the argument or the result."""
SMOOTH = {
    "erf": functions.ERF_GRADIENT,
    "gelu": functions.GELU_GRADIENT,
    "softplus": functions.SOFTPLUS_GRADIENT,
    "swish": functions.SWISH_GRADIENT,
}
"""For other functions, the operator of the training domain that computes the gradient from the argument."""
