"""`mcudeploy.train` and `build_training`: training steps on a device, from Python, with typed results."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mcudeploy.commands.keywords import Choices, Named, board_of, checked, options_of, with_keywords
from mcudeploy.commands.loaded import LoadedModel
from mcudeploy.commands.python import BuildResult, Report
from mcudeploy.common.errors import OutputsDifferError, UsageError
from mcudeploy.common.files import write_file
from mcudeploy.device.target import Target
from mcudeploy.extensions.training.recipe import (
    LARGEST_FACTOR,
    MOST_SAMPLES,
    MOST_STEPS,
    Loss,
    Recipe,
    Update,
)
from mcudeploy.planner.plan_options import Options


class RecipeChoices(TypedDict, total=False):
    """The choices of a training step, as `Recipe` describes them; `update` as text."""

    loss: Loss
    update: str
    rate: Annotated[float, Field(gt=0, le=LARGEST_FACTOR)]
    weight_decay: Annotated[float, Field(ge=0, le=LARGEST_FACTOR)]
    momentum: Annotated[float, Field(ge=0, lt=1)]
    batch: Annotated[int, Field(ge=1, le=MOST_SAMPLES)]
    clip_norm: Annotated[float, Field(gt=0)] | None


class TrainingChoices(RecipeChoices, Choices, total=False):
    """The choices of a training step, and of the search for its plan."""


def training_of(choices: TrainingChoices, own: Collection[str]) -> tuple[Recipe, Options]:
    """The training step, and the options of a search for its plan. Raises as `options_of`."""
    recipe = {name: choices[name] for name in RecipeChoices.__annotations__ if name in choices}  # type: ignore[literal-required]
    kinds = get_type_hints(RecipeChoices, include_extras=True)
    values = {name: checked(name, value, kinds[name]) for name, value in recipe.items()}
    if "update" in values:
        values["update"] = _update(values["update"])
    rest: Any = {name: value for name, value in choices.items() if name not in recipe}
    return Recipe(**values), options_of(rest, (*own, *RecipeChoices.__annotations__))


def _update(text: str) -> Update:
    try:
        return Update.parse(text)
    except UsageError as error:
        raise UsageError(f"update={text!r}: {str(error).removeprefix(f'--update {text!r} ')}") from None


with_training_keywords = functools.partial(
    with_keywords,
    kind=TrainingChoices,
    known={it.name: getattr(Recipe(), it.name) for it in fields(Recipe)} | {"update": str(Recipe().update)},
)
"""`with_keywords` of functions that take `TrainingChoices`."""


Array = NDArray[Any]
Data = str | Path | Array | Mapping[str, Array]
"""Samples: a file or folder, an array, or one for each input by name. The first axis counts samples."""
Labels = str | Path | Array | Sequence[Any] | None
"""The label of each sample: a file or an array."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TrainResult:
    """A training on a device. `losses`: of each training step, before its update; `parameters`: on the device
    at the end, by name, as ONNX stores them; `model`: the .onnx file with these.

    `milliseconds` of one training step, by the source that `report["latency"]["milliseconds_by"]` names.
    """

    verified: bool
    losses: tuple[float, ...]
    parameters: Mapping[str, Array]
    model: bytes
    milliseconds: float
    arena_bytes: int
    flash_bytes: int
    ram_bytes: int
    report: Report

    def __repr__(self) -> str:
        """One line."""
        verdict = "verified" if self.verified else "NOT verified"
        losses = f"{len(self.losses):,} steps, loss {self.losses[0]:.3g} to {self.losses[-1]:.3g}"
        return f"<training on {self.report['board']}: {verdict}, {losses}, {self.ram_bytes:,} B of RAM>"

    def save(self, path: str | Path) -> None:
        """Write the trained model, as .onnx. Raises OutputsDifferError if a step is not verified."""
        if not self.verified:
            raise OutputsDifferError(
                f"the training is not verified, nothing is written: {self.report['reason']}"
            )
        write_file(Path(path), self.model)


@with_training_keywords
def train(
    model: str | Path,
    board: Named = "host",
    *,
    data: Data,
    labels: Labels = None,
    steps: int | None = None,
    emulate: bool = False,
    port: str | None = None,
    **choices: Unpack[TrainingChoices],
) -> TrainResult:
    """Train a float32 model on the board, its emulator, or this computer, one sample a step, and verify every
    step.

    `data`: files as `--data` takes them, or an array whose first axis counts samples; for several inputs a
    dict with one for each. `labels`: class numbers, or with `loss="mse"` the values of the output. `update`:
    "full", "bias", "last:K", "lora:R" or "sparse:FILE". `batch`: training steps of an update; `clip_norm`:
    limit of the norm of its gradient. `steps`: one for each sample if None. Raises DivergedError if a loss
    or a parameter is not finite.
    """
    from mcudeploy.extensions.evaluation.dataset import ArrayData, DataRequest
    from mcudeploy.extensions.training.training_run import TrainingRequest, run_training

    recipe, options = training_of(choices, ("data", "labels", "steps", "emulate", "port"))
    count = checked("steps", steps, Annotated[int, Field(gt=0, le=MOST_STEPS)] | None)
    source: DataRequest | ArrayData
    if isinstance(data, str | Path):
        if labels is not None and not isinstance(labels, str | Path):
            raise UsageError("labels is an array, and data a path: give the labels as a file too")
        source = DataRequest(Path(data), None if labels is None else Path(labels))
    else:
        if isinstance(labels, str | Path):
            raise UsageError("labels is a path, and data an array: give the labels as an array too")
        source = ArrayData(_arrays(data), None if labels is None else np.asarray(labels))
    target = Target(board_of(board), port, emulate)
    request = TrainingRequest(recipe, source, count)
    trained = run_training(Path(model), target, options, request)
    report = trained.report
    return TrainResult(
        verified=report["verified"],
        losses=tuple(trained.losses),
        parameters=trained.parameters,
        model=trained.model,
        milliseconds=report["latency"]["milliseconds"],
        arena_bytes=report["arena_bytes"],
        flash_bytes=report["flash_bytes"],
        ram_bytes=report["total_ram_bytes"],
        report=report,
    )


@with_training_keywords
def build_training(
    model: str | Path,
    board: Named,
    folder: str | Path,
    *,
    force: bool = False,
    **choices: Unpack[TrainingChoices],
) -> BuildResult:
    """Write a C library whose call is a training step of a model. Raises OutputsDifferError if the program is
    wrong.
    """
    from mcudeploy.extensions.training import train as building

    recipe, options = training_of(choices, ("force",))
    report = building.build_training(Path(model), board_of(board), options, Path(folder), recipe, force=force)
    return BuildResult(tuple(map(Path, report["files"])), report["verified"], report)


@with_training_keywords
def train_loaded(
    model: LoadedModel,
    data: Data,
    labels: Labels = None,
    *,
    board: Named = "host",
    steps: int | None = None,
    device: str | None = None,
    **choices: Unpack[TrainingChoices],
) -> TrainResult:
    """Train the model in the board's emulator, or on the board at the port `device`, and verify every step:
    see `mcudeploy.train`.
    """
    merged: TrainingChoices = {**model.choices, **choices}
    return train(
        model.path,
        board,
        data=data,
        labels=labels,
        steps=steps,
        emulate=device is None,
        port=device,
        **merged,
    )


@with_training_keywords
def build_loaded_training(
    model: LoadedModel,
    board: Named,
    folder: str | Path,
    *,
    force: bool = False,
    **choices: Unpack[TrainingChoices],
) -> BuildResult:
    """Write a C library whose call is a training step of the model."""
    merged: TrainingChoices = {**model.choices, **choices}
    return build_training(model.path, board, folder, force=force, **merged)


METHODS = {"train": train_loaded, "build_training": build_loaded_training}


def _arrays(data: Array | Mapping[str, Array]) -> Array | Mapping[str, Array]:
    if isinstance(data, Mapping):
        return {name: np.asarray(values) for name, values in data.items()}
    return np.asarray(data)
