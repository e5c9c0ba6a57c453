"""Gradients of operators, as ONNX nodes: from that of the output to those of the inputs, and updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, prod

import numpy as np

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.forward import (
    Forward,
    parameter_name,
    window,
)
from mcudeploy.extensions.training.int8_values import bounds, constant, exceeded
from mcudeploy.extensions.training.move_gradients import concat, pad, part, resize, transpose
from mcudeploy.extensions.training.node_list import OnnxShape
from mcudeploy.extensions.training.onnx_images import NotTrainable, image_shape
from mcudeploy.extensions.training.pool_gradients import average_pool, max_pool, reduction
from mcudeploy.extensions.training.recomputing import KeptTensors
from mcudeploy.extensions.training.unary_gradients import prelu, reads_argument, softmax, unary
from mcudeploy.extensions.training.updates import Updates
from mcudeploy.ir.graph import Operator, Shape
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.image.resize import Resize
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Pad, Slice
from mcudeploy.ops.move.quantize import Dequantize, Quantize
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.reduce.reduce import Reduce
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.unary import Unary


@dataclass(slots=True)
class Backward:
    """The backward part under construction.

    `wanted`: the tensors that depend on a trained parameter; `tensors`: those that the backward part
    reads; `gradients`: by tensor.
    """

    forward: Forward
    updates: Updates
    wanted: frozenset[str]
    tensors: KeptTensors
    gradients: dict[str, str] = field(default_factory=dict)

    def run(self, operators: tuple[Operator, ...]) -> None:
        """Follow the gradients from the last operator to the first. Raises ModelError that lists operators
        without a rule.
        """
        problems = []
        for operator in reversed(operators):
            gradient = self.gradients.get(operator.output)
            if operator.output not in self.wanted or gradient is None:
                continue
            try:
                self._operator(operator, gradient)
            except NotTrainable as verdict:
                label = ", ".join(operator.onnx_nodes) or operator.name
                problems.append(Problem(label, operator.op.kind, str(verdict)))
        if problems:
            raise ModelError.unsupported(tuple(problems))

    def _operator(self, operator: Operator, gradient: str) -> None:
        rule = _RULES.get(operator.op.kind)
        if rule is None:
            raise NotTrainable("it is between the loss and a trained parameter, and has no gradient here")
        tensors, op = self.forward.graph.tensors, operator.op
        clip = bounds(tensors[operator.output], (getattr(op, "low", -inf), getattr(op, "high", inf)))
        if op.kind in _KEEP_RANGE:
            clip = exceeded(clip, (tensors[name] for name in operator.inputs))
        rule(self, operator, self.through_clip(operator, gradient, clip))

    def through_clip(self, operator: Operator, gradient: str, bounds: tuple[float, float]) -> str:
        """The gradient before a clip that ends an operator."""
        low, high = bounds
        if (low, high) == (-inf, inf):
            return gradient
        nodes = self.forward.nodes
        name = f"{operator.name}_clip_gradient"
        if not self.is_read(operator.output):
            mask = nodes.add_mask(self.forward.images[operator.output], low, high)
            return nodes.add(functions.MASKED_GRADIENT, [gradient, mask], nodes.shapes[gradient], name)
        inputs = [gradient, self.tensors.image(operator.output)]
        return nodes.add(functions.CLIP_GRADIENT, inputs, nodes.shapes[gradient], name, low=low, high=high)

    def is_read(self, tensor: str) -> bool:
        """Whether the backward part reads a tensor for other reasons than a clip. A mask would be a second
        copy of it.
        """
        return any(
            operator.name in self.forward.trained.weights
            or _reads_inputs(operator)
            or (isinstance(operator.op, Reshape) and self.is_read(operator.output))
            for operator in self.forward.graph.operators
            if tensor in operator.inputs
        )

    def add(self, tensor: str, gradient: str) -> None:
        """Add a gradient to that of a tensor."""
        earlier = self.gradients.get(tensor)
        if earlier is not None:
            shape = self.forward.nodes.shapes[gradient]
            gradient = self.forward.nodes.add("Add", [earlier, gradient], shape, f"{tensor}_gradient")
        self.gradients[tensor] = gradient


def _reads_inputs(operator: Operator) -> bool:
    """Whether the gradient of an operator without weights reads its inputs."""
    op = operator.op
    if isinstance(op, Unary):
        return reads_argument(op)
    return isinstance(op, Binary) and op.function == "mul" and op.constant_operand is None


def depending(operators: tuple[Operator, ...], trained: frozenset[str]) -> frozenset[str]:
    """The tensors that depend on what these operators train."""
    tensors: set[str] = set()
    for operator in operators:
        if operator.name in trained or not tensors.isdisjoint(operator.inputs):
            tensors.add(operator.output)
    return frozenset(tensors)


def _conv(to: Backward, operator: Operator, gradient: str) -> None:
    forward = to.forward
    (source,) = operator.inputs
    if source in to.wanted:
        to.add(source, _of_input(to, operator, gradient))
    if operator.name in forward.trained.weights:
        x = forward.first_channels(operator, to.tensors.image(source))
        to.updates.weights(operator, x, gradient)
    to.updates.bias(operator, gradient)


def _of_input(to: Backward, operator: Operator, gradient: str) -> str:
    """The gradient of a convolution's input, by weights some or all of which are trained."""
    forward, shape = to.forward, to.forward.graph.tensors[operator.inputs[0]].shape
    trained = forward.parameters.get(parameter_name(operator, "weights"))
    channels = forward.trained.channels.get(operator.name)
    if trained is None or channels is None:
        weights = trained or constant(forward, operator, "weights")
        return input_gradient(to, operator, gradient, weights, shape)
    rows, cols, depth = shape
    others = constant(forward, operator, "weights", channels)
    parts = [
        input_gradient(to, operator, gradient, trained, (rows, cols, channels)),
        input_gradient(to, operator, gradient, others, (rows, cols, depth - channels)),
    ]
    return forward.nodes.add("Concat", parts, image_shape(shape), f"{operator.inputs[0]}_gradient", axis=1)


def input_gradient(to: Backward, operator: Operator, gradient: str, weights: str, shape: Shape) -> str:
    """The gradient of those channels of a convolution's input that these weights read, of this shape."""
    op = operator.op
    assert isinstance(op, Conv2d)
    left = [
        (shape[at] + op.pads[at] + op.pads[at + 2] - op.dilation[at] * (op.kernel_shape[at] - 1) - 1)
        % op.stride[at]
        for at in (0, 1)
    ]
    inputs, name = [gradient, weights], f"{operator.inputs[0]}_gradient"
    return to.forward.nodes.add(
        functions.INPUT_GRADIENT, inputs, image_shape(shape), name, **window(op), output_padding=left
    )


def _binary(to: Backward, operator: Operator, gradient: str) -> None:
    op, forward, nodes = operator.op, to.forward, to.forward.nodes
    assert isinstance(op, Binary)
    if op.function == "prelu":
        prelu(to, operator, gradient)
        return
    shape = nodes.shapes[gradient]
    inputs = list(operator.inputs)
    for at, source in enumerate(inputs):
        if source not in to.wanted:
            continue
        place = at if op.constant_operand != 0 else 1
        own = gradient
        if op.function in ("mul", "div"):
            if op.constant_operand is None:
                other = to.tensors.image(inputs[1 - at])
            else:
                other = nodes.reals(operator.constants["constant"].transpose(2, 0, 1)[np.newaxis])
            if op.function == "div" and (op.constant_operand != 1 or place != 0):
                raise NotTrainable("gradients pass a division by a constant, and no other")
            own = nodes.add("Mul" if op.function == "mul" else "Div", [gradient, other], shape)
        elif op.function == "sub" and place == 1:
            own = nodes.add("Neg", [gradient], shape)
        to.add(source, _summed(to, own, nodes.shapes[forward.images[source]]))


def _summed(to: Backward, gradient: str, shape: OnnxShape) -> str:
    """The sum of a gradient over the axes along which its operand, of this shape, is repeated."""
    nodes = to.forward.nodes
    repeated = [axis for axis, size in enumerate(nodes.shapes[gradient]) if size != shape[axis]]
    if not repeated:
        return gradient
    if repeated != [2, 3]:
        axes = nodes.constant(np.array(repeated, np.int64), "axes")
        return nodes.add("ReduceSum", [gradient, axes], shape, keepdims=1)
    mean = nodes.add("GlobalAveragePool", [gradient], shape)  # which reads blocks of rows, unlike ReduceSum
    return nodes.add("Mul", [mean, nodes.reals(float(prod(nodes.shapes[gradient][2:])))], shape)


def _conversion(to: Backward, operator: Operator, gradient: str) -> None:
    to.add(operator.inputs[0], gradient)


def _view(to: Backward, operator: Operator, gradient: str) -> None:
    nodes = to.forward.nodes
    (source,) = operator.inputs
    shape = to.forward.graph.tensors[source].shape
    rows = nodes.transposed(gradient, (0, 2, 3, 1))
    to.add(source, nodes.transposed(nodes.reshaped(rows, (1, *shape)), (0, 3, 1, 2)))


_RULES: dict[str, Callable[[Backward, Operator, str], None]] = {
    AveragePool.kind: average_pool,
    Binary.kind: _binary,
    Concat.kind: concat,
    Conv2d.kind: _conv,
    Dequantize.kind: _conversion,
    MaxPool.kind: max_pool,
    Pad.kind: pad,
    Quantize.kind: _conversion,
    Reduce.kind: reduction,
    Reshape.kind: _view,
    Resize.kind: resize,
    Slice.kind: part,
    Softmax.kind: softmax,
    Transpose.kind: transpose,
    Unary.kind: unary,
}
_KEEP_RANGE = frozenset(
    it.kind for it in (AveragePool, Concat, Dequantize, MaxPool, Reshape, Resize, Slice, Transpose)
)
"""Operators whose results lie between values of their inputs: they saturate only by a smaller range."""
