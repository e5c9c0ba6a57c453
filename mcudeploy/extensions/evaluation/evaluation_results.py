"""The results of a model over a test set, and of a whole evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.evaluation.dataset import Dataset
from mcudeploy.extensions.evaluation.metrics import AgreementFigures, Quality, agreement
from mcudeploy.extensions.evaluation.output_task import Task, real_values
from mcudeploy.ir.graph import Graph, GraphIO

if TYPE_CHECKING:
    from mcudeploy.execution.results import VerifiedRun
    from mcudeploy.extensions.quantization.agreement import Layer
    from mcudeploy.verify.data_faults import InputFacts

Array = NDArray[Any]

Origin = Literal["device", "reference", "float"]
"""Where results come from: the program on devices, the reference of the same model, its float original."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelResults:
    """Results of one model over a test set."""

    origin: Origin
    values: Array
    """Real values of the task's output, [samples, elements]."""
    errors: Array
    """For an anomaly, the mean squared difference of each sample's output from its input; else 0."""
    quality: Quality


@dataclass(frozen=True, slots=True, eq=False)
class JudgedOutput:
    """The output that a task judges, in the graph of one of the models."""

    graph: Graph
    io: GraphIO

    @classmethod
    def of(cls, graph: Graph, task: Task) -> JudgedOutput | None:
        """The output with the task's name and size, or the only one of that size; None if there is none."""
        fitting = [it for it in graph.own_outputs() if math.prod(it.shape) == task.elements]
        named = [it for it in fitting if it.name == task.output]
        chosen = named or fitting
        return cls(graph, chosen[0]) if named or len(fitting) == 1 else None

    def results(
        self, origin: Origin, task: Task, data: Dataset, output: Callable[[int, Mapping[str, Array]], Array]
    ) -> ModelResults:
        """Return the results over a test set. `output` returns that of a sample, by number and inputs."""
        inputs = self.graph.own_inputs()
        rows, errors = [], []
        for number in range(data.count):
            sample = data.sample(number, self.graph)
            values = {it.name: sample.inputs[it.name] for it in inputs}
            rows.append(real_values(self.graph, self.io, output(number, values)))
            error = 0.0
            if task.kind == "anomaly":
                wanted = real_values(self.graph, inputs[0], values[inputs[0].name])
                error = float(((rows[-1] - wanted) ** 2).mean())
            errors.append(error)
        outputs, distances = np.array(rows), np.array(errors)
        return ModelResults(origin, outputs, distances, task.quality(outputs, distances))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The agreement of two sets of results."""

    first: Origin
    second: Origin
    figures: AgreementFigures


@dataclass(frozen=True, slots=True)
class WrongSample:
    """A sample with a wrong result on the device. Classes are None for values; `loss`: see `Task.losses`."""

    number: int
    name: str
    wanted: int | None
    computed: int | None
    loss: float


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The results of a whole evaluation."""

    run: VerifiedRun
    task: Task
    data: Dataset
    results: Sequence[ModelResults]
    """Of the device, of the reference, and of the float model if there is one."""
    compared: Sequence[Comparison]
    worst: Sequence[WrongSample]
    """The samples that the device gets wrong most."""
    layers: Sequence[Layer]
    """The layers that lose most, of a quantised model that is less accurate than its float model."""
    failures: Sequence[str]
    """Limits of the user that were missed."""
    devices: int
    inputs: Sequence[InputFacts]
    """The values of the inputs."""
    warnings: Sequence[str]
    """Faults of the data."""
    undecided: bool
    """Outputs do not change with inputs, and there is no limit."""

    @property
    def passed(self) -> bool | None:
        """Whether all limits were kept; None for outputs that never change, without a limit."""
        return None if self.undecided and not self.failures else not self.failures


def compare(results: Sequence[ModelResults], task: Task) -> list[Comparison]:
    """Compare each two sets of results, the later one first."""
    labels = task.labels if task.classes else None
    pairs = []
    for at, first in enumerate(results):
        for second in results[:at]:
            classes = [numbers for it in (first, second) if (numbers := task.class_of(it.values)) is not None]
            figures = agreement(first.values, second.values, classes, labels)
            pairs.append(Comparison(first.origin, second.origin, figures))
    return pairs


def worst_samples(task: Task, data: Dataset, device: ModelResults, most: int) -> list[WrongSample]:
    """Return up to `most` samples that are wrong, the worst first."""
    losses = task.losses(device.values, device.errors)
    if losses is None:
        return []
    computed = task.class_of(device.values)
    labels = task.labels if task.classes else None
    wrong: Array = losses > 0
    if computed is not None and labels is not None:
        wrong = np.not_equal(computed, labels)
    order = [int(at) for at in np.argsort(-losses, kind="stable") if wrong[at]][:most]
    return [
        WrongSample(
            at,
            data.name(at),
            None if labels is None else int(labels[at]),
            None if computed is None or labels is None else int(computed[at]),
            float(losses[at]),
        )
        for at in order
    ]
