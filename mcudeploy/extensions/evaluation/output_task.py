"""The meaning of a model's output for an evaluation: classes, one score, reconstruction, or values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import UsageError
from mcudeploy.common.text import printable
from mcudeploy.extensions.evaluation import metrics
from mcudeploy.extensions.evaluation.dataset import Dataset
from mcudeploy.extensions.evaluation.metrics import Numbers, Quality
from mcudeploy.ir.graph import UNSIGNED_OFFSET, Graph, GraphIO
from mcudeploy.ops.requantize import dequantize

Array = NDArray[Any]

Kind = Literal["classes", "class number", "two classes", "anomaly", "values", "agreement"]
"""The meaning of an output: `classes`, a score per class; `class number`; `two classes`, one score;
`anomaly`, a reconstruction of the input, whose error is the score; `values`; `agreement`, an output without
labels, for which models are only compared with each other.
"""


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """The user's choices: the output by name, the k of top-k, and the score from which on class 1 counts."""

    output: str | None = None
    k: int = 5
    threshold: float = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A kind of output, its name and size, the number of its classes (0 if it has none), and the labels of
    all samples.
    """

    kind: Kind
    output: str
    elements: int
    classes: int
    labels: Array | None
    choice: TaskChoice

    def class_of(self, values: Array) -> Numbers | None:
        """The class of each sample by values [samples, elements]; None if the output has no classes."""
        if not self.classes:
            return None
        single = values[:, 0] >= self.choice.threshold if self.kind == "two classes" else values[:, 0]
        numbers: Numbers = (single if values.shape[1] == 1 else values.argmax(1)).astype(np.int64)
        return numbers

    def quality(self, values: Array, errors: Array) -> Quality:
        """The figures of values [samples, elements]; `errors`: mean squared errors of reconstructions."""
        labels = self.labels
        if self.kind == "anomaly":
            auc = None if labels is None else metrics.area_under_curve(errors, labels == 1)
            return Quality(auc=auc, mse=float(errors.mean()))
        if labels is None:
            return Quality()
        if self.kind == "classes":
            return metrics.classification(values, labels, self.choice.k)
        if self.kind == "two classes":
            return metrics.two_classes(values[:, 0], labels, self.choice.threshold)
        if self.kind == "class number":
            return metrics.class_numbers_alone(values[:, 0].astype(np.int64), labels, self.classes)
        return metrics.regression(values, labels)

    def losses(self, values: Array, errors: Array) -> Array | None:
        """How wrong each sample is: above 0 for a wrong one; None without labels.

        A loss is the lead of the computed class over the right one, the distance from the threshold, or the
        squared error.
        """
        labels = self.labels
        if labels is None:
            return errors if self.kind == "anomaly" else None
        if self.kind == "classes":
            return np.asarray(values.max(1) - values[np.arange(len(values)), labels])
        if self.kind == "two classes":
            distance = values[:, 0] - self.choice.threshold
            return np.asarray(np.where(labels == 1, -distance, distance))
        if self.kind == "class number":
            return np.asarray(values[:, 0] != labels, np.float64)
        if self.kind == "anomaly":
            middle = np.median(errors)
            return np.asarray(np.where(labels == 1, middle - errors, errors - middle))
        return np.asarray(((values - labels) ** 2).mean(1))


def choose_task(graph: Graph, data: Dataset, choice: TaskChoice) -> Task:
    """Choose the output and its meaning by its shape and the labels.

    Raises UsageError if no output fits the labels, or a label is not a class of the model.
    """
    ios = graph.own_outputs()
    named = [io for io in ios if io.name == choice.output]
    if choice.output is not None and not named:
        names = ", ".join(printable(io.name) for io in ios)
        raise UsageError(f"--output-name {printable(choice.output)!r}: the model has the outputs {names}")
    candidates = named or list(ios)
    labels = data.labels
    if labels is not None and labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise UsageError("the labels have values that are not finite")
    if labels is not None and _is_one_hot(labels):
        labels = labels.argmax(1)
    if labels is not None and labels.size == len(labels) and _are_classes(labels):
        if labels.max() >= 2**31:
            raise UsageError(f"the labels have the class {labels.max()}: classes are counted from 0")
        return _of_classes(graph, candidates, labels.reshape(-1).astype(np.int64), choice)
    if labels is not None:
        return _of_values(candidates, labels, choice)
    rebuilt = next((it for it in candidates if _rebuilds(graph, it)), None)
    if rebuilt is not None:
        return Task("anomaly", rebuilt.name, _elements(rebuilt), 0, None, choice)
    scores = next((it for it in candidates if _elements(it) > 1 and _is_vector(it)), candidates[0])
    classes = _elements(scores) if _is_vector(scores) and _elements(scores) > 1 else 0
    return Task("agreement", scores.name, _elements(scores), classes, None, choice)


def _of_classes(graph: Graph, candidates: list[GraphIO], labels: Numbers, choice: TaskChoice) -> Task:
    if labels.min() < 0:
        raise UsageError(f"the labels have the class {labels.min()}: classes are counted from 0")
    most = int(labels.max())
    rebuilt = next((it for it in candidates if _rebuilds(graph, it)), None)
    if rebuilt is not None and most <= 1:
        return Task("anomaly", rebuilt.name, _elements(rebuilt), 0, labels, choice)
    vectors = [it for it in candidates if _is_vector(it)]
    scores = next((it for it in vectors if _elements(it) > 1), None)
    if scores is not None:
        classes = _elements(scores)
        if most >= classes:
            raise UsageError(
                f"the labels have the class {most}; output {printable(scores.name)!r} has "
                f"{classes:,} classes, from 0"
            )
        return Task("classes", scores.name, classes, classes, labels, choice)
    single = next((it for it in vectors if _elements(it) == 1), None)
    if single is None:
        shapes = ", ".join(str(list(it.shape)) for it in candidates)
        raise UsageError(
            f"class numbers as labels need an output with a score for each class, one score, or a class "
            f"number; the model's have {shapes}. Labels of values have the output's shape"
        )
    if single.dtype in ("int32", "int64"):
        return Task("class number", single.name, 1, most + 1, labels, choice)
    if most > 1:
        raise UsageError(
            f"output {printable(single.name)!r} has one score, for the classes 0 and 1; the labels have the "
            f"class {most}"
        )
    return Task("two classes", single.name, 1, 2, labels, choice)


def _of_values(candidates: list[GraphIO], labels: Array, choice: TaskChoice) -> Task:
    fitting = [it for it in candidates if _elements(it) * len(labels) == labels.size]
    if labels.dtype.kind not in "iuf" or not fitting:
        shapes = ", ".join(str(list(it.shape)) for it in candidates)
        raise UsageError(
            f"the labels hold {labels.dtype.name} of the shape {list(labels.shape)}: they are class numbers, "
            f"one for each sample, or values of an output; the model's have {shapes}"
        )
    values = labels.reshape(len(labels), -1).astype(np.float64)
    return Task("values", fitting[0].name, _elements(fitting[0]), 0, values, choice)


def _are_classes(labels: Array) -> bool:
    """Whether labels, one for each sample, are class numbers: integers, or floats of 0 and 1."""
    return labels.dtype.kind in "iub" or bool(labels.dtype.kind == "f" and np.isin(labels, (0, 1)).all())


def _is_one_hot(labels: Array) -> bool:
    return bool(
        labels.ndim == 2
        and labels.dtype.kind in "iufb"
        and labels.shape[1] > 1
        and np.isin(labels, (0.0, 1.0)).all()
        and (labels.sum(1) == 1).all()
    )


def _elements(io: GraphIO) -> int:
    return math.prod(io.shape)


def _is_vector(io: GraphIO) -> bool:
    return max(io.shape, default=1) == _elements(io)


def _rebuilds(graph: Graph, io: GraphIO) -> bool:
    """Whether an output has the shape of the only input."""
    inputs = graph.own_inputs()
    return len(inputs) == 1 and inputs[0].shape == io.shape and _elements(io) > 1


def real_values(graph: Graph, io: GraphIO, value: Array) -> Array:
    """The real numbers that an array of an input or output stands for, flattened."""
    quantization = graph.tensors[io.tensor].quantization
    flat = value.reshape(-1)
    if io.dtype.startswith("float") or quantization is None:
        return flat.astype(np.float64)
    codes = flat.astype(np.int64) - (UNSIGNED_OFFSET if io.dtype == "uint8" else 0)
    return dequantize(codes, quantization).astype(np.float64)
