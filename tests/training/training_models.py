"""Random networks to train, and their steps in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import erf
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, inliner, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from mcudeploy.extensions.training.step import TrainingStep
from tests.networks.onnx_files import build

Array = NDArray[Any]


class Network:
    """A network of images under construction; `value` is its last value, of the shape [1, *size]."""

    def __init__(self, seed: int, size: tuple[int, int, int]) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}
        self.size = size
        self.value = "x"
        self._input = size

    def node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        """Add a node and return its result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        self.value = name
        return name

    def weights(self, *shape: int) -> str:
        """Add random weights, whose products keep the size of their inputs."""
        name = f"w{len(self.constants)}"
        scale = 1.4 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
        self.constants[name] = self.rng.normal(0, scale, shape).astype(np.float32)
        return name

    def conv(self, outputs: int, kernel: int, stride: int = 1, dilation: int = 1, group: int = 1) -> None:
        """Add a convolution with padding."""
        channels, rows, cols = self.size
        reach = dilation * (kernel - 1)
        pads = [reach // 2, reach // 2, reach - reach // 2, reach - reach // 2]
        inputs = [self.value, self.weights(outputs, channels // group, kernel, kernel), self.weights(outputs)]
        window = {"strides": [stride] * 2, "dilations": [dilation] * 2, "pads": pads, "group": group}
        self.node("Conv", inputs, **window)
        self.size = (outputs, -(-rows // stride), -(-cols // stride))

    def activation(self, kind: str) -> None:
        """Add an activation: Relu, Clip to [0, 6] or [-1, 1], Sigmoid, Tanh, or none for ""."""
        if kind.startswith("Clip"):
            low, high = (0.0, 6.0) if kind == "Clip6" else (-1.0, 1.0)
            names = []
            for bound in (low, high):
                names.append(f"w{len(self.constants)}")
                self.constants[names[-1]] = np.array(bound, np.float32)
            self.node("Clip", [self.value, *names])
        elif kind:
            self.node(kind, [self.value])

    def dense(self, outputs: int) -> None:
        """Add a flatten and a dense layer."""
        self.node("Flatten", [self.value])
        depth = int(np.prod(self.size))
        self.node("Gemm", [self.value, self.weights(outputs, depth), self.weights(outputs)], transB=1)
        self.size = (outputs, 1, 1)

    def model(self) -> ModelProto:
        """The model, whose output is the last value of a dense layer."""
        x, y = (np.float32, [1, *self._input]), (np.float32, [1, self.size[0]])
        return build(self.nodes, {"x": x}, {self.value: y}, self.constants)


ACTIVATIONS = ("Relu", "Clip6", "Clip1", "Sigmoid", "Tanh", "")


def random_network(seed: int) -> ModelProto:
    """A network of two to six layers: convolutions of all kinds, residual sums, a mean, dense layers."""
    rng = np.random.default_rng(seed)
    channels = int(rng.integers(1, 6))
    network = Network(seed, (channels, int(rng.integers(5, 11)), int(rng.integers(5, 11))))
    for _ in range(int(rng.integers(1, 5))):
        channels, before = network.size[0], (network.value, network.size)
        kind = rng.choice(["dense", "pointwise", "depthwise", "multiplied"])
        stride, dilation = int(rng.choice([1, 1, 2])), int(rng.choice([1, 1, 2]))
        outputs = int(rng.integers(1, 9))
        if kind == "depthwise":
            network.conv(channels, int(rng.choice([3, 5])), stride, dilation, channels)
        elif kind == "multiplied":
            network.conv(2 * channels, 3, stride, 1, channels)
        else:
            network.conv(outputs, 1 if kind == "pointwise" else 3, stride, dilation)
        network.activation(str(rng.choice(ACTIVATIONS)))
        if network.size == before[1] and rng.random() < 0.7:
            network.node(str(rng.choice(["Add", "Sub", "Mul"])), [network.value, before[0]])
            network.activation(str(rng.choice(["Relu", "", ""])))
    if rng.random() < 0.5:
        network.node("GlobalAveragePool", [network.value])
        network.size = (network.size[0], 1, 1)
    network.dense(int(rng.integers(2, 7)))
    if rng.random() < 0.5:
        network.activation("Relu")
        network.size = (network.size[0], 1, 1)
        depth, outputs = network.size[0], int(rng.integers(2, 6))
        inputs = [network.value, network.weights(outputs, depth), network.weights(outputs)]
        network.node("Gemm", inputs, transB=1)
        network.size = (outputs, 1, 1)
    return network.model()


def saved(model: ModelProto, folder: Path, name: str = "network") -> Path:
    """The file of a model."""
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


class ConvTranspose(OpRun):
    """ONNX's operator by its definition: the reference implementation lacks groups of several channels."""

    def _run(self, x: Array, w: Array, **attributes: Any) -> tuple[Array]:
        (down, across), (far, wide) = attributes["strides"], attributes["dilations"]
        (top, left, bottom, right), group = attributes["pads"], attributes["group"]
        rows, cols = x.shape[2:]
        more = attributes["output_padding"]
        channels = w.shape[1]
        size = (
            (rows - 1) * down + far * (w.shape[2] - 1) + 1 + more[0],
            (cols - 1) * across + wide * (w.shape[3] - 1) + 1 + more[1],
        )
        result = np.zeros((1, group * channels, *size), x.dtype)
        each = x.shape[1] // group
        for at in range(group):
            own = slice(at * each, (at + 1) * each)
            by_tap = np.tensordot(x[0, own], w[own], ([0], [0]))  # rows, cols, channels, kernel
            for r, s in np.ndindex(w.shape[2:]):
                place = (
                    slice(r * far, r * far + rows * down, down),
                    slice(s * wide, s * wide + cols * across, across),
                )
                part = result[0, at * channels : (at + 1) * channels]
                part[:, *place] += by_tap[..., r, s].transpose(2, 0, 1)
        return (result[:, :, top : size[0] - bottom, left : size[1] - right],)


class MaxPool(OpRun):
    """ONNX's operator by its definition: indices of the reference implementation leave the image."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array, Array]:
        (top, left, bottom, right), kernel = attributes["pads"], attributes["kernel_shape"]
        (down, across), (far, wide) = attributes["strides"], attributes["dilations"]
        padding = ((0, 0), (0, 0), (top, bottom), (left, right))
        padded = np.pad(x, padding, constant_values=-np.inf)
        places = np.pad(np.arange(x.size).reshape(x.shape), padding)
        rows = (padded.shape[2] - far * (kernel[0] - 1) - 1) // down + 1
        cols = (padded.shape[3] - wide * (kernel[1] - 1) - 1) // across + 1
        under = [
            (
                ...,
                slice(r * far, r * far + rows * down, down),
                slice(s * wide, s * wide + cols * across, across),
            )
            for r, s in np.ndindex(*kernel)
        ]
        values, indices = (np.stack([each[it] for it in under], -1) for each in (padded, places))
        first = values.argmax(-1)[..., np.newaxis]
        return values.max(-1), np.take_along_axis(indices, first, -1)[..., 0]


class Erf(OpRun):
    """ONNX's operator in float64: the reference implementation computes it in float32."""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.vectorize(erf, otypes=[np.float64])(x),)


class Float64Step:
    """A training step in float64, by ONNX's reference implementation."""

    def __init__(self, step: TrainingStep) -> None:
        self.step = step
        model = inliner.inline_local_functions(step.proto)
        for node in model.graph.node:
            for attribute in [it for it in node.attribute if it.name == "value_float"]:
                value = numpy_helper.from_array(np.array(attribute.f, np.float64))
                attribute.CopyFrom(helper.make_attribute("value", value))
        for tensor in model.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT:
                name, array = tensor.name, numpy_helper.to_array(tensor).astype(np.float64)
                tensor.CopyFrom(numpy_helper.from_array(array, name))
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
        del model.graph.value_info[:]
        self._run = ReferenceEvaluator(model, new_ops=[ConvTranspose, Erf, MaxPool])
        self._names = [value.name for value in model.graph.output]
        self.initial = {
            node.input[0]: numpy_helper.to_array(tensor).astype(np.float64)
            for node in step.proto.graph.node
            if node.op_type == "Parameter"
            for tensor in step.proto.graph.initializer
            if tensor.name == node.input[1]
        }

    def outputs(self, inputs: Mapping[str, Array], parameters: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs by name."""
        values = {name: np.asarray(array, np.float64) for name, array in {**inputs, **parameters}.items()}
        return dict(zip(self._names, self._run.run(None, values), strict=True))

    def loss(self, inputs: Mapping[str, Array], parameters: Mapping[str, Array]) -> float:
        """The loss before the update."""
        return float(self.outputs(inputs, parameters)[self.step.loss].item())

    def gradients(
        self, inputs: Mapping[str, Array], parameters: Mapping[str, Array], rate: float
    ) -> dict[str, Array]:
        """The gradient of each parameter, from its change at a rate."""
        after = self.outputs(inputs, parameters)
        return {
            name: (parameters[name] - after[following]) / rate
            for name, following in self.step.parameters.items()
        }


@dataclass
class Descent:
    """Gradient descent by the formula of PyTorch's SGD on the mean loss of a batch, in float64, but momenta
    do not contain the decay. `step` computes the gradients, at any rate, without momenta and batches.
    """

    step: TrainingStep
    batch: int = 1
    momentum: float = 0.0
    weight_decay: float = 0.0
    clip_norm: float = np.inf

    def parameters(
        self, runs: Sequence[Mapping[str, Array]], rates: Sequence[float]
    ) -> list[dict[str, Array]]:
        """The parameters after each sample. `rates`: by sample; that of the last one of a batch counts."""
        reference = Float64Step(self.step)
        now, result = {name: reference.initial[name] for name in self.step.parameters}, []
        momenta = dict.fromkeys(now, 0.0)
        rest = {name: reference.initial[name] for name in self.step.optimizer}
        ((first, _),) = rest.values()
        for end in range(self.batch, len(runs) + 1, self.batch):
            batch = [reference.gradients(run, now | rest, first) for run in runs[end - self.batch : end]]
            result += [now] * (self.batch - 1)
            means = {name: sum(gradients[name] for gradients in batch) / self.batch for name in now}
            norm = np.sqrt(sum((mean**2).sum() for mean in means.values()))
            scale = min(1.0, self.clip_norm / (norm + 1e-6))
            for name, mean in means.items():
                momenta[name] = self.momentum * momenta[name] + scale * mean
            now = {
                name: value - rates[end - 1] * (momenta[name] + self.weight_decay * value)
                for name, value in now.items()
            }
            result.append(now)
        return result


def one_hot(label: int, classes: int) -> Array:
    """The target of a class."""
    return np.eye(classes, dtype=np.float32)[label : label + 1]
