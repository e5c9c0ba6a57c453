"""`measure` and `run`: a model on a device, timed operator by operator, and verified."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.devices import device_options, optional_device_options
from mcudeploy.cli.options import (
    added_options,
    files_option,
    model_argument,
    output_options,
    planning_options,
    timing_option,
)
from mcudeploy.cli.output import Output, deprecated
from mcudeploy.cli.pages import Pages, page_options
from mcudeploy.cli.parameter_types import InputFile, NewFile
from mcudeploy.cli.sample_options import sample_options
from mcudeploy.common.errors import OutputsDifferError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcudeploy.device.target import Target
    from mcudeploy.execution.counted import Timing
    from mcudeploy.execution.parts import Analysis
    from mcudeploy.planner.plan_options import Options
    from mcudeploy.verify.preprocessing import Preprocessing


@click.command()
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


@click.command()
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
    help="Text file with the names of the classes of the output, one a line, shown beside it.",
)
@click.option("--labels", type=InputFile(), hidden=True)
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
@click.pass_context
def run(
    context: click.Context,
    *,
    model: Path,
    target: Target | None,
    inputs: tuple[Path, ...],
    expected: tuple[Path, ...],
    reading: Preprocessing,
    steps: int | None,
    classes: Path | None,
    labels: Path | None,
    saved: Path | None,
    reference: str,
    timing: Timing,
    guards: bool,
    options: Options,
    pages: Pages,
    output: Output,
    analyses: Sequence[Analysis] = (),
) -> None:
    """Build a model, flash it, run it on the device, and verify its outputs."""
    if labels is not None:
        deprecated("run --labels", "run --classes")
        classes = classes or labels
    if target is None:
        raise UsageError("name a board with --board")
    from mcudeploy.commands import commands as api

    with output.progress() as progress:
        result = api.run_model(
            model,
            replace(target, guards=guards),
            options,
            inputs=list(inputs),
            expected=list(expected),
            reading=reading,
            steps=steps,
            classes=classes,
            timing=timing,
            micro=reference == "tflm",
            analyses=analyses,
            progress=progress,
        )
    if saved is not None:
        api.save_outputs(result, saved)
    if pages.asked:
        pages.write(model, [pages.ran(result)])
    report = output.result(result, tables.run, tables.verdict)
    if not report["verified"]:
        context.exit(OutputsDifferError.exit_code)
