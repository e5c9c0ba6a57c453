"""`evaluate`: the accuracy of a model over a test set, on devices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mcudeploy.cli.fleets import devices_options
from mcudeploy.cli.help import LongCommand
from mcudeploy.cli.options import (
    files_option,
    model_argument,
    output_options,
    packed_as,
    planning_options,
    typed_arguments,
)
from mcudeploy.cli.output import Output
from mcudeploy.cli.parameter_types import Finite, InputData, InputFile, InputModel, NewFile
from mcudeploy.cli.sample_options import reading_options
from mcudeploy.common.errors import OutputsDifferError
from mcudeploy.extensions.evaluation import evaluation_table

if TYPE_CHECKING:
    from mcudeploy.device.target import Target
    from mcudeploy.extensions.evaluation.evaluate import EvaluateRequest
    from mcudeploy.planner.plan_options import Options


@click.command(cls=LongCommand)
@model_argument
@devices_options
@click.option(
    "--data",
    metavar="FOLDER|FILE",
    type=InputData(),
    required=True,
    help="The test set: an .npz with one array per input, and labels as `y` or `labels`; one .npy; a folder "
    "of .npy files; a folder with a subfolder of pictures, sounds or .npy files for each class; or a .csv "
    "table, the label in the column `label` or in the last one. The first axis of arrays counts samples.",
)
@click.option(
    "--labels",
    metavar="FILE",
    type=InputFile(),
    help="Label of each sample, if the data have none: class numbers from 0, or values of the output, as "
    ".npy; or text with one class per line.",
)
@click.option(
    "--classes",
    metavar="FILE",
    type=InputFile(),
    help="Text file with the names of the classes, one a line, in the order of the output.  [default: the "
    "subfolders of --data in the order of their names]",
)
@click.option(
    "--float",
    "float_model",
    metavar="MODEL",
    type=InputModel(),
    help="The float model that a quantised one was made of; the report compares both, and names the layers "
    "at which an ONNX model loses most.",
)
@click.option(
    "--output-name",
    "judged",
    metavar="NAME",
    help="Output to judge.  [default: the first one that fits the labels]",
)
@click.option(
    "--top",
    metavar="K",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Also count samples whose right class is among the K with the highest scores.",
)
@click.option(
    "--threshold",
    metavar="SCORE",
    type=Finite(-1e30, 1e30),
    default=0.5,
    show_default=True,
    help="Score from which on class 1 counts, for an output with one score.",
)
@click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=1),
    help="Draw this number of samples instead of taking all.",
)
@click.option(
    "--min-accuracy",
    metavar="PERCENT",
    type=Finite(0, 100),
    help="End with exit code 11 below this accuracy on the device (the area under the curve for anomalies).",
)
@click.option(
    "--max-drop",
    metavar="POINTS",
    type=Finite(0, 100),
    help="End with exit code 11 if the accuracy on the device is lower than that of the float model by more.",
)
@reading_options
@planning_options()
@click.option(
    "--report",
    metavar="FILE.html",
    type=NewFile(".html", ".htm"),
    help="Write a page with the confusion matrix and the worst samples.",
)
@files_option
@output_options
@click.pass_context
@packed_as(
    "data",
    "mcudeploy.extensions.evaluation.dataset:DataRequest",
    *("labels", "reading"),
    path="data",
    most="samples",
)
@packed_as(
    "task", "mcudeploy.extensions.evaluation.output_task:TaskChoice", "threshold", output="judged", k="top"
)
@packed_as(
    "request",
    "mcudeploy.extensions.evaluation.evaluate:EvaluateRequest",
    *("data", "task", "float_model", "min_accuracy", "max_drop"),
)
def evaluate(
    context: click.Context,
    *,
    model: Path,
    targets: tuple[Target, ...],
    request: EvaluateRequest,
    classes: Path | None,
    options: Options,
    report: Path | None,
    output: Output,
) -> None:
    """Measure the accuracy of a model over a test set, on one or more devices."""
    from mcudeploy.common.files import write_file
    from mcudeploy.extensions.evaluation import evaluation_page
    from mcudeploy.extensions.evaluation.evaluate import evaluate_model
    from mcudeploy.extensions.evaluation.evaluation_report import evaluation_object
    from mcudeploy.report.outputs import read_classes

    names = () if classes is None else read_classes(classes)
    request = replace(request, data=replace(request.data, classes=names, seed=options.seed))
    with output.progress() as progress:
        result = evaluate_model(model, targets, options, request, progress)
    figures = evaluation_object(result)
    if report is not None:
        write_file(report, evaluation_page.page(result, figures, typed_arguments()))
    output.result(figures, evaluation_table.evaluate)
    if figures["passed"] is False:
        context.exit(OutputsDifferError.exit_code)
