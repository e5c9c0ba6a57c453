"""--curve of `plan`: plans of a model under rising limits of the latency overhead."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context
from rich.console import Console

from mcudeploy.cli.options import Command, typed_arguments
from mcudeploy.common.errors import FitError, UsageError
from mcudeploy.common.progress import SILENT, Progress

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.cli.output import Values
    from mcudeploy.execution.deployment import Deployment
    from mcudeploy.planner.plan_options import Options

LIMITS = (0.0, 2.0, 5.0, 10.0, 25.0, 60.0, 100.0)
"""The limits of the latency overhead, in percent."""


def curve_option(command: Command) -> Command:
    """Add --curve, which prints a plan for each of several limits instead of one."""

    @click.option(
        "--curve",
        is_flag=True,
        help="Show the arena for several values of --max-overhead. Each takes --time-limit, and "
        "--max-overhead with this value finds the same plan.",
    )
    @functools.wraps(command)
    def packed(*args: Any, curve: bool, **rest: Any) -> None:
        if not curve:
            command(*args, **rest)
            return
        single_results = [rest["destination"], rest["chart"], rest["explain"], rest["options"].plan_file]
        single_results.append(rest["options"].order_file)
        if any(single_results) or len(rest["boards"]) > 1:
            raise UsageError("--curve is for one board, without -o, --chart, --explain, --plan and --order")
        (board,) = rest["boards"]
        with rest["output"].progress() as progress:
            points = curve_points(rest["model"], board, rest["options"], progress)
        rest["output"].result(_report(points, board), _table)

    return packed


def curve_points(
    path: Path, board: Board, options: Options, progress: Progress = SILENT
) -> dict[float, Deployment | None]:
    """Return the smallest plan by limit, for limits that allow a smaller arena than all lower ones.

    The plan is None if none fits the board under a limit. `plan --max-overhead` finds the same plans in the
    same time. Raises FitError if no plan fits under any limit.
    """
    from mcudeploy.commands.commands import plan_model

    points: dict[float, Deployment | None] = {}
    least, fault = 0, FitError("")
    for limit in LIMITS:
        try:
            deployment = plan_model(path, board, replace(options, max_overhead=limit), progress)
        except FitError as error:
            points[limit], fault = None, error
            continue
        arena_bytes = deployment.plan.layout.arena_bytes
        if not any(points.values()) or arena_bytes < least:
            points[limit], least = deployment, arena_bytes
    if not any(points.values()):
        raise fault
    return points


def _report(points: dict[float, Deployment | None], board: Board) -> dict[str, Any]:
    from mcudeploy.cli.proposed import command_line
    from mcudeploy.report import as_json

    arguments = [word for word in typed_arguments() if word not in ("--curve", "--json")]
    commands = {"plan": get_current_context().command}
    commands["build"] = commands["plan"]
    rows, bounds = [], None
    for limit, deployment in points.items():
        row: dict[str, Any] = {"max_overhead": limit, "fits": deployment is not None}
        if deployment is not None:
            report = as_json(deployment)
            bounds = report["cut_bounds"]
            figures = (
                "arena_bytes",
                "tables_bytes",
                "overhead_percent",
                "latency",
                "estimated_latency",
                "fused",
            )
            row |= {name: report.get(name) for name in figures}
            row["command"] = command_line(arguments, commands, f"--max-overhead {limit:g}")
        rows.append(row)
    return {"board": board.name, "curve": rows, "cut_bounds": bounds}


def _table(console: Console, report: Values) -> None:
    from mcudeploy.cli.latencies import latency_of, milliseconds_text
    from mcudeploy.cli.output import cell
    from mcudeploy.cli.table_grids import table_of
    from mcudeploy.report.wording import cut_bounds_text

    table = table_of("--max-overhead>", "arena>", "latency>", "overhead>", "fused chains>")
    for row in report["curve"]:
        if not row["fits"]:
            table.add_row(cell(f"{row['max_overhead']:g} %"), *map(cell, ("does not fit", "-", "-", "-")))
            continue
        texts = (
            f"{row['max_overhead']:g} %",
            f"{row['arena_bytes']:,} B",
            milliseconds_text(latency_of(row)),
            f"{round(row['overhead_percent'], 2) + 0.0:+.2f} %",  # + 0.0: never -0.00
            str(len(row["fused"])),
        )
        table.add_row(*map(cell, texts))
    console.print(table)
    if report["cut_bounds"]:
        console.print(f"lower bound over all cuts: {cut_bounds_text(report)}", highlight=False)


OPTIONS = {"plan": (curve_option,)}
