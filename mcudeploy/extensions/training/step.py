"""A training step as an ONNX model: forward, loss, backward, update.

Its inputs are the model's inputs and `target`; its outputs are the model's output and `loss`. Trained
parameters are states: the next step continues from them. The file defines operators that ONNX lacks as
functions, so that ONNX Runtime computes the same step.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.text import count_text, printable
from mcudeploy.extensions.training.backward import Backward, depending
from mcudeploy.extensions.training.forward import Forward, convolutions, parameter_name, problem_of
from mcudeploy.extensions.training.forward_rules import FORWARD_RULES
from mcudeploy.extensions.training.gradients import GRADIENT_RULES
from mcudeploy.extensions.training.int8_values import is_stored
from mcudeploy.extensions.training.node_list import image_shape
from mcudeploy.extensions.training.recipe import Recipe, Trained
from mcudeploy.extensions.training.recomputing import KeptTensors
from mcudeploy.extensions.training.updates import OPTIMIZER, Updates
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator
from mcudeploy.ops.move.quantize import Dequantize
from mcudeploy.ops.reduce.softmax import Softmax

LOSS = "loss"
TARGET = "target"

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class ParameterOrigin:
    """The nodes of the model's file whose constants a trained parameter replaces, and the number of elements.
    """

    onnx_nodes: tuple[str, ...]
    elements: int


@dataclass(frozen=True, slots=True, eq=False)
class TrainingStep:
    """The model of a training step, and the names of its inputs and outputs.

    `parameters`, `sums`, `optimizer`: from the name of a state before a step to its name after the step.
    """

    proto: ModelProto
    parameters: Mapping[str, str]
    sums: Mapping[str, str]
    """Sums of gradients that stay between steps, and momenta."""
    optimizer: Mapping[str, str]
    """The learning rate and the number of samples."""
    origins: Mapping[str, ParameterOrigin]
    """By the names of parameters before a step."""
    loss: str
    """The name of the output that has the loss."""
    target: str
    """The name of the input that has the target."""

    @property
    def states(self) -> dict[str, str]:
        """Return the name of every state after a step, by its name before the step."""
        return {**self.parameters, **self.sums, **self.optimizer}


def training_step(graph: Graph, recipe: Recipe, keep: Collection[str] | None = None) -> TrainingStep:
    """Make the training step of a float32 or int8 model.

    `keep`: the tensors that the backward part does not recompute; None: all of them.

    Raises ModelError for models and operators that cannot be trained, and UsageError for an update that does
    not fit the model.
    """
    output = _require_trainable(graph)
    operators, head = _without_softmax(graph, output)
    trained = recipe.update.trained(convolutions(graph))
    if not convolutions(graph):
        raise ModelError("the model has no convolution or dense layer: there is nothing to train")
    if not trained.operators:
        raise UsageError(f"--update {recipe.update} names no layer: there is nothing to train")
    forward = Forward(graph, FORWARD_RULES, trained, {})
    forward.run(operators)
    end = _End(forward, head.inputs[0] if head else output.tensor, output, softmax=head is not None)
    if recipe.loss == "cross-entropy":
        loss = end.cross_entropy()
    elif head is None:
        loss = end.mean_squared_error()
    else:
        reason = "--loss mse is not for a model that ends in it: take --loss cross-entropy"
        raise ModelError.unsupported((problem_of(head, reason),))
    updates, tensors = Updates.of(forward, recipe), KeptTensors(forward, operators, keep)
    backward = Backward(forward, GRADIENT_RULES, updates, depending(operators, trained.operators), tensors)
    backward.gradients[end.tensor] = loss.gradient
    backward.run(operators)
    optimizer = {OPTIMIZER: updates.finish()}
    states = {**updates.next, **updates.sums, **optimizer}
    forward.nodes.outputs += [output.name, loss.value, *states.values()]
    proto, origins = forward.nodes.model(graph.name), _origins(graph, trained)
    return TrainingStep(proto, updates.next, updates.sums, optimizer, origins, loss.value, loss.target)


def _origins(graph: Graph, trained: Trained) -> dict[str, ParameterOrigin]:
    """The origin of each trained parameter, by its name before a step."""
    origins = {}
    for operator in convolutions(graph):
        if operator.name in trained.weights:
            weights = operator.constants["weights"]
            count = weights[..., : trained.channels.get(operator.name)].size
            origins[parameter_name(operator, "weights")] = ParameterOrigin(operator.onnx_nodes, count)
        if operator.name in trained.biases:
            count = operator.constants["bias"].size
            origins[parameter_name(operator, "bias")] = ParameterOrigin(operator.onnx_nodes, count)
    return origins


def trained_model(graph: Graph, parameters: Mapping[str, Array]) -> ModelProto:
    """Make the ONNX model of a graph with these parameters, by their names in its training step."""
    output = _require_trainable(graph)
    forward = Forward(graph, FORWARD_RULES, Trained(), parameters)
    forward.run(graph.operators)
    image = forward.images[output.tensor]
    forward.nodes.outputs.append(forward.from_image(image, output, integers=True))
    return forward.nodes.model(graph.name)


@dataclass(frozen=True, slots=True)
class _LossNodes:
    """Names of values: the loss, its gradient (an image), and the input with the target."""

    value: str
    gradient: str
    target: str


@dataclass(frozen=True, slots=True)
class _End:
    """The end of the model, from `tensor`, whose gradient is computed first, to the output `io`.

    `softmax`: whether a softmax makes the output from the tensor; else the tensor is the output.
    """

    forward: Forward
    tensor: str
    io: GraphIO
    softmax: bool

    def cross_entropy(self) -> _LossNodes:
        """Add the loss, and its gradient by the values before the softmax."""
        nodes, image = self.forward.nodes, self.forward.images[self.tensor]
        rows, cols, classes = self.forward.graph.tensors[self.tensor].shape
        if rows * cols != 1 or classes == 1:
            raise ModelError(self._without_classes(rows * cols, classes))
        flat = (1, classes)
        wanted = nodes.input(TARGET, self.io.shape)
        target = nodes.reshaped(wanted, flat)
        logits = nodes.reshaped(image, flat)
        probabilities = nodes.add("Softmax", [logits], flat, "probabilities", axis=1)
        output = nodes.reshaped(probabilities, image_shape((1, 1, classes))) if self.softmax else image
        self.forward.from_image(output, self.io)
        logs = nodes.add("LogSoftmax", [logits], flat, axis=1)
        products = nodes.add("Mul", [logs, target], flat)
        axes = nodes.constant(np.array([0, 1], np.int64), "axes")
        total = nodes.add("ReduceSum", [products, axes], (1, 1), keepdims=1)
        loss = nodes.add("Neg", [total], (1, 1), LOSS)
        gradient = nodes.add("Sub", [probabilities, target], flat, "loss_gradient")
        return _LossNodes(loss, nodes.reshaped(gradient, image_shape((1, 1, classes))), wanted)

    def _without_classes(self, positions: int, values: int) -> str:
        """The error for an output that has no cross-entropy."""
        batch, *sizes = self.io.shape
        if positions == batch > 1 and len(sizes) == 1:
            entry = self.forward.graph.inputs[0]
            one = ",".join(map(str, (1, *entry.shape[1:])))
            return (
                f"the output {list(self.io.shape)} has a batch of {batch}, and a training step takes one "
                f"sample: give --shape {entry.name}={one}"
            )
        return (
            f"the output has {count_text(positions, 'position')} of {count_text(values, 'value')}; --loss "
            "cross-entropy needs one position with a value for each of several classes: take --loss mse"
        )

    def mean_squared_error(self) -> _LossNodes:
        """Add the loss, and its gradient by the output."""
        nodes, image = self.forward.nodes, self.forward.images[self.tensor]
        shape = nodes.shapes[image]
        wanted = nodes.input(TARGET, self.io.shape)
        target = self.forward.to_image(wanted, self.io)
        self.forward.from_image(image, self.io)
        error = nodes.add("Sub", [image, target], shape)
        squares = nodes.add("Mul", [error, error], shape)
        loss = nodes.add("ReduceMean", [squares], (1, 1, 1, 1), LOSS, axes=[0, 1, 2, 3], keepdims=1)
        factor = nodes.reals(2.0 / self.forward.graph.tensors[self.tensor].elements)
        return _LossNodes(loss, nodes.add("Mul", [error, factor], shape, "loss_gradient"), wanted)


def _require_trainable(graph: Graph) -> GraphIO:
    """The only output of a float32 or int8 model without states. Raises ModelError for others."""
    types = {operator: ", ".join(_other_types(graph, operator)) for operator in graph.operators}
    reason = "it computes with {}; training takes float32 and int8"
    problems = tuple(problem_of(operator, reason.format(it)) for operator, it in types.items() if it)
    if problems:
        raise ModelError.unsupported(problems)
    if graph.states:
        raise ModelError("the model keeps states between runs: such models are not trained")
    if len(graph.outputs) != 1:
        names = ", ".join(repr(printable(io.name)) for io in graph.outputs)
        raise ModelError(
            f"the model has {len(graph.outputs)} outputs, {names}, and a loss has one: write a file with one "
            "output (onnx.utils.extract_model)"
        )
    return graph.outputs[0]


def _other_types(graph: Graph, operator: Operator) -> list[str]:
    """The types of an operator's tensors other than float32 and quantised int8."""
    tensors = [graph.tensors[name] for name in (*operator.inputs, operator.output)]
    return sorted({it.dtype.value for it in tensors if it.dtype is not DType.FLOAT32 and not is_stored(it)})


def _without_softmax(graph: Graph, output: GraphIO) -> tuple[tuple[Operator, ...], Operator | None]:
    """The operators without a last softmax over the channels, and without a Dequantize after it; the softmax.

    All operators and None if the model does not end with such a softmax.
    """
    producers = {operator.output: operator for operator in graph.operators}
    last, dequantize = producers.get(output.tensor), None
    if last is not None and isinstance(last.op, Dequantize):
        last, dequantize = producers.get(last.inputs[0]), last
    if last is None or not isinstance(last.op, Softmax) or last.op.axis != 2:
        return graph.operators, None
    return tuple(it for it in graph.operators if it not in (last, dequantize)), last
