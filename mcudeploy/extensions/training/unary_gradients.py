"""Gradients of functions of one value, PRelu and Softmax, as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.training import gelu_nodes
from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.onnx_images import ONNX_AXES, NotTrainable
from mcudeploy.extensions.training.training_unary import Slope
from mcudeploy.ir.graph import Operator
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.unary import Unary

if TYPE_CHECKING:
    from mcudeploy.extensions.training.gradients import Backward


def unary(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient times the slope, which depends on the result, or else on the argument."""
    op, nodes = operator.op, to.forward.nodes
    assert isinstance(op, Unary)
    (source,) = operator.inputs
    shape, name = nodes.shapes[gradient], f"{source}_gradient"
    bounds = _bounds(op)
    if bounds is not None:
        to.add(source, to.through_clip(operator, gradient, bounds))
    elif op.function == "neg":
        to.add(source, nodes.add("Neg", [gradient], shape, name))
    elif op.function == "leaky_relu" and op.alpha > 0 and not to.is_read(operator.output):
        _sloped(to, source, gradient, _Bits(to.forward.images[operator.output], np.array([op.alpha])))
    elif op.function in _SLOPES:
        slope = _SLOPES[op.function](op)
        inputs = [gradient, to.tensors.image(operator.output if slope.of_result else source)]
        to.add(source, nodes.add(functions.PIECEWISE_GRADIENT, inputs, shape, name, **slope.numbers))
    elif op.function in _SMOOTH:
        attributes = {"alpha": op.alpha} if op.function == "swish" else {}
        inputs = [gradient, to.tensors.image(source)]
        to.add(source, nodes.add(_SMOOTH[op.function], inputs, shape, name, **attributes))
    elif op.function == "gelu_tanh":
        slopes = gelu_nodes.slope(nodes, to.tensors.image(source))
        to.add(source, nodes.add("Mul", [gradient, slopes], shape, name))
    else:
        raise NotTrainable(f"{op.function} is between the loss and a trained parameter, and has no gradient")


def softmax(to: Backward, operator: Operator, gradient: str) -> None:
    """The result times the gradient without its mean, weighted by the result."""
    op, nodes = operator.op, to.forward.nodes
    assert isinstance(op, Softmax)
    (source,) = operator.inputs
    y, shape, axis = to.tensors.image(operator.output), nodes.shapes[gradient], ONNX_AXES[op.axis]
    products = nodes.add("Mul", [gradient, y], shape)
    axes = nodes.constant(np.array([axis], np.int64), "axes")
    mean = nodes.add("ReduceSum", [products, axes], (*shape[:axis], 1, *shape[axis + 1 :]), keepdims=1)
    rest = nodes.add("Sub", [gradient, mean], shape)
    to.add(source, nodes.add("Mul", [rest, y], shape, f"{source}_gradient"))


def prelu(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient where the argument is above 0, else times the slope; bits of the argument are kept."""
    op = operator.op
    assert isinstance(op, Binary)
    source, *others = operator.inputs
    x = to.forward.images[source]
    slopes = operator.constants.get("constant")
    if others or op.constant_operand != 1 or slopes is None or slopes.shape[:2] != (1, 1):
        raise NotTrainable("gradients pass a prelu with constant slopes of the channels, and no other")
    _sloped(to, source, gradient, _Bits(x, slopes.reshape(-1)))


@dataclass(frozen=True, slots=True)
class _Bits:
    """A value, of which the bits that say where it is above 0 are kept, and the slopes where it is not."""

    value: str
    slopes: NDArray[Any]


def _sloped(to: Backward, source: str, gradient: str, bits: _Bits) -> None:
    nodes, shape = to.forward.nodes, to.forward.nodes.shapes[gradient]
    slopes = nodes.reals(np.broadcast_to(bits.slopes, shape[1:2]).reshape(1, -1, 1, 1))
    inputs = [gradient, nodes.add_mask(bits.value, 0.0, inf), slopes]
    to.add(source, nodes.add(functions.SLOPED_GRADIENT, inputs, shape, f"{source}_gradient"))


def reads_argument(op: Unary) -> bool:
    """Whether the gradient reads the argument of the function."""
    if op.function in _SLOPES and _bounds(op) is None:
        return not _SLOPES[op.function](op).of_result
    return op.function in _SMOOTH or op.function == "gelu_tanh"


def _bounds(op: Unary) -> tuple[float, float] | None:
    """The bounds of a function that is a clip."""
    if op.function == "clip":
        return op.alpha, op.beta
    if op.function == "relu" or (op.function in ("leaky_relu", "elu") and op.alpha == 0):
        return 0.0, inf
    return None


def _bent(op: Unary, lower: tuple[float, float], upper: float = 1.0) -> Slope:
    """The slope of a function that rises on both sides of 0, by its result."""
    if op.alpha < 0:
        raise NotTrainable(
            f"{op.function} with an alpha of {op.alpha:g} does not rise: it has no gradient here"
        )
    return Slope(0.0, 0.0, lower, upper=upper)


_SLOPES: dict[str, Callable[[Unary], Slope]] = {
    "abs": lambda op: Slope(0.0, 0.0, (-1.0, 0.0), upper=1.0, of_result=False),
    "celu": lambda op: _bent(op, (1.0, 1.0 / op.alpha)),
    "elu": lambda op: _bent(op, (op.alpha, 1.0)),
    "exp": lambda op: Slope(middle=(0.0, 1.0, 0.0)),
    "hard_sigmoid": lambda op: Slope(0.0, 1.0, middle=(op.alpha, 0.0, 0.0)),
    "hard_swish": lambda op: Slope(
        -op.beta / op.alpha,
        (1.0 - op.beta) / op.alpha,
        middle=(op.beta, 2.0 * op.alpha, 0.0),
        upper=1.0,
        of_result=False,
    ),
    "leaky_relu": lambda op: _bent(op, (op.alpha, 0.0)),
    "selu": lambda op: _bent(op, (op.alpha * op.beta, 1.0), op.beta),
    "sigmoid": lambda op: Slope(middle=(0.0, 1.0, -1.0)),
    "square": lambda op: Slope(middle=(0.0, 2.0, 0.0), of_result=False),
    "tanh": lambda op: Slope(middle=(1.0, 0.0, -1.0)),
}
_SMOOTH = {
    "erf": functions.ERF_GRADIENT,
    "gelu": functions.GELU_GRADIENT,
    "softplus": functions.SOFTPLUS_GRADIENT,
    "swish": functions.SWISH_GRADIENT,
}
