"""Training steps on a device, with data: inputs, targets, losses, and the trained model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.commands import commands as api
from mcudeploy.commands.train import training_report
from mcudeploy.commands.training_steps import smallest_step
from mcudeploy.common.errors import DivergedError, UsageError
from mcudeploy.common.files import write_file
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import count_text
from mcudeploy.device.target import Target
from mcudeploy.evaluation.dataset import DataRequest, Dataset, open_dataset
from mcudeploy.execution.results import VerifiedRun
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.host_io import from_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.quantization.data import class_numbers
from mcudeploy.report import as_json
from mcudeploy.training.recipe import Recipe
from mcudeploy.training.step import TrainingStep, trained_model
from mcudeploy.verify.samples import NamedArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """The user's choices: the training step, the data, the number of steps, and a file for the trained model.

    Without `steps` every sample is one.
    """

    recipe: Recipe
    data: DataRequest
    steps: int | None = None
    saved: Path | None = None


def run_training(
    path: Path,
    target: Target,
    options: Options,
    request: TrainingRequest,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Train on a device, one sample a step, and verify every step. Returns the object of `run`, and
    `training` with the losses.

    The trained model is saved only if every step is verified. Raises UsageError for data that do not fit
    the model, and DivergedError if a loss or a parameter is not finite.
    """
    with smallest_step(path, target.board, options, request.recipe, progress) as written:
        data = open_dataset(request.data, written.graph)
        inputs = training_inputs(data, written.graph, request.recipe, request.steps)
        result = api.run_model(
            written.path, target, written.options, inputs=inputs, expected=[], progress=progress
        )
        _require_finite(result, written.step, request.recipe)
        report = as_json(result)
        saved = request.saved if report["verified"] else None
        if saved is not None:
            trained = trained_model(written.graph, final_parameters(result, written.step))
            write_file(saved, trained.SerializeToString())
        losses = [float(each[written.step.loss].item()) for each in api.model_outputs(result)]
        training = training_report(written, request.recipe)
        training |= {"losses": losses, "saved_model": None if saved is None else str(saved)}
        return {**report, "training": training}


def _require_finite(result: VerifiedRun, step: TrainingStep, recipe: Recipe) -> None:
    """Raise DivergedError for the first training step whose loss or parameters are not finite."""
    tensors = {border.name: border.tensor for border in result.measured.ran.made.plan.graph.outputs}
    named = {step.loss: "the loss"} | {after: before for before, after in step.parameters.items()}
    runs = result.measured.ran.observed.outputs
    for number, stored in enumerate(runs, 1):
        for name, text in named.items():
            values = stored[tensors[name]]
            finite = np.isfinite(values)
            if not finite.all():
                value = f"{values[~finite][0]:g}"
                raise DivergedError(
                    f"training step {number} of {len(runs)}: {text} has the value {value}: the training "
                    f"diverged. Lower --rate ({recipe.rate:g}), or scale the inputs and the targets"
                )


def final_parameters(result: VerifiedRun, step: TrainingStep) -> dict[str, Array]:
    """Return the parameters that the device has after the last step, by name, as ONNX stores them."""
    graph = result.measured.ran.made.plan.graph
    last = result.measured.ran.observed.outputs[-1]
    values = {it.name: from_device(it, graph.tensors[it.tensor], last[it.tensor]) for it in graph.outputs}
    return {name: values[after] for name, after in step.parameters.items()}


def training_inputs(data: Dataset, graph: Graph, recipe: Recipe, steps: int | None) -> list[NamedArray]:
    """Return the inputs of each step, and its target; data with fewer samples than steps start again.

    Without labels the targets of a mean squared error are the inputs. Raises UsageError if there are no
    labels, or they do not fit the output.
    """
    targets = _targets(data, graph, recipe)
    numbers = [number % data.count for number in range(steps or data.count)]
    samples = {number: data.sample(number, graph).inputs for number in sorted(set(numbers))}
    inputs = [
        NamedArray(border.name, np.stack([samples[number][border.name] for number in numbers]))
        for border in graph.own_inputs()
    ]
    if targets is None:
        return [*inputs, NamedArray("the target", inputs[0].values)]
    return [*inputs, NamedArray("the target", targets[numbers])]


def _targets(data: Dataset, graph: Graph, recipe: Recipe) -> Array | None:
    """The target of each sample; None if they are the inputs."""
    (output,) = graph.own_outputs()
    if recipe.loss == "cross-entropy":
        if data.labels is None:
            raise UsageError("--loss cross-entropy needs labels: give --labels, or data that have them")
        classes = graph.tensors[output.tensor].elements
        numbers = class_numbers(data.labels, data.count, "--labels")
        if numbers.max() >= classes:
            at = int(numbers.argmax())
            raise UsageError(
                f"{data.name(at)} has the label {numbers[at]}; the output has "
                f"{count_text(classes, 'value')}, for classes 0 to {classes - 1}"
            )
        return np.eye(classes, dtype=np.float32)[numbers].reshape(-1, *output.shape)
    if data.labels is None:
        shapes = [border.shape for border in graph.own_inputs()]
        if shapes != [output.shape]:
            raise UsageError(
                f"--loss mse without labels compares the output {list(output.shape)} with the input, which "
                f"is {' and '.join(str(list(shape)) for shape in shapes)}: give --labels"
            )
        return None
    labels = np.asarray(data.labels)
    if labels.dtype.kind not in "fiu" or labels[0].size != graph.tensors[output.tensor].elements:
        raise UsageError(
            f"the labels are {labels.dtype} {list(labels.shape)}; --loss mse needs a value for each "
            f"element of the output, {list(output.shape)}"
        )
    with np.errstate(over="ignore"):
        values = labels.astype(np.float32).reshape(-1, *output.shape)
    wrong = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(1))
    if wrong.size:
        raise UsageError(f"{data.name(int(wrong[0]))} has labels that are not finite numbers of float32")
    return values
