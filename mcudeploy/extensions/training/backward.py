"""The backward part of a training step: from the gradient of the output to those of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from mcudeploy.common.errors import ModelError
from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.forward import Forward, problem_of
from mcudeploy.extensions.training.int8_values import reachable_bounds, saturation_bounds
from mcudeploy.extensions.training.node_list import NotTrainable, image_shape
from mcudeploy.extensions.training.recomputing import KeptTensors
from mcudeploy.extensions.training.unary_slopes import reads_argument
from mcudeploy.extensions.training.updates import Updates
from mcudeploy.ir.graph import Operator
from mcudeploy.ops.image.resize import Resize
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.move.quantize import Dequantize
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.unary import Unary


@dataclass(slots=True)
class Backward:
    """The backward part under construction.

    `rules`: the gradient rule of each kind of operator; `wanted`: the tensors that depend on a trained
    parameter; `tensors`: results of the forward part, kept or recomputed; `gradients`: the sum of gradients
    so far, by tensor.
    """

    forward: Forward
    rules: Mapping[str, GradientRule]
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
                problems.append(problem_of(operator, str(verdict)))
        if problems:
            raise ModelError.unsupported(tuple(problems))

    def _operator(self, operator: Operator, gradient: str) -> None:
        rule = self.rules.get(operator.op.kind)
        if rule is None:
            raise NotTrainable("it is between the loss and a trained parameter, and has no gradient here")
        tensors, op = self.forward.graph.tensors, operator.op
        clip = (getattr(op, "low", -inf), getattr(op, "high", inf))
        bounds = saturation_bounds(tensors[operator.output], clip)
        if op.kind in _KEEP_RANGE:
            bounds = reachable_bounds(bounds, (tensors[name] for name in operator.inputs))
        rule(self, operator, self.through_clip(operator, gradient, bounds))

    def through_clip(self, operator: Operator, gradient: str, bounds: tuple[float, float]) -> str:
        """The gradient of the values before the clip to `bounds` at the end of an operator."""
        low, high = bounds
        if bounds == (-inf, inf):
            return gradient
        nodes = self.forward.nodes
        name = f"{operator.name}_clip_gradient"
        if not self.is_read(operator.output):
            mask = nodes.add_mask(self.forward.images[operator.output], low, high)
            return nodes.add(functions.MASKED_GRADIENT, [gradient, mask], nodes.shapes[gradient], name)
        inputs = [gradient, self.tensors.image(operator.output)]
        return nodes.add(functions.CLIP_GRADIENT, inputs, nodes.shapes[gradient], name, low=low, high=high)

    def is_read(self, tensor: str) -> bool:
        """Whether another gradient than that of a clip reads a tensor. Then a mask of it saves no memory."""
        return any(
            operator.name in self.forward.trained.weights
            or _reads_inputs(operator)
            or (isinstance(operator.op, Reshape) and self.is_read(operator.output))
            for operator in self.forward.graph.operators
            if tensor in operator.inputs
        )

    def node(self, source: str, op: str, inputs: Sequence[str], **attributes: Any) -> None:
        """Add a node, and add its result to the gradient of the tensor `source`."""
        shape = image_shape(self.forward.graph.tensors[source].shape)
        self.add(source, self.forward.nodes.add(op, inputs, shape, f"{source}_gradient", **attributes))

    def add(self, tensor: str, gradient: str) -> None:
        """Add `gradient`, which one reader of a tensor passes, to the gradient of the tensor."""
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
    """The tensors that depend on a parameter of the operators named in `trained`."""
    tensors: set[str] = set()
    for operator in operators:
        if operator.name in trained or not tensors.isdisjoint(operator.inputs):
            tensors.add(operator.output)
    return frozenset(tensors)


GradientRule = Callable[[Backward, Operator, str], None]
"""A function that adds the gradients of an operator's inputs; the last argument: that of its output."""
_KEEP_RANGE = frozenset(
    it.kind for it in (AveragePool, Concat, Dequantize, MaxPool, Reshape, Resize, Slice, Transpose)
)
"""Operators whose results lie in the range of their inputs: they saturate only if the result's range is
smaller.
"""
