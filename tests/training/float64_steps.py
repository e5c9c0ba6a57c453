"""Training steps in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, inliner, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from mcudeploy.extensions.training.step import TrainingStep

Array = NDArray[Any]


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
