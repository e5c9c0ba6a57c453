"""Gradients of functions of one value, PRelu and Softmax, as ONNX nodes."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.training import gelu_nodes
from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.backward import Backward
from mcudeploy.extensions.training.node_list import ONNX_AXES, NotTrainable
from mcudeploy.extensions.training.unary_slopes import SLOPES, SMOOTH, clip_bounds
from mcudeploy.ir.graph import Operator
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.unary import Unary


def unary(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient times the slope, which depends on the result, or else on the argument."""
    op, nodes = operator.op, to.forward.nodes
    assert isinstance(op, Unary)
    (source,) = operator.inputs
    bounds = clip_bounds(op)
    if bounds is not None:
        to.add(source, to.through_clip(operator, gradient, bounds))
    elif op.function == "neg":
        to.node(source, "Neg", [gradient])
    elif op.function == "leaky_relu" and op.alpha > 0 and not to.is_read(operator.output):
        _sloped(to, source, gradient, to.forward.images[operator.output], np.array([op.alpha]))
    elif op.function in SLOPES:
        slope = SLOPES[op.function](op)
        inputs = [gradient, to.tensors.image(operator.output if slope.of_result else source)]
        to.node(source, functions.PIECEWISE_GRADIENT, inputs, **slope.numbers)
    elif op.function in SMOOTH:
        attributes = {"alpha": op.alpha} if op.function == "swish" else {}
        to.node(source, SMOOTH[op.function], [gradient, to.tensors.image(source)], **attributes)
    elif op.function == "gelu_tanh":
        to.node(source, "Mul", [gradient, gelu_nodes.slope(nodes, to.tensors.image(source))])
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
    to.node(source, "Mul", [rest, y])


def prelu(to: Backward, operator: Operator, gradient: str) -> None:
    """The gradient where the argument is above 0, else times the slope; bits of the argument are kept."""
    op = operator.op
    assert isinstance(op, Binary)
    source, *others = operator.inputs
    slopes = operator.constants.get("constant")
    if others or op.constant_operand != 1 or slopes is None or slopes.shape[:2] != (1, 1):
        raise NotTrainable("gradients pass a prelu with constant slopes of the channels, and no other")
    _sloped(to, source, gradient, to.forward.images[source], slopes.reshape(-1))


def _sloped(to: Backward, source: str, gradient: str, value: str, slopes: NDArray[Any]) -> None:
    """The gradient where `value` is above 0, by bits that are kept, else times the slopes."""
    nodes = to.forward.nodes
    column = nodes.reals(np.broadcast_to(slopes, nodes.shapes[gradient][1:2]).reshape(1, -1, 1, 1))
    to.node(source, functions.SLOPED_GRADIENT, [gradient, nodes.add_mask(value, 0.0, inf), column])
