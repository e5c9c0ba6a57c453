"""`check`, `plan` and `tune`: what a model needs, and the search for the plan with the least RAM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context

from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.devices import board_option, boards_option
from mcudeploy.cli.fleets import devices_options
from mcudeploy.cli.help import LongCommand
from mcudeploy.cli.options import (
    added_options,
    model_argument,
    output_options,
    plan_file_options,
    planning_options,
    typed_arguments,
)
from mcudeploy.cli.output import Output
from mcudeploy.cli.pages import Pages, page_options
from mcudeploy.cli.parameter_types import Finite
from mcudeploy.cli.proposed import with_commands
from mcudeploy.common import interrupts
from mcudeploy.common.errors import FitError, ModelError, UsageError
from mcudeploy.planner.plan_options import READING, Options
from mcudeploy.report import as_json

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.device.target import Target
    from mcudeploy.report.html import Misfit, Subject


@click.command(cls=LongCommand)
@model_argument
@added_options("check")
@board_option(required=False)
@planning_options(*READING)
@click.option(
    "--period",
    "period_ms",
    metavar="MS",
    type=Finite(min=0, min_open=True),
    help="State the work if a run begins every MS milliseconds: MACs a second and, with a board, the "
    "estimated time of a run.",
)
@output_options
@click.pass_context
def check(
    context: click.Context,
    *,
    model: Path,
    board: Board | None,
    options: Options,
    period_ms: float | None,
    output: Output,
) -> None:
    """List which operators are unsupported, and why, and the model's sizes."""
    from mcudeploy.commands import checking

    report = output.result(checking.check_model(model, board, options, period_ms), tables.check)
    if not report["supported"]:
        context.exit(ModelError.exit_code)
    if not report.get("fits", True):
        context.exit(FitError.exit_code)


@click.command(cls=LongCommand)
@model_argument
@boards_option
@planning_options()
@plan_file_options
@page_options
@click.option(
    "--explain", is_flag=True, help="Show which operators can be cut together, and what ends each cut."
)
@output_options
@added_options("plan")
def plan(
    *,
    model: Path,
    boards: tuple[Board, ...],
    options: Options,
    destination: Path | None,
    chart: Path | None,
    pages: Pages,
    explain: bool,
    output: Output,
) -> None:
    """Decide order and place of every tensor, and print the RAM and flash that the plan needs.

    Exit code 5: the model does not fit the board, or fits none of several boards.
    """
    from mcudeploy.commands import commands as api
    from mcudeploy.planner import axes as analyzer

    if len(boards) > 1:
        single = {"-o": destination, "--chart": chart, "--trace": pages.trace, "--plan": options.plan_file}
        single |= {"--order": options.order_file}
        refused = [name for name, value in (single | {"--explain": explain}).items() if value]
        if refused:
            raise UsageError(f"{refused[0]} is for one board: name one with --board")
        _plan_all(model, boards, options, pages, output)
        return
    try:
        with output.progress() as progress:
            deployment = api.plan_model(model, boards[0], replace(options, resume=True), progress)
            interrupts.close()  # a late interrupt would lose a long search
    except FitError as error:
        misfit = _with_commands(error)
        pages.write_misfit(model, boards[0], misfit)
        raise misfit from error
    if destination:
        api.save_plan(deployment, destination)
    if chart:
        api.save_chart(deployment, chart)
    report = as_json(deployment)
    if explain:
        report = {**report, "explanation": analyzer.explain(deployment.plan.graph)}
    if pages.requested:
        pages.write(model, [pages.subject(deployment, report)], destination)
    output.result(report, tables.plan)


def _plan_all(
    model: Path,
    boards: tuple[Board, ...],
    options: Options,
    pages: Pages,
    output: Output,
) -> None:
    """Plan for several boards; exit code 5 if the model fits none of them."""
    from mcudeploy.commands import commands as api

    reports: list[dict[str, Any]] = []
    subjects: list[Subject | Misfit] = []
    for board in boards:
        try:
            with output.progress() as progress:
                progress.stage(f"board {board.name}")
                deployment = api.plan_model(model, board, options, progress)
        except FitError as misfit:
            error = _with_commands(misfit, board.name)
            reports.append({"board": board.name, "fits": False, "message": str(error)})
            subjects.append(pages.misfit(board, error))
            continue
        reports.append({"fits": True, **as_json(deployment)})
        subjects.append(pages.subject(deployment, reports[-1]))
    pages.write(model, subjects)
    output.result({"boards": reports}, tables.plans)
    if not any(report["fits"] for report in reports):
        get_current_context().exit(FitError.exit_code)


def _with_commands(error: FitError, board: str = "") -> FitError:
    """Return the error with command lines for its proposals; `board`: its board, if there are several."""
    program = get_current_context().find_root().command
    commands = program.commands if isinstance(program, click.Group) else {}
    return with_commands(error, typed_arguments(), commands, board)


@click.command(cls=LongCommand)
@model_argument
@added_options("tune")
@devices_options
@planning_options()
@plan_file_options
@page_options
@output_options
def tune(
    *,
    model: Path,
    targets: tuple[Target, ...],
    options: Options,
    destination: Path | None,
    chart: Path | None,
    pages: Pages,
    output: Output,
) -> None:
    """Search for the plan with the least RAM, timing parts of the model on the device."""
    from mcudeploy.commands import commands as api
    from mcudeploy.commands import tune as tuning

    with output.progress() as progress:
        tuned = tuning.tune_model(model, targets, replace(options, resume=True), progress)
    if destination:
        api.save_plan(tuned.deployment, destination)
    if chart:
        api.save_chart(tuned.deployment, chart)
    if pages.requested:
        pages.write(model, [pages.subject(tuned.deployment, as_json(tuned))], destination)
    output.result(tuned, tables.tune)
