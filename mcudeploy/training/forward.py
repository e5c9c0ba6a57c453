"""Operators of a graph as ONNX nodes over images [1, C, H, W], whose parameters are constants or states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.frontend.onnx import training_functions as functions
from mcudeploy.ir.graph import Graph, GraphIO, Operator, Shape
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.elementwise import Binary
from mcudeploy.ops.host_io import stored_axes
from mcudeploy.ops.pool import AveragePool, MaxPool
from mcudeploy.ops.softmax import Softmax
from mcudeploy.ops.training import parameter_axes
from mcudeploy.ops.unary import Unary
from mcudeploy.ops.view import Reshape
from mcudeploy.training.node_list import NodeList, OnnxShape
from mcudeploy.training.recipe import Trained

Array = NDArray[Any]

_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul"}
_UNARY = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}
_WEIGHTS_RANK = 4


class NotTrainable(Exception):  # noqa: N818 -- not an error but a verdict about one operator
    """An operator that no training step supports; the message is the reason shown to the user."""


@dataclass(slots=True)
class Forward:
    """The forward part under construction. `images`: by tensor of the graph; `parameters`: by trained
    parameter, the value that operators read.
    """

    graph: Graph
    trained: Trained
    initial: Mapping[str, Array]
    """Values of parameters that replace those of the graph, by name."""
    nodes: NodeList = field(default_factory=NodeList)
    images: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)

    def run(self, operators: tuple[Operator, ...]) -> None:
        """Add all inputs, and these operators as `compute` does."""
        self.nodes.reserved |= {border.name for border in (*self.graph.inputs, *self.graph.outputs)}
        for border in self.graph.inputs:
            name = self.nodes.input(self.nodes.claimed(border.name), border.shape)
            self.images[border.tensor] = self.to_image(name, border)
        self.compute(operators)

    def compute(self, operators: Sequence[Operator]) -> None:
        """Add these operators. Raises ModelError that lists unsupported operators."""
        problems = []
        for operator in operators:
            try:
                self.images[operator.output] = self._operator(operator)
            except NotTrainable as verdict:
                label = ", ".join(operator.onnx_nodes) or operator.name
                problems.append(Problem(label, operator.op.kind, str(verdict)))
                shape = image_shape(self.graph.tensors[operator.output].shape)
                self.images[operator.output] = self.nodes.unused("missing")
                self.nodes.shapes[self.images[operator.output]] = shape
        if problems:
            raise ModelError.unsupported(tuple(problems))

    def to_image(self, value: str, border: GraphIO) -> str:
        """The image of an input or output of the model, from its value."""
        shape = self.graph.tensors[border.tensor].shape
        moved = self.nodes.transposed(value, axes_of(border))
        rows = self.nodes.reshaped(moved, (1, *shape))
        return self.nodes.transposed(rows, (0, 3, 1, 2))

    def from_image(self, image: str, border: GraphIO) -> str:
        """The value of an output of the model, under its name, from its image."""
        axes = axes_of(border)
        rows = self.nodes.transposed(image, (0, 2, 3, 1))
        moved = self.nodes.reshaped(rows, tuple(border.shape[axis] for axis in axes))
        name = self.nodes.claimed(border.name)
        return self.nodes.transposed(moved, tuple(int(at) for at in np.argsort(axes)), name)

    def _operator(self, operator: Operator) -> str:
        rule = _RULES.get(operator.op.kind)
        if rule is None:
            raise NotTrainable("a training step does not support it")
        return rule(self, operator)

    def parameter(self, operator: Operator, name: str, value: Array, perm: tuple[int, ...]) -> str:
        """A parameter of an operator: a state if it is trained, else a constant."""
        full = parameter_name(operator, name)
        value = np.asarray(self.initial.get(full, value), np.float32)
        kinds = {"weights": self.trained.weights, "bias": self.trained.biases}
        if operator.name not in kinds[name]:
            return self.nodes.reals(value, full)
        if full not in self.parameters:
            initial = self.nodes.reals(value, f"{full}_initial")
            self.parameters[full] = self.state(full, initial, perm)
        return self.parameters[full]

    def state(self, name: str, initial: str, perm: tuple[int, ...]) -> str:
        """Add an input that the next step continues from, stored in the order `perm` of its axes; `initial`:
        a constant. Returns its value in this step. Raises ModelError if the model uses its name.
        """
        shape = self.nodes.constants[initial].shape
        if self.nodes.input(name, shape) != name:
            raise ModelError(
                f"an input or output is called {name!r}, as a parameter of the step is: rename it"
            )
        return self.nodes.add(functions.PARAMETER, [name, initial], shape, f"{name}_now", perm=list(perm))

    def clipped(self, value: str, low: float, high: float) -> str:
        """The value clipped to [low, high], if these are bounds."""
        if low == -inf and high == inf:
            return value
        shape = self.nodes.shapes[value]
        if (low, high) == (0.0, inf):
            return self.nodes.add("Relu", [value], shape)
        bounds = ["" if abs(bound) == inf else self.nodes.reals(bound, "bound") for bound in (low, high)]
        return self.nodes.add("Clip", [value, *bounds], shape)


def image_shape(shape: Shape) -> OnnxShape:
    """(rows, cols, channels) -> [1, channels, rows, cols]."""
    rows, cols, channels = shape
    return 1, channels, rows, cols


def axes_of(border: GraphIO) -> tuple[int, ...]:
    """The axes of an input or output in stored order. Raises ModelError if it is no order of axes."""
    axes = stored_axes(border.shape, border.order)
    if axes is None:
        raise ModelError(f"{border.name!r} is stored in an order that no training step supports")
    return axes


def convolutions(graph: Graph) -> list[Operator]:
    """The operators with weights, in order."""
    return [operator for operator in graph.operators if isinstance(operator.op, Conv2d)]


def parameter_name(operator: Operator, name: str) -> str:
    """The name of an operator's "weights" or "bias" as an input of the training step."""
    return f"{operator.name}_{name}"


def onnx_weights(operator: Operator) -> Array:
    """The weights of a convolution as ONNX orders them, [K, C/groups, kh, kw]."""
    weights = operator.constants["weights"]
    if weights.dtype != np.float32:
        raise NotTrainable("its weights are int8: train the float model, then quantise it")
    return np.ascontiguousarray(weights.transpose(0, 3, 1, 2))


def window(op: Conv2d) -> dict[str, Any]:
    """The attributes of the convolution's window."""
    return {
        "strides": list(op.stride),
        "dilations": list(op.dilation),
        "pads": list(op.pads),
        "group": op.groups,
    }


def _conv(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, Conv2d)
    x = to.images[operator.inputs[0]]
    trained = operator.name in to.trained.weights
    if trained and op.groups not in (1, to.nodes.shapes[x][1]):
        raise NotTrainable(f"it has {op.groups} groups: weights of 1 group, or depthwise ones, are trained")
    weights = to.parameter(operator, "weights", onnx_weights(operator), parameter_axes(op))
    bias = to.parameter(operator, "bias", operator.constants["bias"], (0,))
    if trained:
        bounds = {"low": op.low, "high": op.high}
        inputs = [x, weights, bias]
        return to.nodes.add(functions.TRAINED_CONV, inputs, shape, operator.name, **window(op), **bounds)
    if operator.name not in to.trained.biases:
        sums = to.nodes.add("Conv", [x, weights, bias], shape, operator.name, **window(op))
        return to.clipped(sums, op.low, op.high)
    products = to.nodes.add("Conv", [x, weights], shape, operator.name, **window(op))
    column = to.nodes.reshaped(bias, (1, op.out_channels, 1, 1))
    return to.clipped(to.nodes.add("Add", [products, column], shape), op.low, op.high)


def _pool(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, AveragePool | MaxPool)
    counted = {"count_include_pad": int(op.count_include_pad)} if isinstance(op, AveragePool) else {}
    return to.nodes.add(
        type(op).__name__,
        [to.images[operator.inputs[0]]],
        shape,
        operator.name,
        kernel_shape=list(op.kernel_shape),
        strides=list(op.stride),
        pads=_pads(to, operator, op),
        **counted,
    )


def _pads(to: Forward, operator: Operator, op: AveragePool | MaxPool) -> list[int]:
    """The pads of a pool whose number of windows follows from them. Raises NotTrainable for others."""
    sizes = to.graph.tensors[operator.inputs[0]].shape
    for at in (0, 1):
        free = sizes[at] + op.pads[at] + op.pads[at + 2] - op.kernel_shape[at]
        if op.dilation[at] != 1 or free // op.stride[at] + 1 != op.out_size[at]:
            raise NotTrainable("its windows are dilated, or reach beyond the padding (ceil_mode)")
    return list(op.pads)


def _binary(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, Binary)
    if op.function not in _BINARY:
        raise NotTrainable(f"{op.function} has no gradient here; {', '.join(_BINARY)} have")
    inputs = [to.images[name] for name in operator.inputs]
    if op.constant_operand is not None:
        constant = operator.constants["constant"].transpose(2, 0, 1)[np.newaxis]
        inputs.insert(op.constant_operand, to.nodes.reals(constant))
    result = to.nodes.add(_BINARY[op.function], inputs, shape, operator.name)
    return to.clipped(result, op.low, op.high)


def _unary(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, Unary)
    x = to.images[operator.inputs[0]]
    if op.function == "clip":
        return to.clipped(x, op.alpha, op.beta)
    if op.function not in _UNARY:
        raise NotTrainable(f"{op.function} has no gradient here; clip, {', '.join(_UNARY)} have")
    return to.nodes.add(_UNARY[op.function], [x], shape, operator.name)


def _view(to: Forward, operator: Operator) -> str:
    rows = to.nodes.transposed(to.images[operator.inputs[0]], (0, 2, 3, 1))
    shape = to.graph.tensors[operator.output].shape
    return to.nodes.transposed(to.nodes.reshaped(rows, (1, *shape)), (0, 3, 1, 2))


def _softmax(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, Softmax)
    axis = {0: 2, 1: 3, 2: 1}[op.axis]
    return to.nodes.add("Softmax", [to.images[operator.inputs[0]]], shape, operator.name, axis=axis)


_RULES: dict[str, Callable[[Forward, Operator], str]] = {
    AveragePool.kind: _pool,
    Binary.kind: _binary,
    Conv2d.kind: _conv,
    MaxPool.kind: _pool,
    Reshape.kind: _view,
    Softmax.kind: _softmax,
    Unary.kind: _unary,
}
