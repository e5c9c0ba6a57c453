"""Distance of an int8 model from its float model, by ONNX Runtime without optimisations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import onnx
from onnx import ModelProto

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.extensions.quantization.data import Array, Sample
from mcudeploy.frontend.onnx.nodes import Info
from mcudeploy.verify.reference import Reference

Advance = Callable[[int], None]
"""Callback with the number of finished samples."""

_EXACT = 1e-30
_MOST_NOISE = 1e30
_ENOUGH = 20
"""With fewer samples, the share of equal classes is left to chance."""

SUFFIX = "_QuantizeLinear_Input"
"""Suffix that ONNX Runtime adds to the name of a graph output before it is quantised."""

MOVERS = frozenset(("Flatten", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"))
"""Operators that only move values: their results are as accurate as their inputs."""


class NamedSamples(Protocol):
    """Samples, and the name of each by its place."""

    def __iter__(self) -> Iterator[Sample]: ...

    def name(self, number: int) -> str:
        """Return the name in messages."""
        ...


@dataclass(slots=True)
class Noise:
    """Powers of a signal and of its noise, and the largest difference."""

    signal: float = 0.0
    noise: float = 0.0
    worst: float = 0.0

    def joined(self, other: Noise) -> Noise:
        """The noise over the samples of both."""
        return Noise(self.signal + other.signal, self.noise + other.noise, max(self.worst, other.worst))

    def add(self, wanted: Array, computed: Array) -> None:
        """Add the values that one sample gives; both arrays have the same shape."""
        reference = wanted.astype(np.float64)
        error = computed.astype(np.float64) - reference
        self.signal += float(np.sum(reference * reference))
        self.noise += float(np.sum(error * error))
        self.worst = max(self.worst, float(np.max(np.abs(error), initial=0.0)))

    @property
    def decibels(self) -> float:
        """The signal to noise ratio; infinite if nothing differs."""
        if self.noise <= 0:
            return math.inf
        noise = self.noise if math.isfinite(self.noise) else _MOST_NOISE  # an output that is not finite
        return 10 * math.log10(max(self.signal, _EXACT) / noise)


def share_of_equal(classes: Array, others: Array) -> float:
    """The share of samples for which two models, or a model and the labels, have the same class."""
    return float(np.mean(classes == others))


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """The outputs of an int8 model compared with those of the float model, over `samples` samples.

    `classes`: of each sample by the int8 model; `agreement`: the share of samples for which both models have
    the same class. Both are None if no output is a vector of classes.
    """

    outputs: Mapping[str, Noise]
    agreement: float | None
    classes: Array | None
    samples: int

    @property
    def reliable_agreement(self) -> float | None:
        """The share of samples with the same class; None if the samples are too few to exclude chance."""
        return self.agreement if self.samples >= _ENOUGH else None

    @property
    def decibels(self) -> float:
        """The signal to noise ratio of the worst output."""
        return min(noise.decibels for noise in self.outputs.values())

    @property
    def rank(self) -> tuple[float, float]:
        """Sort key: greater is better."""
        return (self.reliable_agreement or 0.0, self.decibels)

    def decibels_with(self, other: Agreement) -> float:
        """The signal to noise ratio of the worst output, over the samples of both."""
        return min(noise.joined(other.outputs[name]).decibels for name, noise in self.outputs.items())


@dataclass(frozen=True, slots=True)
class Layer:
    """A tensor of the int8 model: the node that computes it, and its signal to noise ratio.

    `input_decibels`: the ratio of the worst tensor that the node reads.
    """

    node: str
    op: str
    decibels: float
    input_decibels: float

    @property
    def added_noise(self) -> float:
        """Noise that the node adds, relative to the signal, as a ratio of powers."""
        return float(10 ** (-self.decibels / 10) - 10 ** (-self.input_decibels / 10))


def class_output(inputs: Sequence[Info], outputs: Sequence[Info]) -> str | None:
    """The first output that is a vector of classes: it has one axis above 1, and the shape of no input."""
    shapes = {info.shape for info in inputs}
    for info in outputs:
        sizes = [size for size in info.shape or () if size != 1]
        if len(sizes) == 1 and info.shape not in shapes and info.dtype == "float32":
            return info.name
    return None


@dataclass(slots=True)
class FloatOutputs:
    """Outputs of the float model at `path`, for comparison with the models of all methods."""

    path: Path
    names: Sequence[str]
    class_name: str | None
    values: list[Mapping[str, Array]] = field(default_factory=list)

    def run(self, samples: NamedSamples, advance: Advance) -> Array | None:
        """Run all samples and return their classes. Raises ModelError for outputs that are not finite."""
        reference = Reference(self.path, self.names)
        for done, sample in enumerate(samples, 1):
            values = reference.run(sample)
            for name, value in values.items():
                if not np.isfinite(value).all():
                    raise ModelError(
                        f"output {printable(name)!r} of the float model has values that are not finite for "
                        f"{samples.name(done - 1)}: int8 has no such values"
                    )
            self.values.append(values)
            advance(done)
        return _classes(self.values, self.class_name)

    def against(self, model: Path, samples: Iterable[Sample], advance: Advance) -> Agreement:
        """Compare an int8 model, which runs the same samples."""
        reference = Reference(model, self.names)
        noises = {name: Noise() for name in self.names}
        scores = []
        for done, (wanted, sample) in enumerate(zip(self.values, samples, strict=True), 1):
            outputs = reference.run(sample)
            for name, noise in noises.items():
                noise.add(wanted[name], outputs[name])
            if self.class_name is not None:
                scores.append({self.class_name: outputs[self.class_name]})
            advance(done)
        float_classes, int8_classes = (_classes(it, self.class_name) for it in (self.values, scores))
        share = None
        if float_classes is not None and int8_classes is not None:
            share = share_of_equal(float_classes, int8_classes)
        return Agreement(noises, share, int8_classes, len(self.values))


def _classes(values: Sequence[Mapping[str, Array]], name: str | None) -> Array | None:
    """The class of each sample, in their order."""
    if name is None:
        return None
    return np.array([int(np.argmax(value[name])) for value in values], np.int64)


def _first_origin(value: str, origins: Mapping[str, str]) -> str:
    """The value before all conversions to other integers."""
    while value in origins:
        value = origins[value]
    return value


def layers(prepared: Path, model: ModelProto, path: Path, samples: Iterable[Sample]) -> list[Layer]:
    """All quantised tensors of the int8 `model` at `path` that the float model has too, the worst first."""
    nodes = model.graph.node
    producers = {name: node for node in nodes for name in node.output}
    quantised = {node.output[0]: node.input[0] for node in nodes if node.op_type == "QuantizeLinear"}
    origins = {  # of the result of each pair of QuantizeLinear and DequantizeLinear
        node.output[0]: quantised[node.input[0]]
        for node in nodes
        if node.op_type == "DequantizeLinear" and node.input[0] in quantised
    }
    restored = {value: result for result, value in origins.items()}
    float_names = {value: _first_origin(value, origins).removesuffix(SUFFIX) for value in restored}
    in_floats = {name for node in onnx.load(prepared).graph.node for name in node.output}
    compared = {it: name for it, name in float_names.items() if it in producers and name in in_floats}
    if not compared:
        return []
    noises = {value: Noise() for value in restored}
    float_model, int8_model = Reference(prepared, [*compared.values()]), Reference(path, [*restored.values()])
    for sample in samples:
        wanted, got = {**float_model.run(sample), **sample}, int8_model.run(sample)
        for value, noise in noises.items():
            noise.add(wanted[float_names[value]], got[restored[value]])
    listed = []
    for value in compared:
        node = producers[value]
        if node.op_type in ("Clip", "Relu"):  # name the operator before it, in one step with it
            before = producers.get(node.input[0], node)
            node = node if before.op_type == "DequantizeLinear" else before
        if node.op_type in MOVERS or value in origins:  # a conversion to other integers
            continue
        read = [noises[origins[name]].decibels for name in node.input if origins.get(name) in noises]
        listed.append(Layer(node.name, node.op_type, noises[value].decibels, min(read, default=math.inf)))
    return sorted(listed, key=lambda layer: layer.decibels)
