"""The flow of `train check` and `train build`: the training step of a model, on boards and as a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from mcudeploy.boards.board import Board
from mcudeploy.codegen.ctext import comment_text
from mcudeploy.codegen.header import IoText, entries_of
from mcudeploy.codegen.texts import TrainingText
from mcudeploy.commands.build import build_models
from mcudeploy.commands.checking import fit_model
from mcudeploy.commands.tune import tune_model
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import BuildRequest, LibraryPart
from mcudeploy.execution.results import BuiltModel
from mcudeploy.extensions.training.forward import convolutions, parameter_name
from mcudeploy.extensions.training.named_layers import labels_of
from mcudeploy.extensions.training.recipe import Recipe, Update
from mcudeploy.extensions.training.step import TrainingStep
from mcudeploy.extensions.training.training_steps import WrittenStep, smallest_step, written_step
from mcudeploy.extensions.training.updates import OPTIMIZER, sum_name
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.graph import GraphIO
from mcudeploy.ir.plan import Entry, Transfer, Wait
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.report import as_json

COMPARED = ("full", "bias", "last:2", "last:1")
"""The updates that `train check` compares."""


@dataclass(frozen=True, slots=True)
class StepNames(LibraryPart):
    """Names in a training step that its library explains: the input `target`, the output `loss`, the state
    `optimizer`.

    `nodes`: the nodes of the user's model that form the layer of a parameter, by the name of the parameter
    or of the sum of its gradients. `has_classes`: the target has a probability for each class.
    """

    target: str
    loss: str
    optimizer: str
    has_classes: bool
    nodes: Mapping[str, tuple[str, ...]]

    samples: ClassVar[int | None] = 2
    """The second sample begins with changed parameters; more samples could diverge."""

    def completed(self, built: BuiltModel, request: BuildRequest, progress: Progress) -> BuiltModel:
        """Return the built model with the texts of a training step."""
        program, graph = built.program, built.deployment.plan.graph
        inputs = _texts_of(graph.own_inputs(), program.inputs)
        outputs = _texts_of(graph.own_outputs(), program.outputs)
        states = _texts_of([it.before for it in graph.states], [it.io for it in program.states])
        loss, optimizer = outputs.pop(self.loss), states.pop(self.optimizer)
        (prediction,) = outputs.values()
        layers = {text: ", ".join(map(comment_text, self.nodes[name])) for name, text in states.items()}
        target = inputs[self.target]
        text = TrainingText(target, loss, prediction, optimizer, self.has_classes, layers)
        return replace(built, program=replace(program, training=text))


def _texts_of(ios: Sequence[GraphIO], texts: Sequence[IoText]) -> dict[str, str]:
    """Return the name in C of each input, output or state, by its name in the model."""
    return {io.name: text.name for io, text in zip(ios, texts, strict=True)}


def check_training(
    path: Path, boards: Sequence[Board], options: Options, recipe: Recipe, progress: Progress = SILENT
) -> dict[str, Any]:
    """Return the bytes of trained parameters and the boards that fit, for each update in `COMPARED` and for
    the update of the recipe.
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
            fitting = [board["board"] for board in fits["boards"] if board["fits"]]
            rows.append({"update": text, **_parameters(written.step), "fits_on": fitting, **fits})
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
        built = build_models(
            BuildRequest(
                [written.path],
                board,
                written.options,
                directory,
                force=force,
                library_only=True,
                parts=[_step_names(written, recipe)],
            ),
            progress,
        )
        training = training_report(written, recipe)
        training["inference_steps"] = inference_steps(built.models[0].deployment.view)
        report = with_initial_values(as_json(built), built.models[0].deployment)
        return {**report, "training": training}


def tune_training(
    path: Path, target: Target, options: Options, recipe: Recipe, progress: Progress = SILENT
) -> dict[str, Any]:
    """Tune the training step of a model on a device. Returns the object of `tune`, and `training`.

    If blocks leave the fast memory, measured times and waits of whole steps improve the plan. Raises what
    `tune_model` raises.
    """
    with smallest_step(path, target.board, options, recipe, progress) as written:
        tuned = tune_model(written.path, [target], replace(written.options, resume=True), progress)
        report = with_initial_values(as_json(tuned), tuned.deployment)
        return {**report, "training": training_report(written, recipe)}


def _step_names(written: WrittenStep, recipe: Recipe) -> StepNames:
    """The names that the library of a training step explains."""
    nodes = {
        parameter_name(operator, kind): labels_of(operator)
        for operator in convolutions(written.adapted)
        for kind in ("weights", "bias")
    }
    nodes |= {sum_name(name, recipe): layer for name, layer in nodes.items()}
    return StepNames(written.step.target, written.step.loss, OPTIMIZER, recipe.loss == "cross-entropy", nodes)


def inference_steps(view: PlanView) -> int | None:
    """Return the number of leading steps of the C library that compute the model's output and no update.

    None if an update comes before the last block of the output, if a transfer moves the output, if an engine
    still transfers a block after these steps, or if several cores run the plan.
    """
    plan, graph, roots = view.plan, view.plan.graph, view.tiled.flow.roots
    output = roots[graph.own_outputs()[0].tensor]
    tensors = [graph.operators[step.operator].output for step in plan.schedule.steps]
    last = max(at for at, name in enumerate(tensors) if roots[name] == output)
    updated = {state.after.tensor for state in graph.states}
    moved = {roots[transfer.tensor] for transfer in plan.layout.transfers}
    if plan.lanes or output in moved or not updated.isdisjoint(tensors[: last + 1]):
        return None
    end = entries_of(view)[last + 1]
    return None if _leave_transfer(view.entries[:end]) else end


def _leave_transfer(entries: Sequence[Entry]) -> bool:
    """Return whether these entries begin a transfer of an engine, and do not wait for its end."""
    begun: dict[str, int] = {}
    numbers = count()
    for entry in entries:
        if isinstance(entry, Transfer):
            number = next(numbers)
            if entry.engine != CPU:
                begun[entry.engine] = number
        elif isinstance(entry, Wait) and entry.transfer >= begun.get(entry.engine, -1):
            begun.pop(entry.engine, None)
    return bool(begun)


def _parameters(step: TrainingStep) -> dict[str, int]:
    count = sum(origin.elements for origin in step.origins.values())
    return {"parameters": count, "parameter_bytes": 4 * count}


def with_initial_values(report: Mapping[str, Any], deployment: Deployment) -> dict[str, Any]:
    """Return the report with the parameters' initial values moved from `tables_bytes` to
    `initial_parameters_bytes`, which is null for firmware whose constants count as code.
    """
    initial, tables = deployment.program.initial_bytes, report["tables_bytes"]
    if tables < initial:
        return {**report, "initial_parameters_bytes": None}
    return {**report, "tables_bytes": tables - initial, "initial_parameters_bytes": initial}


def training_report(written: WrittenStep, recipe: Recipe) -> dict[str, Any]:
    """Return the recipe and the parameters of a training step."""
    step = written.step
    return {
        "loss": recipe.loss,
        "update": str(recipe.update),
        "rate": recipe.rate,
        "weight_decay": recipe.weight_decay,
        "momentum": recipe.momentum,
        "batch": recipe.batch,
        "clip_norm": recipe.clip_norm,
        "recomputed_percent": round(written.recomputed_percent, 1),
        **_parameters(step),
        "trained": list(step.parameters),
        "onnx_nodes": {name: list(step.origins[name].onnx_nodes) for name in step.parameters},
    }
