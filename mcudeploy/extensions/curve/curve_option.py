"""--curve of `plan`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context
from rich.console import Console

from mcudeploy.cli.options import Command, typed_arguments
from mcudeploy.common.errors import UsageError

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.cli.output import Values
    from mcudeploy.extensions.curve.overheads import CurvePoint


def curve_option(command: Command) -> Command:
    """Add --curve, which prints a plan for each of several limits instead of one."""

    @click.option(
        "--curve",
        is_flag=True,
        help="Show the arena for several values of --max-overhead: each takes --time-limit, and is a plan "
        "that can be taken.",
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
        from mcudeploy.extensions.curve.overheads import curve_points

        (board,) = rest["boards"]
        with rest["output"].progress() as progress:
            points = curve_points(rest["model"], board, rest["options"], progress=progress)
        rest["output"].result(_report(points, board), _table)

    return packed


def _report(points: tuple[CurvePoint, ...], board: Board) -> dict[str, Any]:
    from mcudeploy.cli.proposed import command_line
    from mcudeploy.report import as_json

    arguments = [word for word in typed_arguments() if word not in ("--curve", "--json")]
    commands = {"plan": get_current_context().command}
    commands["build"] = commands["plan"]
    rows = []
    for point in points:
        limit = f"{point.max_overhead:g}"
        row: dict[str, Any] = {"max_overhead": point.max_overhead, "fits": point.deployment is not None}
        if point.deployment is not None:
            report = as_json(point.deployment)
            figures = (
                "arena_bytes",
                "tables_bytes",
                "overhead_percent",
                "latency",
                "estimated_latency",
                "fused",
            )
            row |= {name: report.get(name) for name in figures}
            row["command"] = command_line(arguments, commands, f"--max-overhead {limit}")
        rows.append(row)
    return {"board": board.name, "curve": rows}


def _table(console: Console, report: Values) -> None:
    from mcudeploy.cli.latencies import latency_of, milliseconds_text
    from mcudeploy.cli.output import cell
    from mcudeploy.cli.table_grids import table_of

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


OPTIONS = {"plan": (curve_option,)}
