"""Results of one model over a test set, and an evaluation as a whole."""

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

Which = Literal["device", "reference", "float"]
"""The program on devices, the reference of the same model, and the float model it was made of."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelResults:
    """Real values of the task's output [samples, elements], and the mean squared distance of each sample from
    its input if the output has its shape.
    """

    which: Which
    values: Array
    errors: Array
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
        self, which: Which, task: Task, data: Dataset, output: Callable[[int, Mapping[str, Array]], Array]
    ) -> ModelResults:
        """Return the results over a test set. `output`: that of a sample, by its number and its inputs."""
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
        return ModelResults(which, outputs, distances, task.quality(outputs, distances))


@dataclass(frozen=True, slots=True)
class Compared:
    """Agreement of two sets of results."""

    first: Which
    second: Which
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
class Evaluated:
    """An evaluation."""

    run: VerifiedRun
    task: Task
    data: Dataset
    results: Sequence[ModelResults]
    """Of the device, the reference, and the float model if there is one."""
    compared: Sequence[Compared]
    worst: Sequence[WrongSample]
    """The samples that the device gets wrong most."""
    layers: Sequence[Layer]
    """Of a quantised model that lost too much accuracy, the layers that lose most."""
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
        """Whether all limits were kept; None if nothing says whether outputs that never change are right."""
        return None if self.undecided and not self.failures else not self.failures


def compare(results: Sequence[ModelResults], task: Task) -> list[Compared]:
    """Compare every set of results with those before it, which are nearer to the device."""
    labels = task.labels if task.classes else None
    pairs = []
    for at, first in enumerate(results):
        for second in results[:at]:
            classes = [numbers for it in (first, second) if (numbers := task.class_of(it.values)) is not None]
            figures = agreement(first.values, second.values, classes, labels)
            pairs.append(Compared(first.which, second.which, figures))
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
