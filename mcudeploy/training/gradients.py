"""Gradients of operators, as ONNX nodes: from that of the output to those of the inputs, and updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, prod

import numpy as np

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.frontend.onnx import training_functions as functions
from mcudeploy.ir.graph import Operator
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.elementwise import Binary
from mcudeploy.ops.pool import AveragePool
from mcudeploy.ops.unary import Unary
from mcudeploy.ops.view import Reshape
from mcudeploy.training.forward import (
    Forward,
    NotTrainable,
    image_shape,
    onnx_weights,
    parameter_name,
    window,
)
from mcudeploy.training.recomputing import KeptTensors
from mcudeploy.training.updates import Updates


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
        low, high = getattr(operator.op, "low", -inf), getattr(operator.op, "high", inf)
        rule(self, operator, self.through_clip(operator, gradient, (low, high)))

    def through_clip(self, operator: Operator, gradient: str, bounds: tuple[float, float]) -> str:
        """The gradient before a clip that ends an operator."""
        low, high = bounds
        if (low, high) == (-inf, inf):
            return gradient
        nodes = self.forward.nodes
        name = f"{operator.name}_clip_gradient"
        if not self._is_read(operator.output):
            mask = nodes.add_mask(self.forward.images[operator.output], low, high)
            return nodes.add(functions.MASKED_GRADIENT, [gradient, mask], nodes.shapes[gradient], name)
        inputs = [gradient, self.tensors.image(operator.output)]
        return nodes.add(functions.CLIP_GRADIENT, inputs, nodes.shapes[gradient], name, low=low, high=high)

    def _is_read(self, tensor: str) -> bool:
        """Whether the backward part reads a tensor for other reasons than a clip. A mask would be a second
        copy of it.
        """
        return any(
            operator.name in self.forward.trained.weights
            or _reads_inputs(operator)
            or (isinstance(operator.op, Reshape) and self._is_read(operator.output))
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
    return isinstance(op, Binary) and op.function == "mul" and op.constant_operand is None


def depending(operators: tuple[Operator, ...], trained: frozenset[str]) -> frozenset[str]:
    """The tensors that depend on what these operators train."""
    tensors: set[str] = set()
    for operator in operators:
        if operator.name in trained or not tensors.isdisjoint(operator.inputs):
            tensors.add(operator.output)
    return frozenset(tensors)


def _conv(to: Backward, operator: Operator, gradient: str) -> None:
    op, forward, nodes = operator.op, to.forward, to.forward.nodes
    assert isinstance(op, Conv2d)
    (source,) = operator.inputs
    if source in to.wanted:
        held = forward.parameters.get(parameter_name(operator, "weights"))
        weights = held or nodes.reals(onnx_weights(operator))
        to.add(source, input_gradient(to, operator, gradient, weights))
    if operator.name in forward.trained.weights:
        to.updates.weights(operator, to.tensors.image(source), gradient)
    to.updates.bias(operator, gradient)


def input_gradient(to: Backward, operator: Operator, gradient: str, weights: str) -> str:
    """The gradient of a convolution's input."""
    op = operator.op
    assert isinstance(op, Conv2d)
    shape = to.forward.graph.tensors[operator.inputs[0]].shape
    if op.groups not in (1, shape[2]):
        raise NotTrainable(f"it has {op.groups} groups: gradients pass 1 group, or depthwise convolutions")
    left = [
        (shape[at] + op.pads[at] + op.pads[at + 2] - op.dilation[at] * (op.kernel_shape[at] - 1) - 1)
        % op.stride[at]
        for at in (0, 1)
    ]
    inputs, name = [gradient, weights], f"{operator.inputs[0]}_gradient"
    return to.forward.nodes.add(
        functions.INPUT_GRADIENT, inputs, image_shape(shape), name, **window(op), output_padding=left
    )


def _average_pool(to: Backward, operator: Operator, gradient: str) -> None:
    op, nodes = operator.op, to.forward.nodes
    assert isinstance(op, AveragePool)
    shape = to.forward.graph.tensors[operator.inputs[0]].shape
    if op.out_size != (1, 1) or op.pads != (0, 0, 0, 0) or op.kernel_shape != shape[:2]:
        raise NotTrainable("it is no mean over the whole image, and has no gradient here")
    share = nodes.reals(np.full((1, 1, *shape[:2]), 1 / prod(shape[:2])))
    name = f"{operator.inputs[0]}_gradient"
    to.add(operator.inputs[0], nodes.add("Mul", [gradient, share], image_shape(shape), name))


def _binary(to: Backward, operator: Operator, gradient: str) -> None:
    op, forward, nodes = operator.op, to.forward, to.forward.nodes
    assert isinstance(op, Binary)
    shape = nodes.shapes[gradient]
    inputs = list(operator.inputs)
    for at, source in enumerate(inputs):
        if source not in to.wanted:
            continue
        if nodes.shapes[forward.images[source]] != shape:
            raise NotTrainable("an operand is repeated along an axis, and such a gradient is not supported")
        place = at if op.constant_operand != 0 else 1
        if op.function == "mul":
            if op.constant_operand is None:
                other = to.tensors.image(inputs[1 - at])
            else:
                other = nodes.reals(operator.constants["constant"].transpose(2, 0, 1)[np.newaxis])
            to.add(source, nodes.add("Mul", [gradient, other], shape, f"{source}_gradient"))
        elif op.function == "sub" and place == 1:
            to.add(source, nodes.add("Neg", [gradient], shape, f"{source}_gradient"))
        else:
            to.add(source, gradient)


def _unary(to: Backward, operator: Operator, gradient: str) -> None:
    op, nodes = operator.op, to.forward.nodes
    assert isinstance(op, Unary)
    (source,) = operator.inputs
    y, shape, name = to.tensors.image(operator.output), nodes.shapes[gradient], f"{source}_gradient"
    if op.function in ("relu", "clip"):
        bounds = (0.0, inf) if op.function == "relu" else (op.alpha, op.beta)
        to.add(source, to.through_clip(operator, gradient, bounds))
        return
    one = nodes.reals(1.0)
    if op.function == "tanh":
        slope = nodes.add("Sub", [one, nodes.add("Mul", [y, y], shape)], shape)
    else:  # sigmoid
        slope = nodes.add("Mul", [y, nodes.add("Sub", [one, y], shape)], shape)
    to.add(source, nodes.add("Mul", [gradient, slope], shape, name))


def _view(to: Backward, operator: Operator, gradient: str) -> None:
    nodes = to.forward.nodes
    (source,) = operator.inputs
    shape = to.forward.graph.tensors[source].shape
    rows = nodes.transposed(gradient, (0, 2, 3, 1))
    to.add(source, nodes.transposed(nodes.reshaped(rows, (1, *shape)), (0, 3, 1, 2)))


_RULES: dict[str, Callable[[Backward, Operator, str], None]] = {
    AveragePool.kind: _average_pool,
    Binary.kind: _binary,
    Conv2d.kind: _conv,
    Reshape.kind: _view,
    Unary.kind: _unary,
}
