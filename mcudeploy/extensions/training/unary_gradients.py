"""Rules that write the gradients of scalar functions, PRelu and Softmax as ONNX nodes."""

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


def unary(backward: Backward, operator: Operator, gradient: str) -> None:
    """The gradient times the slope, which depends on the result, or else on the argument."""
    op, nodes = operator.op, backward.forward.nodes
    assert isinstance(op, Unary)
    (source,) = operator.inputs
    bounds = clip_bounds(op)
    if bounds is not None:
        backward.add(source, backward.through_clip(operator, gradient, bounds))
    elif op.function == "neg":
        backward.node(source, "Neg", [gradient])
    elif op.function == "leaky_relu" and op.alpha > 0 and not backward.is_read(operator.output):
        _sloped(backward, source, gradient, backward.forward.images[operator.output], np.array([op.alpha]))
    elif op.function in SLOPES:
        slope = SLOPES[op.function](op)
        inputs = [gradient, backward.tensors.image(operator.output if slope.of_result else source)]
        backward.node(source, functions.PIECEWISE_GRADIENT, inputs, **slope.numbers)
    elif op.function in SMOOTH:
        attributes = {"alpha": op.alpha} if op.function == "swish" else {}
        backward.node(source, SMOOTH[op.function], [gradient, backward.tensors.image(source)], **attributes)
    elif op.function == "gelu_tanh":
        backward.node(source, "Mul", [gradient, gelu_nodes.slope(nodes, backward.tensors.image(source))])
    else:
        raise NotTrainable(f"{op.function} is between the loss and a trained parameter, and has no gradient")


def softmax(backward: Backward, operator: Operator, gradient: str) -> None:
    """The gradient of the input is y * (gradient - sum), with the sum of gradient * y along the axis."""
    op, nodes = operator.op, backward.forward.nodes
    assert isinstance(op, Softmax)
    (source,) = operator.inputs
    y, shape, axis = backward.tensors.image(operator.output), nodes.shapes[gradient], ONNX_AXES[op.axis]
    products = nodes.add("Mul", [gradient, y], shape)
    axes = nodes.constant(np.array([axis], np.int64), "axes")
    total = nodes.add("ReduceSum", [products, axes], (*shape[:axis], 1, *shape[axis + 1 :]), keepdims=1)
    rest = nodes.add("Sub", [gradient, total], shape)
    backward.node(source, "Mul", [rest, y])


def prelu(backward: Backward, operator: Operator, gradient: str) -> None:
    """The gradient where the argument is above 0, else times the slope."""
    op = operator.op
    assert isinstance(op, Binary)
    source, *others = operator.inputs
    slopes = operator.constants.get("constant")
    if others or op.constant_operand != 1 or slopes is None or slopes.shape[:2] != (1, 1):
        raise NotTrainable("only a prelu with a constant slope for each channel has a gradient here")
    _sloped(backward, source, gradient, backward.forward.images[source], slopes.reshape(-1))


def _sloped(backward: Backward, source: str, gradient: str, value: str, slopes: NDArray[Any]) -> None:
    """The gradient where `value` is above 0, else times the slopes; a mask keeps one bit of each value."""
    nodes = backward.forward.nodes
    column = nodes.reals(np.broadcast_to(slopes, nodes.shapes[gradient][1:2]).reshape(1, -1, 1, 1))
    backward.node(source, functions.SLOPED_GRADIENT, [gradient, nodes.add_mask(value, 0.0, inf), column])
