"""`check`, `plan` and `tune`: what a model needs, and the search for the least."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mcudeploy.cli import tables
from mcudeploy.cli.devices import board_option
from mcudeploy.cli.fleets import devices_options
from mcudeploy.cli.options import (
    float_io_option,
    keep_option,
    model_argument,
    output_options,
    plan_file_options,
    planning_options,
    shape_option,
    stateful_option,
)
from mcudeploy.cli.output import Output
from mcudeploy.common import interrupts
from mcudeploy.common.errors import FitError, ModelError

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.device.target import Target
    from mcudeploy.search.planner import Options


@click.command()
@model_argument
@board_option(required=False)
@float_io_option
@keep_option
@shape_option
@stateful_option
@output_options
@click.pass_context
def check(
    context: click.Context,
    *,
    model: Path,
    board: Board | None,
    float_io: bool,
    keep_constant_channels: bool,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    stateful: bool,
    output: Output,
) -> None:
    """List every node that cannot be deployed, with its reason, and the model's sizes."""
    from mcudeploy import api
    from mcudeploy.search.planner import Options

    options = Options(
        float_io=float_io, keep_constant=keep_constant_channels, shapes=shapes, stateful=stateful
    )
    report = api.check_model(model, board, options)
    output.result(report, tables.check)
    if not report["supported"]:
        context.exit(ModelError.exit_code)
    if not report.get("fits", True):
        context.exit(FitError.exit_code)


@click.command()
@model_argument
@board_option(required=True)
@planning_options
@plan_file_options
@click.option("--explain", is_flag=True, help="Show which operators can be cut together, and why not more.")
@output_options
def plan(
    *,
    model: Path,
    board: Board,
    options: Options,
    destination: Path | None,
    chart: Path | None,
    explain: bool,
    output: Output,
) -> None:
    """Decide order and place of every tensor, and print what the plan needs."""
    from mcudeploy import analyzer, api

    with output.progress() as progress:
        found = api.plan_model(model, board, replace(options, resume=True), progress)
        interrupts.close()  # the rest takes a moment, and the search took long
    if destination:
        api.save_plan(found, destination)
    if chart:
        api.save_chart(found, chart)
    report = api.plan_report(found)
    if explain:
        report |= {"explanation": analyzer.explain(found.plan.graph)}
    output.result(report, tables.plan)


@click.command()
@model_argument
@devices_options
@planning_options
@plan_file_options
@output_options
def tune(
    *,
    model: Path,
    targets: tuple[Target, ...],
    options: Options,
    destination: Path | None,
    chart: Path | None,
    output: Output,
) -> None:
    """Search for the plan with the least RAM, timing parts of the model on the device."""
    from mcudeploy import api, tuning

    with output.progress() as progress:
        found, report = tuning.tune_model(model, targets, replace(options, resume=True), progress)
    if destination:
        api.save_plan(found, destination)
    if chart:
        api.save_chart(found, chart)
    output.result(report, tables.tune)


COMMANDS = (check, plan, tune)
