"""`train`: training steps of float32 and int8 models on the device."""

from __future__ import annotations

import functools
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from rich.console import Console
from rich.text import Text

from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.devices import board_option, device_options
from mcudeploy.cli.fit_command import compared_boards_option, named_boards
from mcudeploy.cli.help import LongCommand
from mcudeploy.cli.latencies import milliseconds_text
from mcudeploy.cli.options import (
    Command,
    files_option,
    library_options,
    model_argument,
    output_options,
    packed_as,
    planning_options,
)
from mcudeploy.cli.output import Output, Values, cell
from mcudeploy.cli.parameter_types import Finite, InputData, InputFile, NewFile, ParsedText
from mcudeploy.cli.sample_options import reading_options
from mcudeploy.cli.table_grids import facts, table_of
from mcudeploy.common.errors import FitError, OutputsDifferError, UsageError
from mcudeploy.common.text import count_text, plain
from mcudeploy.extensions.training.recipe import (
    LARGEST_FACTOR,
    LOSSES,
    MOST_SAMPLES,
    MOST_STEPS,
    Recipe,
    Update,
)
from mcudeploy.planner.plan_options import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcudeploy.boards.board import Board
    from mcudeploy.device.target import Target
    from mcudeploy.extensions.training.training_run import TrainingRequest


_PARTS = 10
"""A run is divided into this number of equal parts; the mean losses of the first and the last are shown."""


def _parse_update(text: str) -> Update:
    try:
        return Update.parse(text)
    except UsageError as error:
        raise ValueError(str(error).removeprefix("--update ")) from error


_RECIPE_OPTIONS = (
    click.option(
        "--loss",
        type=click.Choice(LOSSES),
        default="cross-entropy",
        show_default=True,
        help="cross-entropy: of a softmax over the classes; mse: the mean of the squared errors.",
    ),
    click.option(
        "--update",
        metavar="full|bias|last:K|lora:R|sparse:FILE",
        type=ParsedText(_parse_update),
        default="last:1",
        show_default=True,
        help="The parameters that are trained: all; all biases and the weights of the last layer; those of "
        "the last K layers; factors of rank R beside all weights; or those that a TOML or JSON file names by "
        "layer, as in weights = ['conv_3'] and biases = 'all'.",
    ),
    click.option(
        "--rate",
        metavar="RATE",
        type=Finite(0, LARGEST_FACTOR, min_open=True),
        default=0.01,
        show_default=True,
        help="Learning rate of stochastic gradient descent. The device may change it.",
    ),
    click.option(
        "--weight-decay",
        metavar="DECAY",
        type=Finite(0, LARGEST_FACTOR),
        default=0.0,
        show_default=True,
        help="Share of each parameter that is added to its gradient.",
    ),
    click.option(
        "--momentum",
        metavar="FACTOR",
        type=Finite(0, 1, max_open=True),
        default=0.0,
        show_default=True,
        help="Share of the last step's direction in the next one's. Momenta need as much RAM as parameters.",
    ),
    click.option(
        "--batch",
        metavar="N",
        type=click.IntRange(1, MOST_SAMPLES),
        default=1,
        show_default=True,
        help="Training steps of an update, which takes their mean gradient. Above 1, sums of gradients "
        "need as much RAM as parameters, unless there are momenta.",
    ),
    click.option(
        "--clip-norm",
        metavar="NORM",
        type=Finite(0, 1e30, min_open=True),
        help="Scale the gradients of an update so that the norm of all together is at most this. Sums of "
        "gradients need as much RAM as parameters; not with --momentum.",
    ),
)


def recipe_options(command: Command) -> Command:
    """Add the options of a training step, packed as `recipe: Recipe`."""

    @functools.wraps(command)
    def packed(*args: Any, **rest: Any) -> None:
        recipe = Recipe(**{it.name: rest.pop(it.name) for it in fields(Recipe)})
        command(*args, recipe=recipe, **rest)

    decorated: Command = packed
    for option in reversed(_RECIPE_OPTIONS):
        decorated = option(decorated)
    return decorated


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def train() -> None:
    """Train float32 and int8 models on the device, one sample a step."""


@train.command("check")
@model_argument
@recipe_options
@compared_boards_option
@planning_options("optimize", "max_overhead", "shapes", "constants")
@output_options
@click.pass_context
def check(
    context: click.Context,
    *,
    model: Path,
    recipe: Recipe,
    boards: str | None,
    options: Options,
    output: Output,
) -> None:
    """Compare updates: RAM and flash of a training step, and the boards with room for both."""
    from mcudeploy.extensions.training.train import check_training

    with output.progress() as progress:
        report = check_training(model, named_boards(boards, emulated=False), options, recipe, progress)
    output.result(report, _checked)
    if not any(board["fits"] for it in report["updates"] for board in it["boards"]):
        context.exit(FitError.exit_code)


def _checked(console: Console, report: Values) -> None:
    rows = table_of("update", "trained>", "board", "fits", "RAM>", "of>", "flash>", "of>", "step>")
    for update in report["updates"]:
        for board in update["boards"]:
            rows.add_row(
                cell(update["update"]),
                cell(f"{update['parameters']:,}"),
                cell(board["board"]),
                _fits(board),
                *map(
                    cell,
                    (
                        f"{board['ram_bytes']:,}",
                        f"{board['board_ram_bytes']:,}",
                        f"{board['flash_bytes']:,}",
                        f"{board['board_flash_bytes']:,}",
                        milliseconds_text(board["latency"]),
                    ),
                ),
            )
    console.print(rows)
    console.print(
        cell(
            "RAM: arena with the trained parameters, data and stack of the firmware. Flash: weights, tables "
            "and the initial parameters, without code. All tensors are kept: build and run may compute some "
            "again, in less RAM and more time."
        ),
        soft_wrap=True,
    )
    room = table_of("update", "trained>", "parameters>", "boards with room for RAM and flash")
    for update in report["updates"]:
        parameters = f"{update['parameter_bytes']:,} B"
        room.add_row(
            cell(update["update"]),
            cell(f"{update['parameters']:,}"),
            cell(parameters),
            cell(", ".join(update["fits_on"]) or "none", "green" if update["fits_on"] else "red"),
        )
    console.print(room)


def _fits(board: Values) -> Text:
    """Whether an update fits a board, and with which option."""
    if not board["fits"]:
        return cell(_shortage(board), "red")
    return cell(f"with {board['options']}" if board["options"] else "yes", "green")


def _shortage(board: Values) -> str:
    """The bytes that an update lacks on a board, by kind of memory."""
    flash = max(0, -board["flash_free_bytes"])
    short = {"RAM": board["excess_bytes"] - flash, "flash": flash}
    return ", ".join(f"{kind} {size:,} B short" for kind, size in short.items() if size)


@train.command("build", cls=LongCommand)
@model_argument
@board_option(required=True)
@recipe_options
@library_options("the C library")
@planning_options()
@output_options
def build(
    *,
    model: Path,
    board: Board,
    recipe: Recipe,
    directory: Path,
    force: bool,
    options: Options,
    output: Output,
) -> None:
    """Write a C library whose call is a training step of MODEL."""
    from mcudeploy.extensions.training.train import build_training

    with output.progress() as progress:
        report = build_training(model, board, options, directory, recipe, force=force, progress=progress)
    output.result(report, _built)


def _built(console: Console, report: Values) -> None:
    tables.build(console, report)
    _training(console, report)


@train.command("tune", cls=LongCommand)
@model_argument
@device_options
@recipe_options
@planning_options()
@output_options
def tune(*, model: Path, target: Target, recipe: Recipe, options: Options, output: Output) -> None:
    """Search for the training step's plan with the least RAM, timing it on the device."""
    from mcudeploy.extensions.training.train import tune_training

    with output.progress() as progress:
        report = tune_training(model, target, options, recipe, progress)
    output.result(report, _tuned)


def _tuned(console: Console, report: Values) -> None:
    tables.tune(console, report)
    _training(console, report)


@train.command("run", cls=LongCommand)
@model_argument
@device_options
@recipe_options
@click.option(
    "--data",
    metavar="FOLDER|FILE",
    type=InputData(),
    required=True,
    help="The training set: an .npz with one array per input, and labels as `y` or `labels`; one .npy; a "
    "folder of .npy files; a folder with a subfolder of pictures, sounds or .npy files for each class; or a "
    ".csv table, the label in the column `label` or in the last one. The first axis of arrays counts "
    "samples.",
)
@click.option(
    "--labels",
    metavar="FILE",
    type=InputFile(),
    help="Label of each sample, if the data have none: class numbers from 0, or for --loss mse the values of "
    "the output, as .npy; or text with one class per line. Without labels --loss mse takes the input.",
)
@click.option(
    "--steps",
    metavar="N",
    type=click.IntRange(1, MOST_STEPS),
    help="Number of training steps; after the last sample the data repeat.  [default: one for each sample]",
)
@click.option(
    "--save-model",
    "saved",
    metavar="FILE.onnx",
    type=NewFile(".onnx"),
    help="Write the model with the parameters that the device has after the last step, if all steps are "
    "verified.",
)
@reading_options
@planning_options()
@files_option
@output_options
@click.pass_context
@packed_as("data", "mcudeploy.extensions.evaluation.dataset:DataRequest", "labels", "reading", path="data")
@packed_as(
    "request",
    "mcudeploy.extensions.training.training_run:TrainingRequest",
    *("recipe", "data", "steps", "saved"),
)
def run(
    context: click.Context,
    *,
    model: Path,
    target: Target,
    request: TrainingRequest,
    options: Options,
    output: Output,
) -> None:
    """Train MODEL on a device and verify every step."""
    from mcudeploy.extensions.training.training_run import run_training

    with output.progress() as progress:
        report = run_training(model, target, options, request, progress).report
    output.result(report, _ran, tables.verdict)
    if not report["verified"]:
        context.exit(OutputsDifferError.exit_code)


def _ran(console: Console, report: Values) -> None:
    tables.run(console, report)
    _training(console, report)


def _losses(losses: Sequence[float]) -> str:
    """The first and the last loss; after many steps also means, since a single loss depends on its sample."""
    count = count_text(len(losses), "training step")
    text = f"{losses[0]:g} at first, {losses[-1]:g} at the last of {count}"
    steps = len(losses) // _PARTS
    if steps < 2:
        return text
    first, last = (sum(part) / steps for part in (losses[:steps], losses[-steps:]))
    return f"{text}; {first:.4g} is the mean of the first {steps:,}, {last:.4g} of the last"


def _training(console: Console, report: Values) -> None:
    training = report["training"]
    losses = training.get("losses", ())
    sizes = f"{training['parameters']:,} parameters, {training['parameter_bytes']:,} B"
    if training["momentum"]:
        sizes += f", and momenta of {training['parameter_bytes']:,} B"
    elif training["batch"] > 1 or training["clip_norm"]:
        sizes += f", and sums of gradients of {training['parameter_bytes']:,} B"
    rows = [("trained", f"{plain(training['update'])}: {sizes}")]
    if training["recomputed_percent"]:
        longer = f"{training['recomputed_percent']:.1f} %"
        rows.append(("recomputed", f"tensors of the forward part: unsplit, the step takes {longer} longer"))
    if losses:
        rows.append(("loss", _losses(losses)))
    if training.get("saved_model"):
        rows.append(("saved", training["saved_model"]))
    if training.get("inference_steps"):
        rows.append(
            (
                "inference",
                f"steps 0 to {training['inference_steps'] - 1} compute the output, without an update",
            )
        )
    facts(console, rows)
