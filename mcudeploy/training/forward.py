"""Operators of a graph as ONNX nodes over images [1, C, H, W], whose parameters are constants or states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.frontend.onnx import training_functions as functions
from mcudeploy.ir.graph import Graph, GraphIO, Operator, Shape
from mcudeploy.ops.concat import Concat
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.elementwise import Binary, Lut
from mcudeploy.ops.host_io import stored_axes
from mcudeploy.ops.move import Pad, Slice
from mcudeploy.ops.pool import AveragePool, MaxPool
from mcudeploy.ops.quantize import Dequantize, Quantize
from mcudeploy.ops.reduce import Reduce
from mcudeploy.ops.resize import COORDINATE_MODES, NEAREST_MODES, Resize, resize_samples
from mcudeploy.ops.softmax import Softmax
from mcudeploy.ops.training import parameter_axes
from mcudeploy.ops.transpose import Transpose
from mcudeploy.ops.unary import Unary
from mcudeploy.ops.view import Reshape
from mcudeploy.training.node_list import NodeList, OnnxShape
from mcudeploy.training.quantized import (
    constant,
    is_stored,
    real_constant,
    real_input,
    stored,
    stored_output,
)
from mcudeploy.training.recipe import Trained

Array = NDArray[Any]

_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "prelu": "PRelu"}
_UNARY = {
    "abs": "Abs",
    "celu": "Celu",
    "elu": "Elu",
    "erf": "Erf",
    "exp": "Exp",
    "gelu": functions.GELU,
    "hard_sigmoid": "HardSigmoid",
    "hard_swish": "HardSwish",
    "leaky_relu": "LeakyRelu",
    "neg": "Neg",
    "relu": "Relu",
    "selu": "Selu",
    "sigmoid": "Sigmoid",
    "softplus": "Softplus",
    "swish": functions.SWISH,
    "tanh": "Tanh",
}
_ATTRIBUTES = {
    **dict.fromkeys(("celu", "elu", "leaky_relu", "swish"), ("alpha",)),
    "hard_sigmoid": ("alpha", "beta"),
    "selu": ("alpha", "gamma"),
}
"""The names of a function's alpha and beta in ONNX."""
ONNX_AXES = (2, 3, 1)
"""The axes of an image [1, C, H, W] by those of a tensor: rows, columns, channels."""


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
            self.images[border.tensor] = self._input_image(name, border)
        self.compute(operators)

    def compute(self, operators: Sequence[Operator]) -> None:
        """Add these operators. Raises ModelError that lists unsupported operators."""
        problems = []
        for operator in operators:
            try:
                value = self._operator(operator)
                self.images[operator.output] = stored(self.nodes, self.graph.tensors[operator.output], value)
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

    def _input_image(self, name: str, border: GraphIO) -> str:
        """The image of an input of the model, whose values may be integers."""
        tensor = self.graph.tensors[border.tensor]
        if border.dtype == "float32":
            return stored(self.nodes, tensor, self.to_image(name, border))
        if tensor.quantization is None or border.dtype not in ("int8", "uint8"):
            raise ModelError(
                f"the input {border.name!r} has values of type {border.dtype}, which have no scale"
            )
        return self.to_image(real_input(self.nodes, name, tensor.quantization, border.dtype), border)

    def from_image(self, image: str, border: GraphIO, *, integers: bool = False) -> str:
        """The value of an output of the model, under its name, from its image.

        `integers`: of an int8 or uint8 output the stored values, not the real ones.
        """
        axes = axes_of(border)
        rows = self.nodes.transposed(image, (0, 2, 3, 1))
        moved = self.nodes.reshaped(rows, tuple(border.shape[axis] for axis in axes))
        name = self.nodes.claimed(border.name)
        perm = tuple(int(at) for at in np.argsort(axes))
        quantization = self.graph.tensors[border.tensor].quantization
        if integers and border.dtype != "float32" and quantization is not None:
            return stored_output(self.nodes, self.nodes.transposed(moved, perm), border, quantization)
        return self.nodes.transposed(moved, perm, name)

    def _operator(self, operator: Operator) -> str:
        rule = _RULES.get(operator.op.kind)
        if rule is None:
            reason = "a training step does not support it"
            if isinstance(operator.op, Lut):
                reason = "its int8 values are looked up in a table, without a gradient: train the float model"
            raise NotTrainable(reason)
        return rule(self, operator)

    def parameter(self, operator: Operator, name: str, perm: tuple[int, ...]) -> str:
        """The "weights" or "bias" of a convolution: a state if it is trained, else a constant."""
        full = parameter_name(operator, name)
        kinds = {"weights": self.trained.weights, "bias": self.trained.biases}
        if operator.name not in kinds[name] and full not in self.initial:
            return constant(self, operator, name)
        value, trained = real_constant(self.graph, operator, name), self.initial.get(full)
        if trained is not None and name == "weights":
            value[:, : trained.shape[1]] = trained
        elif trained is not None:
            value = np.asarray(trained, np.float32)
        elif name == "weights":
            value = value[:, : self.trained.channels.get(operator.name)]
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

    def first_channels(self, operator: Operator, image: str) -> str:
        """The channels of the image of a convolution's input whose weights are trained."""
        rows, cols, _ = self.graph.tensors[operator.inputs[0]].shape
        channels = self.trained.channels.get(operator.name)
        return image if channels is None else self.nodes.part(image, (0, 0, 0), (rows, cols, channels))

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
        raise NotTrainable(
            f"its weights are in {op.groups} groups: those of 1 group, or depthwise ones, are trained. Take "
            "--update bias, or last:K for the layers after it"
        )
    weights = to.parameter(operator, "weights", parameter_axes(op))
    bias = to.parameter(operator, "bias", (0,))
    if trained:
        return _trained_conv(to, operator, x, weights, bias)
    if operator.name not in to.trained.biases:
        sums = to.nodes.add("Conv", [x, weights, bias], shape, operator.name, **window(op))
        return to.clipped(sums, op.low, op.high)
    if all(is_stored(to.graph.tensors[name]) for name in (*operator.inputs, operator.output)):
        bounds = {"low": op.low, "high": op.high}
        inputs = [x, weights, bias]
        return to.nodes.add(functions.BIASED_CONV, inputs, shape, operator.name, **window(op), **bounds)
    products = to.nodes.add("Conv", [x, weights], shape, operator.name, **window(op))
    column = to.nodes.reshaped(bias, (1, op.out_channels, 1, 1))
    return to.clipped(to.nodes.add("Add", [products, column], shape), op.low, op.high)


def _trained_conv(to: Forward, operator: Operator, x: str, weights: str, bias: str) -> str:
    """A convolution by trained weights; those of its last input channels may be constants."""
    op, nodes, inputs = operator.op, to.nodes, [x, weights, bias]
    assert isinstance(op, Conv2d)
    shape = image_shape(to.graph.tensors[operator.output].shape)
    channels = to.trained.channels.get(operator.name)
    if channels is None:
        bounds = {"low": op.low, "high": op.high}
        return nodes.add(functions.TRAINED_CONV, inputs, shape, operator.name, **window(op), **bounds)
    rows, cols, depth = to.graph.tensors[operator.inputs[0]].shape
    inputs[0] = to.first_channels(operator, x)
    others = nodes.part(x, (0, 0, channels), (rows, cols, depth - channels))
    bounds = {"low": -inf, "high": inf}
    sums = nodes.add(functions.TRAINED_CONV, inputs, shape, operator.name, **window(op), **bounds)
    rest = nodes.add("Conv", [others, constant(to, operator, "weights", channels)], shape, **window(op))
    return to.clipped(nodes.add("Add", [sums, rest], shape), op.low, op.high)


def _pool(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, AveragePool | MaxPool)
    attributes = pool_window(op, to.graph.tensors[operator.inputs[0]].shape)
    if isinstance(op, AveragePool):
        del attributes["dilations"]  # ONNX has none before its version 19
        attributes["count_include_pad"] = int(op.count_include_pad)
    inputs = [to.images[operator.inputs[0]]]
    return to.nodes.add(type(op).__name__, inputs, shape, operator.name, **attributes)


def pool_window(op: AveragePool | MaxPool, source: Shape) -> dict[str, Any]:
    """The attributes of the windows of a pool of this input, whose number follows from the pads.

    Pads that do not count reach to the end of the last window. Raises NotTrainable if ONNX has no such
    attributes.
    """
    pads = list(op.pads)
    for at in (0, 1):
        reach = op.dilation[at] * (op.kernel_shape[at] - 1) + 1
        free = source[at] + op.pads[at] + op.pads[at + 2] - reach
        if free // op.stride[at] + 1 != op.out_size[at]:
            pads[at + 2] = (op.out_size[at] - 1) * op.stride[at] + reach - source[at] - op.pads[at]
            if isinstance(op, AveragePool) and op.count_include_pad:
                raise NotTrainable("its windows reach beyond padding that counts (ceil_mode)")
            if not 0 <= pads[at + 2] < op.kernel_shape[at]:
                raise NotTrainable("a window lies beyond the padding (ceil_mode)")
        if isinstance(op, AveragePool) and op.dilation[at] != 1:
            raise NotTrainable("the windows of its mean are dilated")
    return {
        "kernel_shape": list(op.kernel_shape),
        "strides": list(op.stride),
        "dilations": list(op.dilation),
        "pads": pads,
    }


def _binary(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, Binary)
    if op.function not in _BINARY:
        raise NotTrainable(f"{op.function} has no gradient here; {', '.join(_BINARY)} have")
    inputs = [to.images[name] for name in operator.inputs]
    if op.constant_operand is not None:
        operand = operator.constants["constant"].transpose(2, 0, 1)[np.newaxis]
        inputs.insert(op.constant_operand, to.nodes.reals(operand))
    result = to.nodes.add(_BINARY[op.function], inputs, shape, operator.name)
    return to.clipped(result, op.low, op.high)


def _unary(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, Unary)
    x = to.images[operator.inputs[0]]
    if op.function == "clip":
        return to.clipped(x, op.alpha, op.beta)
    if op.function == "square":
        return to.nodes.add("Mul", [x, x], shape, operator.name)
    if op.function not in _UNARY:
        raise NotTrainable(f"{op.function} has no gradient here; clip, {', '.join(_UNARY)} have")
    attributes = dict(zip(_ATTRIBUTES.get(op.function, ()), (op.alpha, op.beta), strict=False))
    return to.nodes.add(_UNARY[op.function], [x], shape, operator.name, **attributes)


def _view(to: Forward, operator: Operator) -> str:
    rows = to.nodes.transposed(to.images[operator.inputs[0]], (0, 2, 3, 1))
    shape = to.graph.tensors[operator.output].shape
    return to.nodes.transposed(to.nodes.reshaped(rows, (1, *shape)), (0, 3, 1, 2))


def _softmax(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, Softmax)
    axis = ONNX_AXES[op.axis]
    return to.nodes.add("Softmax", [to.images[operator.inputs[0]]], shape, operator.name, axis=axis)


def _concat(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, Concat)
    inputs = [to.images[name] for name in operator.inputs]
    return to.nodes.add("Concat", inputs, shape, operator.name, axis=ONNX_AXES[op.axis])


def _reduce(to: Forward, operator: Operator) -> str:
    op, shape = operator.op, image_shape(to.graph.tensors[operator.output].shape)
    assert isinstance(op, Reduce)
    axes, inputs = sorted(ONNX_AXES[axis] for axis in op.axes), [to.images[operator.inputs[0]]]
    name = f"Reduce{op.function.capitalize()}"
    if op.function == "sum":  # whose axes are an input
        inputs.append(to.nodes.constant(np.array(axes, np.int64), "axes"))
        return to.nodes.add(name, inputs, shape, operator.name, keepdims=1)
    return to.nodes.add(name, inputs, shape, operator.name, keepdims=1, axes=axes)


def _slice(to: Forward, operator: Operator) -> str:
    op, tensors = operator.op, to.graph.tensors
    assert isinstance(op, Slice)
    if op.step != (1, 1, 1):
        raise NotTrainable("it leaves out values between others, or turns their order")
    image = to.images[operator.inputs[0]]
    return to.nodes.part(image, op.start, tensors[operator.output].shape, operator.name)


def _pad(to: Forward, operator: Operator) -> str:
    op = operator.op
    assert isinstance(op, Pad)
    if min(op.before) < 0 or min(op.after) < 0:
        raise NotTrainable("it crops on one side")
    image = to.images[operator.inputs[0]]
    return to.nodes.padded(image, (op.before, op.after), op.value, operator.name)


def _transpose(to: Forward, operator: Operator) -> str:
    op = operator.op
    assert isinstance(op, Transpose)
    rows = to.nodes.transposed(to.images[operator.inputs[0]], (0, 2, 3, 1))
    moved = to.nodes.transposed(to.nodes.reshaped(rows, op.dims), op.perm)
    return to.nodes.transposed(to.nodes.reshaped(moved, (1, *op.out_shape)), (0, 3, 1, 2))


def _resize(to: Forward, operator: Operator) -> str:
    op, tensors = operator.op, to.graph.tensors
    assert isinstance(op, Resize)
    shape = image_shape(tensors[operator.output].shape)
    attributes = _resize_attributes(op, tensors[operator.inputs[0]].shape)
    sizes = to.nodes.constant(np.array(shape, np.int64), "sizes")
    inputs = [to.images[operator.inputs[0]], "", "", sizes]
    return to.nodes.add("Resize", inputs, shape, operator.name, **attributes)


def _resize_attributes(op: Resize, source: Shape) -> dict[str, str]:
    """The attributes of a Resize by sizes with these samples. Raises NotTrainable if there are none."""
    roundings = NEAREST_MODES if op.mode == "nearest" else NEAREST_MODES[:1]
    for coordinates, rounding in product(COORDINATE_MODES, roundings):
        rows, cols = (
            resize_samples(
                size, out, out / size, mode=op.mode, coordinates=coordinates, nearest_mode=rounding
            )
            for size, out in zip(source[:2], op.out_size, strict=True)
        )
        if (rows, cols) == (op.rows, op.cols):
            names = {"mode": op.mode, "coordinate_transformation_mode": coordinates}
            return names | ({"nearest_mode": rounding} if op.mode == "nearest" else {})
    raise NotTrainable("its scales are not the quotients of its sizes")


def _conversion(to: Forward, operator: Operator) -> str:
    return to.images[operator.inputs[0]]


_RULES: dict[str, Callable[[Forward, Operator], str]] = {
    AveragePool.kind: _pool,
    Binary.kind: _binary,
    Concat.kind: _concat,
    Conv2d.kind: _conv,
    Dequantize.kind: _conversion,
    MaxPool.kind: _pool,
    Pad.kind: _pad,
    Quantize.kind: _conversion,
    Reduce.kind: _reduce,
    Reshape.kind: _view,
    Resize.kind: _resize,
    Slice.kind: _slice,
    Softmax.kind: _softmax,
    Transpose.kind: _transpose,
    Unary.kind: _unary,
}
