"""Operators of a graph as ONNX nodes over images [1, C, H, W], whose parameters are constants or states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.int8_values import (
    constant,
    real_constant,
    real_input,
    stored,
    stored_output,
)
from mcudeploy.extensions.training.node_list import NodeList, NotTrainable, image_shape
from mcudeploy.extensions.training.recipe import Trained
from mcudeploy.ir.graph import Graph, GraphIO, Operator
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.host_io import stored_axes
from mcudeploy.ops.scalar.elementwise import Lut

Array = NDArray[Any]


@dataclass(slots=True)
class Forward:
    """The forward part under construction. `rules`: the rule of each kind of operator; `images`: the image of
    each tensor of the graph; `parameters`: the value of each trained parameter that operators read.
    """

    graph: Graph
    rules: Mapping[str, ForwardRule]
    trained: Trained
    initial: Mapping[str, Array]
    """Values of parameters that replace those of the graph, by name."""
    nodes: NodeList = field(default_factory=NodeList)
    images: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)

    def run(self, operators: tuple[Operator, ...]) -> None:
        """Add all inputs, and these operators. Raises as `compute`."""
        self.nodes.reserved |= {io.name for io in (*self.graph.inputs, *self.graph.outputs)}
        for io in self.graph.inputs:
            name = self.nodes.input(self.nodes.claimed(io.name), io.shape)
            self.images[io.tensor] = self._input_image(name, io)
        self.compute(operators)

    def compute(self, operators: Sequence[Operator]) -> None:
        """Add these operators. Raises ModelError that lists unsupported operators."""
        problems = []
        for operator in operators:
            try:
                value = self._operator(operator)
                self.images[operator.output] = stored(self.nodes, self.graph.tensors[operator.output], value)
            except NotTrainable as verdict:
                problems.append(problem_of(operator, str(verdict)))
                shape = image_shape(self.graph.tensors[operator.output].shape)
                self.images[operator.output] = self.nodes.unused("missing")
                self.nodes.shapes[self.images[operator.output]] = shape
        if problems:
            raise ModelError.unsupported(tuple(problems))

    def to_image(self, value: str, io: GraphIO) -> str:
        """The image of an input or output of the model, from its value."""
        shape = self.graph.tensors[io.tensor].shape
        return self.nodes.image(self.nodes.transposed(value, axes_of(io)), shape)

    def _input_image(self, name: str, io: GraphIO) -> str:
        """The image of an input of the model; int8 and uint8 values become real."""
        tensor = self.graph.tensors[io.tensor]
        if io.dtype == "float32":
            return stored(self.nodes, tensor, self.to_image(name, io))
        if tensor.quantization is None or io.dtype not in ("int8", "uint8"):
            raise ModelError(f"the input {io.name!r} has values of type {io.dtype}, which have no scale")
        return self.to_image(real_input(self.nodes, name, tensor.quantization, io.dtype), io)

    def from_image(self, image: str, io: GraphIO, *, integers: bool = False) -> str:
        """Add an output of the model under its name, from its image.

        `integers`: an int8 or uint8 output has its stored values, not the real ones.
        """
        axes = axes_of(io)
        moved = self.nodes.reshaped(self.nodes.rows(image), tuple(io.shape[axis] for axis in axes))
        name = self.nodes.claimed(io.name)
        perm = tuple(int(at) for at in np.argsort(axes))
        quantization = self.graph.tensors[io.tensor].quantization
        if integers and io.dtype != "float32" and quantization is not None:
            return stored_output(self.nodes, self.nodes.transposed(moved, perm), io, quantization)
        return self.nodes.transposed(moved, perm, name)

    def node(
        self, operator: Operator, op: str, inputs: Sequence[str] | None = None, **attributes: Any
    ) -> str:
        """Add a node that computes an operator, and return its result. It reads `inputs`, or if None the
        images of the operator's inputs.
        """
        if inputs is None:
            inputs = [self.images[name] for name in operator.inputs]
        shape = image_shape(self.graph.tensors[operator.output].shape)
        return self.nodes.add(op, inputs, shape, operator.name, **attributes)

    def _operator(self, operator: Operator) -> str:
        rule = self.rules.get(operator.op.kind)
        if rule is None:
            reason = "a training step does not support it"
            if isinstance(operator.op, Lut):
                reason = "its int8 values are looked up in a table, without a gradient: train the float model"
            raise NotTrainable(reason)
        return rule(self, operator)

    def parameter(self, operator: Operator, name: str, perm: tuple[int, ...]) -> str:
        """The "weights" or "bias" of a convolution: a state if it is trained, else a constant.

        `perm`: the order of the axes in which the state is stored.
        """
        full_name = parameter_name(operator, name)
        is_trained = operator.name in (self.trained.weights if name == "weights" else self.trained.biases)
        if not is_trained and full_name not in self.initial:
            return constant(self.nodes, self.graph, operator, name)
        value, replacement = real_constant(self.graph, operator, name), self.initial.get(full_name)
        if replacement is not None and name == "weights":
            value[:, : replacement.shape[1]] = replacement
        elif replacement is not None:
            value = np.asarray(replacement, np.float32)
        elif name == "weights":
            value = value[:, : self.trained.channels.get(operator.name)]
        if not is_trained:
            return self.nodes.reals(value, full_name)
        if full_name not in self.parameters:
            initial = self.nodes.reals(value, f"{full_name}_initial")
            self.parameters[full_name] = self.state(full_name, initial, perm)
        return self.parameters[full_name]

    def state(self, name: str, initial: str, perm: tuple[int, ...]) -> str:
        """Add a state, and return its value in this step. `initial`: the constant before the first step;
        `perm`: the stored order of its axes. Raises ModelError if the model uses its name.
        """
        shape = self.nodes.constants[initial].shape
        if self.nodes.input(name, shape) != name:
            raise ModelError(
                f"the model has an input or output {name!r}, the name of a parameter of the step: rename it"
            )
        return self.nodes.add(functions.PARAMETER, [name, initial], shape, f"{name}_now", perm=list(perm))

    def first_channels(self, operator: Operator, image: str) -> str:
        """The channels of `image`, a convolution's input, whose weights are trained."""
        rows, cols, _ = self.graph.tensors[operator.inputs[0]].shape
        channels = self.trained.channels.get(operator.name)
        return image if channels is None else self.nodes.part(image, (0, 0, 0), (rows, cols, channels))

    def clipped(self, value: str, low: float, high: float) -> str:
        """The value clipped to [low, high]; infinite bounds clip nothing."""
        if low == -inf and high == inf:
            return value
        shape = self.nodes.shapes[value]
        if (low, high) == (0.0, inf):
            return self.nodes.add("Relu", [value], shape)
        bounds = ["" if abs(bound) == inf else self.nodes.reals(bound, "bound") for bound in (low, high)]
        return self.nodes.add("Clip", [value, *bounds], shape)


def problem_of(operator: Operator, reason: str) -> Problem:
    """The problem of an operator, which is named by its nodes of the model's file."""
    return Problem(", ".join(operator.onnx_nodes) or operator.name, operator.op.kind, reason)


def axes_of(io: GraphIO) -> tuple[int, ...]:
    """The axes of an input or output in stored order. Raises ModelError unless that order permutes axes."""
    axes = stored_axes(io.shape, io.order)
    if axes is None:
        raise ModelError(f"{io.name!r} is stored in an order that no training step supports")
    return axes


def convolutions(graph: Graph) -> list[Operator]:
    """The operators with weights, in order."""
    return [operator for operator in graph.operators if isinstance(operator.op, Conv2d)]


def parameter_name(operator: Operator, name: str) -> str:
    """The name of an operator's "weights" or "bias" as an input of the training step."""
    return f"{operator.name}_{name}"


def window(op: Conv2d) -> dict[str, Any]:
    """The attributes of the convolution's window."""
    return {
        "strides": list(op.stride),
        "dilations": list(op.dilation),
        "pads": list(op.pads),
        "group": op.groups,
    }


ForwardRule = Callable[[Forward, Operator], str]
"""A function that adds the nodes of an operator, and returns the image of the operator's output."""
