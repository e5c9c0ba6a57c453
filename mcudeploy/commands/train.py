"""The flow of `train`: the training step of a model, as a library, on a board, and with data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.boards.board import Board
from mcudeploy.codegen.header import entries_of
from mcudeploy.codegen.training_text import StepNames
from mcudeploy.commands import commands as api
from mcudeploy.commands.build import build_models
from mcudeploy.commands.checking import fit_model
from mcudeploy.commands.training_steps import WrittenStep, smallest_step, written_step
from mcudeploy.common.errors import DivergedError, UsageError
from mcudeploy.common.files import write_file
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import count_text
from mcudeploy.device.target import Target
from mcudeploy.evaluation.dataset import DataRequest, Dataset, open_dataset
from mcudeploy.execution.results import VerifiedRun
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import Plan
from mcudeploy.ops.host_io import from_device
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.quantization.data import class_numbers
from mcudeploy.report import as_json
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.training.forward import convolutions, parameter_name
from mcudeploy.training.recipe import Recipe, Update
from mcudeploy.training.step import TrainingStep, trained_model
from mcudeploy.training.updates import momentum_name
from mcudeploy.verify.samples import NamedArray

Array = NDArray[Any]

COMPARED = ("full", "bias", "last:2", "last:1")
"""The updates that `train check` compares."""


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """The user's choices: the training step, the data, the number of steps, and a file for the trained model.

    Without `steps` every sample is one.
    """

    recipe: Recipe
    data: DataRequest
    steps: int | None = None
    saved: Path | None = None


def check_training(
    path: Path, boards: Sequence[Board], options: Options, recipe: Recipe, progress: Progress = SILENT
) -> dict[str, Any]:
    """Return the bytes of trained parameters and the fit on boards, of every update in `COMPARED` and that of
    the recipe.
    """
    updates = {str(recipe.update): recipe.update}
    layers = len(convolutions(read_model(path, options).graph))
    for text in COMPARED:
        update = Update.parse(text)
        if update.count <= layers:
            updates.setdefault(text, update)
    rows = []
    for text, update in updates.items():
        progress.stage(f"update {text}")
        with written_step(path, options, replace(recipe, update=update)) as written:
            fits = as_json(fit_model(written.path, boards, written.options, progress))
            rows.append({"update": text, **_parameters(written.step), **fits})
    rows.sort(key=lambda it: (-int(it["parameter_bytes"]), it["update"]))
    return {"loss": recipe.loss, "updates": rows}


def build_training(
    path: Path,
    board: Board,
    options: Options,
    directory: Path,
    recipe: Recipe,
    *,
    force: bool = False,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Write the C library of a training step. Returns the object of `build`, and `training`.

    Raises what `build_models` raises.
    """
    with smallest_step(path, board, options, recipe, progress) as written:
        options = written.options
        built = build_models(
            [written.path],
            board,
            options,
            directory,
            force=force,
            library_only=True,
            step_names=_step_names(written, recipe),
            progress=progress,
        )
        training = _training(written, recipe)
        training["inference_steps"] = inference_steps(built.models[0].made.plan)
        return {**as_json(built), "training": training}


def _step_names(written: WrittenStep, recipe: Recipe) -> StepNames:
    """The names that the library explains; a layer without a node in the file has the operator's name."""
    nodes = {
        parameter_name(operator, kind): operator.onnx_nodes or (operator.name,)
        for operator in convolutions(written.graph)
        for kind in ("weights", "bias")
    }
    nodes |= {momentum_name(name): layer for name, layer in nodes.items()}
    return StepNames(written.step.target, written.step.loss, recipe.loss == "cross-entropy", nodes)


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
        training = _training(written, request.recipe)
        training |= {"losses": losses, "saved_model": None if saved is None else str(saved)}
        return {**report, "training": training}


def inference_steps(plan: Plan) -> int | None:
    """Return the number of first steps of the C library that compute the output of the model and change no
    parameter.

    None if an update comes before the last block of the output, if the output is moved to another memory, or
    if several cores run the plan.
    """
    graph, roots = plan.graph, TiledGraph.of(plan).flow.roots
    output = roots[graph.own_outputs()[0].tensor]
    tensors = [graph.operators[step.operator].output for step in plan.schedule.steps]
    last = max(at for at, name in enumerate(tensors) if roots[name] == output)
    updated = {state.after.tensor for state in graph.states}
    moved = {roots[transfer.tensor] for transfer in plan.layout.transfers}
    if plan.lanes or output in moved or not updated.isdisjoint(tensors[: last + 1]):
        return None
    return entries_of(plan)[last + 1]


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


def _parameters(step: TrainingStep) -> dict[str, int]:
    count = sum(origin.elements for origin in step.origins.values())
    return {"parameters": count, "parameter_bytes": 4 * count}


def _training(written: WrittenStep, recipe: Recipe) -> dict[str, Any]:
    step = written.step
    return {
        "loss": recipe.loss,
        "update": str(recipe.update),
        "rate": recipe.rate,
        "weight_decay": recipe.weight_decay,
        "momentum": recipe.momentum,
        "recomputed_percent": round(written.recomputed_percent, 1),
        **_parameters(step),
        "trained": list(step.parameters),
        "onnx_nodes": {name: list(step.origins[name].onnx_nodes) for name in step.parameters},
    }
