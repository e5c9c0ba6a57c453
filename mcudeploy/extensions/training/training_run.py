"""Training steps on a device, with data: inputs, targets, losses, and the trained model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.commands import commands as api
from mcudeploy.commands.commands import verdict_on_host
from mcudeploy.common.errors import DivergedError, UsageError
from mcudeploy.common.files import require_room, write_file
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import count_text
from mcudeploy.device.target import Device, Target, open_device
from mcudeploy.execution.parts import RunRequest
from mcudeploy.execution.results import VerifiedRun
from mcudeploy.execution.running import run_further
from mcudeploy.extensions.evaluation.dataset import ArrayData, DataRequest, Dataset, dataset_of, open_dataset
from mcudeploy.extensions.quantization.data import class_numbers
from mcudeploy.extensions.training.lora import merged
from mcudeploy.extensions.training.recipe import Recipe
from mcudeploy.extensions.training.step import TrainingStep, trained_model
from mcudeploy.extensions.training.train import training_report, with_initial_values
from mcudeploy.extensions.training.training_steps import smallest_step, written_step
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.host_io import from_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from mcudeploy.verify.samples import NamedArray, Sample, load_samples
from mcudeploy.verify.verdict import without_states

Array = NDArray[Any]

PART_BYTES = 2**28
"""Limit of this computer's memory for the parameters and inputs of training steps that run in one part."""
_COPIES_OF_PARAMETERS = 8
"""Copies on the device, on the host and in the reference, before and after a step, and the initial values."""
_COPIES_OF_INPUTS = 4
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """The user's choices: the training step, the data, the number of steps, and a file for the trained model.

    Without `steps` there is one step for each sample.
    """

    recipe: Recipe
    data: DataRequest | ArrayData
    steps: int | None = None
    saved: Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TrainedRun:
    """Training steps that ran on a device: `result` of all steps; `losses`: of each step, before its update.

    `parameters`: after the last step, by name, as ONNX stores them; `model`: the .onnx file with these.
    `saved`: the path of the written file.
    """

    result: VerifiedRun
    losses: Sequence[float]
    parameters: Mapping[str, Array]
    model: bytes
    training: Mapping[str, Any]
    saved: Path | None = None

    @property
    def report(self) -> dict[str, Any]:
        """The object of `run`, and `training`."""
        report = with_initial_values(as_json(self.result), self.result.measured.device_run.deployment)
        saved = None if self.saved is None else str(self.saved)
        return {**report, "training": {**self.training, "losses": self.losses, "saved_model": saved}}


def run_training(
    path: Path,
    target: Target,
    options: Options,
    request: TrainingRequest,
    progress: Progress = SILENT,
) -> TrainedRun:
    """Train on a device, one sample a step, and verify every step.

    Many steps run in parts, and each part continues from the parameters on the device. This computer's memory
    keeps only outputs, losses and the last parameters. The trained model is saved only if every step is
    verified. Before the search, raises UsageError for data that do not fit the model, and OSError if the file
    of the trained model cannot be written. Raises DivergedError after the first part in which a loss or a
    parameter is not finite.
    """
    with written_step(path, options, request.recipe) as whole:  # errors come before the search
        data, targets = _open_data(request, whole.graph)
        if request.saved is not None:
            require_room(request.saved, len(trained_model(whole.graph, {}).SerializeToString()))
    steps = request.steps or data.count
    with smallest_step(path, target.board, options, request.recipe, progress) as written:
        graph = written.graph
        part = min(steps, _steps_at_once(graph, written.step))

        def inputs_of(first: int) -> list[NamedArray]:
            return _step_inputs(data, graph, targets, range(first, min(first + part, steps)))

        result = api.run_model(written.path, target, written.options, RunRequest(inputs_of(0)), progress)
        _require_finite(result, written.step, request.recipe, steps)
        if part < steps:
            device_run = result.measured.device_run
            progress.stage(f"running on {target.title} and checking, {part} training steps at a time")
            with open_device(target, device_run.firmware, device_run.deployment.patience_s) as device:
                for first in range(part, steps, part):
                    progress.advance(first, steps)
                    samples = load_samples(
                        device_run.deployment.model.graph, inputs_of(first), [], options.seed
                    )
                    result = continue_run(result, target, device, samples)
                    _require_finite(result, written.step, request.recipe, steps)
        parameters = final_parameters(result, written.step)
        update = request.recipe.update
        values = merged(graph, update.count, parameters) if update.kind == "lora" else parameters
        model = trained_model(graph, values).SerializeToString()
        saved = None if result.verdict.reasons else request.saved
        if saved is not None:
            write_file(saved, model)
        losses = [float(each[written.step.loss].item()) for each in api.model_outputs(result)]
        training = training_report(written, request.recipe)
        return TrainedRun(result, losses, parameters, model, training, saved)


def _steps_at_once(graph: Graph, step: TrainingStep) -> int:
    """The number of training steps of one part, at least one."""
    parameters = sum(origin.elements for origin in step.origins.values()) * (2 if step.sums else 1)
    values = sum(graph.tensors[io.tensor].elements for io in (*graph.inputs, *graph.outputs))
    return max(
        1, PART_BYTES // (_FLOAT_BYTES * (_COPIES_OF_PARAMETERS * parameters + _COPIES_OF_INPUTS * values))
    )


def _open_data(request: TrainingRequest, graph: Graph) -> tuple[Dataset, Array | None]:
    """Open the data of a model, and return it with the target of each sample.

    Raises UsageError for the first sample or target that does not fit.
    """
    if isinstance(request.data, ArrayData):
        data, source = dataset_of(request.data, graph), "the data"
    else:
        data = open_dataset(request.data, graph)
        source = str(request.data.labels or request.data.path)
    targets = _targets(data, source, graph, request.recipe)
    for number in range(min(request.steps or data.count, data.count)):
        data.sample(number, graph)
    return data, targets


def _require_finite(result: VerifiedRun, step: TrainingStep, recipe: Recipe, steps: int) -> None:
    """Raise DivergedError for the first training step whose loss or parameters are not finite.

    `steps`: the number of all training steps.
    """
    tensors = {io.name: io.tensor for io in result.measured.device_run.deployment.plan.graph.outputs}
    named = {step.loss: "the loss"} | {after: before for before, after in step.parameters.items()}
    for number, stored in enumerate(result.measured.device_run.observed.outputs, 1):
        for name, text in named.items():
            values = stored.get(tensors[name])  # None for parameters of earlier parts
            if values is not None and not np.isfinite(values).all():
                value = f"{values[~np.isfinite(values)][0]:g}"
                raise DivergedError(
                    f"training step {number} of {steps}: {text} has the value {value}: the training "
                    f"diverged. Lower --rate ({recipe.rate:g}), or scale the inputs and the targets"
                )


def final_parameters(result: VerifiedRun, step: TrainingStep) -> dict[str, Array]:
    """Return the parameters that the device has after the last step, by name, as ONNX stores them."""
    graph = result.measured.device_run.deployment.plan.graph
    last = result.measured.device_run.observed.outputs[-1]
    values = {it.name: from_device(it, graph.tensors[it.tensor], last[it.tensor]) for it in graph.outputs}
    return {name: values[after] for name, after in step.parameters.items()}


def _step_inputs(data: Dataset, graph: Graph, targets: Array | None, steps: range) -> list[NamedArray]:
    """The inputs and targets of these training steps; after the last sample the data repeat.

    Without `targets` the target of a sample is its input.
    """
    numbers = [step % data.count for step in steps]
    samples = {number: data.sample(number, graph).inputs for number in sorted(set(numbers))}
    inputs = [
        NamedArray(io.name, np.stack([samples[number][io.name] for number in numbers]))
        for io in graph.own_inputs()
    ]
    if targets is None:
        return [*inputs, NamedArray("the target", inputs[0].values)]
    return [*inputs, NamedArray("the target", targets[numbers])]


def _targets(data: Dataset, source: str, graph: Graph, recipe: Recipe) -> Array | None:
    """The target of each sample, from the labels of `source`; None if each input is its own target.

    Raises UsageError if there are no labels, or they do not fit the output.
    """
    (output,) = graph.own_outputs()
    if recipe.loss == "cross-entropy":
        if data.labels is None:
            raise UsageError("--loss cross-entropy needs labels: give --labels, or data that have them")
        classes = graph.tensors[output.tensor].elements
        numbers = class_numbers(data.labels, data.count, source)
        if numbers.max() >= classes:
            at = int(numbers.argmax())
            raise UsageError(
                f"{data.name(at)} has the label {numbers[at]}; the output has "
                f"{count_text(classes, 'value')}, for classes 0 to {classes - 1}"
            )
        return np.eye(classes, dtype=np.float32)[numbers].reshape(-1, *output.shape)
    if data.labels is None:
        shapes = [io.shape for io in graph.own_inputs()]
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


def continue_run(result: VerifiedRun, target: Target, device: Device, samples: list[Sample]) -> VerifiedRun:
    """Run further samples on a device that runs the firmware of `result`, and verify them.

    Host and device each continue from their own states after the last sample. The result has the outputs of
    all samples, and only the states after the last one. Raises DeployError as `observe` does.
    """
    device_run, verdict = result.measured.device_run, result.verdict
    graph, earlier = device_run.deployment.plan.graph, device_run.observed.outputs
    states = {it.tensor: earlier[-1][it.after.tensor] for it in graph.states}
    outputs = run_further(device, target, device_run, samples, states)
    later = verdict_on_host(device_run.deployment, samples, SILENT, after=verdict).with_device(outputs)
    observed = replace(device_run.observed, outputs=[*map(dict, without_states(graph, earlier)), *outputs])
    measured = replace(result.measured, device_run=replace(device_run, observed=observed))
    return replace(result, measured=measured, verdict=verdict.joined(later))
