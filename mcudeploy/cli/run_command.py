"""`measure` and `run`: a model on a device, timed operator by operator, and verified."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from click import get_current_context

from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.devices import device_options, optional_device_options
from mcudeploy.cli.help import LongCommand
from mcudeploy.cli.options import (
    added_options,
    files_option,
    model_argument,
    output_options,
    packed_as,
    planning_options,
    timing_option,
)
from mcudeploy.cli.output import Output, deprecated
from mcudeploy.cli.pages import Pages, page_options
from mcudeploy.cli.parameter_types import InputFile, NewFile
from mcudeploy.cli.sample_options import sample_options
from mcudeploy.common.errors import OutputsDifferError, UsageError

if TYPE_CHECKING:
    from mcudeploy.device.target import Target
    from mcudeploy.execution.counted import Timing
    from mcudeploy.execution.parts import RunRequest
    from mcudeploy.planner.plan_options import Options


@click.command(cls=LongCommand)
@model_argument
@added_options("measure")
@device_options
@timing_option
@planning_options()
@output_options
def measure(*, model: Path, target: Target, timing: Timing, options: Options, output: Output) -> None:
    """Time every operator of a model on the device."""
    from mcudeploy.commands import commands as api

    with output.progress() as progress:
        measured = api.measure_model(model, target, options, timing=timing, progress=progress)
    output.result(measured, tables.measure)


_LABELS = "mcudeploy.labels"
"""Key of --labels in the context, for --classes."""


def _keep_labels(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None:
        deprecated("run --labels", "run --classes")
        context.meta[_LABELS] = path


@click.command(cls=LongCommand)
@model_argument
@added_options("run")
@optional_device_options
@sample_options
@click.option(
    "--steps",
    metavar="N",
    type=click.IntRange(1, 100_000),
    help="Number of runs in sequence: of the first runs that --input has, or with drawn inputs. An array of "
    "--input with one more axis in front has the inputs of several runs; so has a long .wav file for a "
    "model with states.  [default: all of --input; 1 drawn, or 4 for a model with states]",
)
@click.option(
    "--classes",
    metavar="FILE",
    type=InputFile(),
    callback=lambda context, _, path: path or context.meta.get(_LABELS),
    help="Text file with the names of the classes of the output, one a line, shown beside it.",
)
@click.option(
    "--labels", type=InputFile(), hidden=True, is_eager=True, expose_value=False, callback=_keep_labels
)
@click.option(
    "--save-outputs",
    "saved",
    metavar="FILE.npz",
    type=NewFile(".npz"),
    help="Write the outputs of all runs: an array for each output, by its name; the first axis counts runs.",
)
@click.option(
    "--reference",
    type=click.Choice(["onnxruntime", "tflm"]),
    default="onnxruntime",
    show_default=True,
    help="tflm: outputs of a .tflite file must also have the bits of TensorFlow Lite Micro.",
)
@timing_option
@click.option(
    "--guards/--no-guards",
    default=False,
    help="Place 16 guard bytes after each arena and fail if the run overwrites them or the end of the stack.",
)
@planning_options()
@files_option
@page_options
@output_options
@packed_as(
    "request",
    "mcudeploy.execution.parts:RunRequest",
    *("inputs", "expected", "reading", "steps", "classes", "reference", "timing", "analyses"),
)
def run(
    *,
    model: Path,
    target: Target | None,
    guards: bool,
    request: RunRequest,
    options: Options,
    saved: Path | None,
    pages: Pages,
    output: Output,
) -> None:
    """Build a model, flash it, run it on the device, and verify its outputs."""
    if target is None:
        raise UsageError("name a board with --board")
    from mcudeploy.commands import commands as api

    with output.progress() as progress:
        result = api.run_model(model, replace(target, guards=guards), options, request, progress)
    if saved is not None:
        api.save_outputs(result, saved)
    if pages.requested:
        pages.write(model, [pages.run(result)])
    report = output.result(result, tables.run, tables.verdict)
    if not report["verified"]:
        get_current_context().exit(OutputsDifferError.exit_code)
