"""`adapt`: libraries whose last layer learns on the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from rich.console import Console

from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.devices import board_option
from mcudeploy.cli.help import LongCommand
from mcudeploy.cli.options import (
    library_options,
    model_argument,
    output_options,
    packed_as,
    planning_options,
)
from mcudeploy.cli.output import Output, Values
from mcudeploy.cli.parameter_types import InputData
from mcudeploy.cli.sample_options import reading_options
from mcudeploy.cli.table_grids import facts

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.extensions.evaluation.dataset import DataRequest
    from mcudeploy.extensions.heads.adapt import AdaptRequest
    from mcudeploy.planner.plan_options import Options
    from mcudeploy.verify.preprocessing import Preprocessing


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def adapt() -> None:
    """Build libraries that learn classes from a few examples on the device."""


@adapt.command("build", cls=LongCommand)
@model_argument
@board_option(required=True)
@click.option(
    "--head",
    type=click.Choice(["prototypes", "ridge"]),
    required=True,
    help="prototypes: an input belongs to the class whose mean of features is nearest. ridge: linear scores, "
    "by ridge regression on stored examples.",
)
@click.option(
    "--features",
    metavar="TENSOR",
    required=True,
    help="Operator of the tables of `run`, or node or tensor of the ONNX file; the head reads its int8 "
    "values, and the library ends there.",
)
@click.option(
    "--classes",
    metavar="N",
    type=click.IntRange(2, 1000),
    required=True,
    help="Number of classes.",
)
@click.option(
    "--examples",
    metavar="N",
    type=click.IntRange(min=2),
    help="Number of examples that --head ridge stores, of all classes together. Default: 5 per class.",
)
@click.option(
    "--statistics",
    metavar="FOLDER|FILE",
    type=InputData(),
    help="Samples of the training data, as --data of `evaluate`. The library then moves and scales each "
    "feature so that its mean and deviation over inputs of the device, without labels, are those of these "
    "samples.",
)
@reading_options
@library_options("the C library")
@planning_options()
@output_options
@packed_as("head", "mcudeploy.extensions.heads.heads:HeadPart", "classes", "examples", name="head")
@packed_as("statistics", f"{__name__}:_statistics", "reading", path="statistics")
@packed_as(
    "request",
    "mcudeploy.extensions.heads.adapt:AdaptRequest",
    *("directory", "features", "head", "statistics", "force"),
)
def build_head(*, model: Path, board: Board, request: AdaptRequest, options: Options, output: Output) -> None:
    """Write a C library of MODEL up to its features, with a head that learns from examples."""
    from mcudeploy.extensions.heads.adapt import build_adaptable

    with output.progress() as progress:
        report = build_adaptable(model, board, options, request, progress)
    output.result(report, _built)


def _statistics(path: Path | None, reading: Preprocessing) -> DataRequest | None:
    from mcudeploy.extensions.evaluation.dataset import DataRequest

    return None if path is None else DataRequest(path, reading=reading)


def _built(console: Console, report: Values) -> None:
    tables.build(console, report)
    head = report["head"]
    sizes = f"{head['classes']} classes of {head['features']} features"
    if head["examples"] is not None:
        sizes += f", {head['examples']} examples"
    if head["statistics"]:
        sizes += ", statistics of each feature"
    facts(console, [("head", f"{head['bytes']:,} B beside the arena: {head['kind']}, {sizes}")])
