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
"""Number of samples below which the share of equal classes is chance."""

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
        """The powers over these samples and others."""
        return Noise(self.signal + other.signal, self.noise + other.noise, max(self.worst, other.worst))

    def add(self, wanted: Array, computed: Array) -> None:
        """Add one value of each, of the same shape."""
        reference = wanted.astype(np.float64)
        error = computed.astype(np.float64) - reference
        self.signal += float(np.sum(reference * reference))
        self.noise += float(np.sum(error * error))
        self.worst = max(self.worst, float(np.max(np.abs(error), initial=0.0)))

    @property
    def decibels(self) -> float:
        """Signal to quantisation noise; infinite if nothing differs."""
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

    `agreement` is the share of samples with the same first class, None if no output is a vector of classes.
    """

    outputs: Mapping[str, Noise]
    agreement: float | None
    classes: Array | None
    samples: int

    @property
    def telling(self) -> float | None:
        """The share of samples with the same class, if there are enough samples to exclude chance."""
        return self.agreement if self.samples >= _ENOUGH else None

    @property
    def decibels(self) -> float:
        """The signal to noise ratio of the worst output."""
        return min(noise.decibels for noise in self.outputs.values())

    @property
    def rank(self) -> tuple[float, float]:
        """Sort key: greater is better."""
        return (self.telling or 0.0, self.decibels)

    def decibels_with(self, other: Agreement) -> float:
        """The signal to noise ratio of the worst output, over these samples and others."""
        return min(noise.joined(other.outputs[name]).decibels for name, noise in self.outputs.items())


@dataclass(frozen=True, slots=True)
class Layer:
    """A tensor of the int8 model: its node, its distance from the float model, and the distance of the worst
    tensor that the node reads.
    """

    node: str
    op: str
    decibels: float
    input_decibels: float

    @property
    def lost(self) -> float:
        """Noise that the node adds, relative to the signal, as a ratio of powers."""
        return float(10 ** (-self.decibels / 10) - 10 ** (-self.input_decibels / 10))


def class_output(inputs: Sequence[Info], outputs: Sequence[Info]) -> str | None:
    """The first output that is a vector of classes: one axis above 1, and no copy of an input's shape."""
    shapes = {info.shape for info in inputs}
    for info in outputs:
        sizes = [size for size in info.shape or () if size != 1]
        if len(sizes) == 1 and info.shape not in shapes and info.dtype == "float32":
            return info.name
    return None


@dataclass(slots=True)
class Floats:
    """Outputs of the float model, kept for comparison with every method."""

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
        """Run the same samples through an int8 model."""
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
        own_classes, other = _classes(self.values, self.class_name), _classes(scores, self.class_name)
        share = None if own_classes is None or other is None else share_of_equal(own_classes, other)
        return Agreement(noises, share, other, len(self.values))


def _classes(values: Sequence[Mapping[str, Array]], name: str | None) -> Array | None:
    """The class of each sample, in their order."""
    if name is None:
        return None
    return np.array([int(np.argmax(value[name])) for value in values], np.int64)


def _before(source: str, origins: Mapping[str, str]) -> str:
    """The value before all conversions to other integers."""
    while source in origins:
        source = origins[source]
    return source


def layers(prepared: Path, model: ModelProto, path: Path, samples: Iterable[Sample]) -> list[Layer]:
    """All quantised tensors of the int8 `model` at `path` that the float model has too, the worst first."""
    known = {name for node in onnx.load(prepared).graph.node for name in node.output}
    stored = {
        node.input[0]: node.output[0] for node in model.graph.node if node.op_type == "DequantizeLinear"
    }
    real = {
        node.input[0]: stored[node.output[0]]
        for node in model.graph.node
        if node.op_type == "QuantizeLinear" and node.output[0] in stored
    }
    producers = {name: node for node in model.graph.node for name in node.output}
    read_by = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    origins = {
        node.output[0]: read_by[node.input[0]]
        for node in model.graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] in read_by
    }
    names = {source: _before(source, origins).removesuffix(SUFFIX) for source in real}
    tensors = {source: name for source, name in names.items() if source in producers and name in known}
    if not tensors:
        return []
    noises = {source: Noise() for source in real}
    floats = Reference(prepared, list(tensors.values()))
    reference = Reference(path, list(real.values()))
    for sample in samples:
        wanted, got = {**floats.run(sample), **sample}, reference.run(sample)
        for source, noise in noises.items():
            noise.add(wanted[names[source]], got[real[source]])
    listed = []
    for source in tensors:
        node = producers[source]
        if node.op_type in ("Clip", "Relu"):  # the result of the operator before it
            before = producers.get(node.input[0], node)
            node = node if before.op_type == "DequantizeLinear" else before
        if node.op_type in MOVERS or source in origins:  # a conversion
            continue
        read = [noises[origins[name]].decibels for name in node.input if origins.get(name) in noises]
        listed.append(Layer(node.name, node.op_type, noises[source].decibels, min(read, default=math.inf)))
    return sorted(listed, key=lambda layer: layer.decibels)
