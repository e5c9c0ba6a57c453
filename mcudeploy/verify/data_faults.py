"""Faults of data that a run shows: inputs outside of the quantised range, and outputs that never change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.text import agree, count_text, printable
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Quantization
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.verify.preprocessing import ImageShape, image_shape

Array = NDArray[Any]

MOST_CLIPPED = 0.01
"""Share of clipped values above which an input is reported."""

_MOST_PIXEL, _BRIGHT = 255.0, 100.0
"""The largest value of a pixel in bytes, and the least value of the brightest pixel of a set of images."""

_NARROW = 0.02
"""Share of the range of an input below which values are too small for it."""

_SMOOTHER = 0.5
"""Ratio of the differences between neighbours below which another order of the axes fits better."""

_NEARLY_ALL, _FEW_MISSED = 0.95, 3
"""The least share of samples with one class or equal outputs, and the least number of samples with a wrong
class, that are reported.
"""

_ENOUGH, _LEAST_CLASSES = 20, 3
"""Numbers of samples and of classes from which one class for all of them is remarkable without labels."""

_ROUNDED = 0.1
"""The most by which the sum of probabilities in int8 differs from 1."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The least and the largest real number that integers of an input represent, and the step between two."""

    least: float
    most: float
    step: float


def levels_of(graph: Graph, io: GraphIO) -> Levels | None:
    """Return the levels of an input that the model declares quantised, or that its first operators quantise.

    None for an input of floats or of plain integers.
    """
    tensor = graph.tensors[io.tensor]
    if io.dtype == "bool":
        return None
    if tensor.quantization is not None:
        return _levels(tensor.quantization, tensor.dtype)
    roots = Dataflow.of(graph).roots
    names = {name for name, root in roots.items() if root == roots[io.tensor]}
    levels = {
        _levels_by(graph, operator)
        for operator in graph.operators
        if names.intersection(operator.inputs) and operator.output not in names
    }
    return levels.pop() if len(levels) == 1 else None


def _levels_by(graph: Graph, operator: Operator) -> Levels | None:
    output = graph.tensors[operator.output]
    meaning = operator.op.quantization(output)
    return None if meaning is None else _levels(meaning, output.dtype)


def _levels(meaning: Quantization, dtype: DType) -> Levels:
    scale, zero_point = meaning.scale, meaning.zero_point
    ends = (-(2**15), 2**15 - 1) if dtype is DType.INT16 else (-128, 127)
    return Levels(scale * (ends[0] - zero_point), scale * (ends[1] - zero_point), scale)


@dataclass(frozen=True, slots=True)
class InputFacts:
    """The values of an input over all samples. `clipped`: those more than half a step outside of `levels`.

    `reordered`: they are the pixels of images, channels first where the model has them last or the reverse.
    """

    name: str
    values: int
    least: float
    most: float
    clipped: int
    levels: Levels | None
    reordered: bool

    @property
    def share(self) -> float:
        """The clipped values as a share of all."""
        return self.clipped / self.values


@dataclass(slots=True)
class _ValueCounts:
    levels: Levels | None
    values: int = 0
    least: float = np.inf
    most: float = -np.inf
    clipped: int = 0
    roughness: float = 0.0
    other_roughness: float = 0.0


@dataclass(slots=True)
class InputTally:
    """Counts real numbers of a model's inputs, before they become integers."""

    graph: Graph
    counts: dict[str, _ValueCounts] = field(default_factory=dict)

    def add(self, io: GraphIO, real: Array) -> None:
        """Add the values of an input, for one sample or several along a first axis; ignore other names."""
        if not real.size or io.name not in {it.name for it in self.graph.own_inputs()}:
            return
        if io.name not in self.counts:
            self.counts[io.name] = _ValueCounts(levels_of(self.graph, io))
        count = self.counts[io.name]
        count.values += real.size
        count.least = min(count.least, float(real.min()))
        count.most = max(count.most, float(real.max()))
        if count.levels is not None:
            half = count.levels.step * (0.5 + 1e-5)
            beyond = (real < count.levels.least - half) | (real > count.levels.most + half)
            count.clipped += int(np.count_nonzero(beyond))
        shape = image_shape(io.shape)
        if shape is not None and shape.channels > 1 and real.shape == io.shape:
            other = shape._replace(channels_first=not shape.channels_first)
            count.roughness += _roughness(real, shape)
            count.other_roughness += _roughness(real, other)

    def facts(self) -> list[InputFacts]:
        """Return the facts of every input that had real numbers."""
        return [
            InputFacts(
                name,
                it.values,
                it.least,
                it.most,
                it.clipped,
                it.levels,
                it.other_roughness < _SMOOTHER * it.roughness,
            )
            for name, it in self.counts.items()
        ]


def _roughness(real: Array, shape: ImageShape) -> float:
    """Return the mean difference of neighbours in an image whose values are read in this shape."""
    image = real.reshape(shape.dims)
    axes = (1, 2) if shape.channels_first else (0, 1)
    return sum(float(np.abs(np.diff(image, axis=axis)).mean()) for axis in axes if image.shape[axis] > 1)


def clipping_warnings(facts: Sequence[InputFacts]) -> list[str]:
    """Return a warning for each input with more than 1 % clipped values, with the likely cause."""
    warnings = []
    for it in facts:
        if it.levels is None or it.share <= MOST_CLIPPED:
            continue
        warnings.append(
            f"input {printable(it.name)!r}: {it.share:.1%} of {count_text(it.values, 'value')} "
            f"{agree(it.values, 'is', 'are')} clipped. They go from {it.least:.4g} to {it.most:.4g}, the "
            f"model takes {it.levels.least:.4g} to {it.levels.most:.4g}. {likely_cause(it)}"
        )
    return warnings


def likely_cause(it: InputFacts) -> str:
    """Name the likely cause of wrong outputs, and the way out; "" if the values give no hint."""
    if it.reordered:
        return (
            "Likely cause: the order of the axes. Neighbouring values differ far less with the channels "
            "on the other end (NCHW against NHWC): transpose the images, a reshape mixes their pixels"
        )
    pixels = it.least >= 0 and _BRIGHT < it.most <= _MOST_PIXEL
    levels = it.levels
    if levels is None:
        return (
            "Likely cause: pixels from 0 to 255 without the scaling of the training, such as to 0 .. 1"
            if pixels
            else ""
        )
    width, reach = it.most - it.least, max(abs(levels.least), abs(levels.most))
    largest = max(abs(it.least), abs(it.most))
    if pixels and reach <= _BRIGHT / 4:
        then = ", then subtract the mean and divide by the deviation" if levels.least < -0.05 * reach else ""
        return f"Likely cause: pixels from 0 to 255 without scaling: divide them by 255{then}, as in training"
    if width < _NARROW * (levels.most - levels.least):
        return (
            f"Likely cause: the values use {100 * width / (levels.most - levels.least):.2g} % of the model's "
            "range, as pixels from 0 to 1 do for a model of 0 to 255: scale them as in training"
        )
    if it.clipped and width <= 1.25 * (levels.most - levels.least):
        return "Likely cause: the mean is not subtracted. Prepare the values as in training"
    if it.clipped:
        return (
            f"Likely cause: the scale. The largest value is {largest / reach:.3g} times the largest that the "
            "model takes: scale the values as in training"
        )
    return ""


def one_class(computed: Array, labels: Array | None, scores: Array) -> str | None:
    """Report that nearly all samples get one class, if that is unlikely; else return None.

    It is unlikely by the labels. Without labels it is if the scores, [samples, elements], are probabilities,
    and the samples are many.
    """
    if labels is None and not _are_shares(scores):
        return None
    numbers, counts = np.unique(computed, return_counts=True)
    number, count, total = int(numbers[counts.argmax()]), int(counts.max()), len(computed)
    if count < _NEARLY_ALL * total:
        return None
    fault = f"class {number} is computed for {count:,} of {count_text(total, 'sample')}"
    if labels is None:
        return f"{fault}: right only if nearly all of them are of that class" if total >= _ENOUGH else None
    missed = int((labels != number).sum())
    if missed < _FEW_MISSED or 4 * (total - count) > missed:
        return None
    return f"{fault}; by the labels {total - missed:,} are of that class"


def _are_shares(values: Array) -> bool:
    """Whether each row is probabilities of three or more classes, such as a softmax makes."""
    wide = values.ndim == 2 and values.shape[1] >= _LEAST_CLASSES
    return bool(wide and (values >= 0).all() and (np.abs(values.sum(1) - 1) < _ROUNDED).all())


def at_ends(graph: Graph, ios: Sequence[GraphIO], stored: Mapping[str, Array]) -> bool:
    """Whether the elements of these outputs are classes, or int8 values at an end of the range.

    Scores of a classifier that is sure are such values.
    """
    return all(
        graph.tensors[it.tensor].dtype is DType.INT32
        or it.dtype == "bool"
        or (
            graph.tensors[it.tensor].dtype is DType.INT8
            and bool(np.isin(stored[it.tensor], (-128, 127)).all())
        )
        for it in ios
    )


def unchanged(outputs: Sequence[bytes], same_inputs: Callable[[int, int], bool]) -> str | None:
    """Report that nearly all outputs are equal although their inputs differ; None if there is no such fault.

    `outputs`: those of each sample. `same_inputs`: whether two samples, by their numbers, have equal inputs.
    """
    ((most, count),) = Counter(outputs).most_common(1)
    if count < max(2.0, _NEARLY_ALL * len(outputs)):
        return None
    equal = [at for at, each in enumerate(outputs) if each == most]
    if all(same_inputs(equal[0], at) for at in equal[1:]):
        return None
    return f"the outputs of {count:,} of {count_text(len(outputs), 'sample')} are equal, their inputs are not"


def with_cause(fault: str, facts: Sequence[InputFacts]) -> str:
    """Add the likely cause to a fault of the outputs, unless a clipped input names it."""
    if clipping_warnings(facts):
        return fault
    causes = [cause for it in facts if (cause := likely_cause(it))]
    text = (
        causes[0] if causes else "Likely causes: inputs not prepared as in training, or the training itself"
    )
    return f"{fault}. {text}"


def run_warnings(
    graph: Graph,
    facts: Sequence[InputFacts],
    inputs: Sequence[Mapping[str, Array]],
    outputs: Sequence[Mapping[str, Array]],
) -> list[str]:
    """Report the faults of a run, from stored inputs and outputs of each sample by tensor.

    Outputs of a model with states depend on earlier samples, and are not compared.
    """
    warnings = clipping_warnings(facts)
    names = [it.tensor for it in graph.own_outputs()]
    if graph.states or len(outputs) != len(inputs) or at_ends(graph, graph.own_outputs(), outputs[0]):
        return warnings
    keys = [b"".join(each[name].tobytes() for name in names) for each in outputs]
    fault = unchanged(keys, lambda one, other: same_arrays(inputs[one], inputs[other]))
    return warnings if fault is None else [*warnings, with_cause(fault, facts)]


def infinite_warnings(outputs: Sequence[Mapping[str, Array]]) -> list[str]:
    """Report outputs without a finite value, which say little about a program."""
    values = [value for each in outputs for value in each.values() if value.size]
    if not values or any(np.isfinite(value).any() for value in values):
        return []
    return ["No output is finite, so the verdict says little: look at the weights of the model"]


def same_arrays(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    """Whether all arrays of two samples are equal."""
    return all(np.array_equal(value, other[name]) for name, value in one.items())
