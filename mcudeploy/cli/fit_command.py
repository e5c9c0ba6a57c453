"""`fit`: rank boards by whether they have room for a model, and by its estimated latency."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from rich.console import Console

from mcudeploy.cli.latencies import milliseconds_text
from mcudeploy.cli.options import model_argument, output_options, planning_options
from mcudeploy.cli.output import Output, Values, cell
from mcudeploy.cli.table_grids import table_of
from mcudeploy.common.errors import FitError, UsageError
from mcudeploy.ir.clock import LEAST
from mcudeploy.planner.plan_options import READING, Options

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board


compared_boards_option = click.option(
    "--boards",
    metavar="NAME,NAME,...",
    help="Boards to compare, or files of boards; by default `all` that `mcudeploy boards` lists.",
)


@click.command()
@model_argument
@compared_boards_option
@click.option("--all", "emulated", is_flag=True, help="Compare also boards that exist in an emulator only.")
@planning_options("max_overhead", *READING)
@output_options
@click.pass_context
def fit(
    context: click.Context,
    *,
    model: Path,
    boards: str | None,
    emulated: bool,
    options: Options,
    output: Output,
) -> None:
    """Rank boards: whether the model fits, its RAM and flash, and its estimated latency.

    A board gets searches of 1 s for each core: unsplit, split, with --stream-input, and with a higher
    --max-overhead, until a plan fits. The table states the overhead of the fastest such plan found.
    `mcudeploy plan` searches longer, up to --time-limit. Exit code 5: the model fits none of the boards.
    """
    from mcudeploy.commands import checking

    with output.progress() as progress:
        fitted = checking.fit_model(model, named_boards(boards, emulated=emulated), options, progress)
    report = output.result(fitted, table)
    if not any(found["fits"] for found in report["boards"]):
        context.exit(FitError.exit_code)


def named_boards(names: str | None, *, emulated: bool) -> tuple[Board, ...]:
    """The boards named in a list; without a list those to buy, or with `emulated` all."""
    from mcudeploy.boards.board import catalogue, every_board, load_board

    if names is not None and emulated:
        raise UsageError("--boards and --all exclude each other")
    if names in (None, "all"):
        return every_board() if emulated else catalogue()
    known = [name.strip() for name in names.split(",")]
    if not all(known):
        raise UsageError("--boards names boards, separated by commas")
    return tuple({board.name: board for board in map(load_board, known)}.values())


def table(console: Console, report: Values) -> None:
    """The `fit` report."""
    rows = table_of("board", "fits", "how", "RAM>", "of>", "flash>", "of>", "latency>")
    for found in report["boards"]:
        verdict = cell("yes", "green") if found["fits"] else cell(f"{found['excess_bytes']:,} B short", "red")
        texts = (
            _how(found),
            f"{found['ram_bytes']:,}",
            f"{found['board_ram_bytes']:,}",
            f"{found['flash_bytes']:,}",
            f"{found['board_flash_bytes']:,}",
            milliseconds_text(found["latency"]),
        )
        rows.add_row(cell(found["board"]), verdict, *map(cell, texts))
    console.print(rows)
    for line in _notes(report["boards"]):
        console.print(cell(line), soft_wrap=True)


def _how(found: Values) -> str:
    kind = {"unsplit": "unsplit", "input kept": "split, input kept"}.get(found["way"], "split")
    return f"{kind}, {found['options']}" if found["options"] else kind


def _notes(boards: list[dict[str, Any]]) -> list[str]:
    from mcudeploy.planner.fit import SEARCH_S

    notes = [
        "RAM: arena, data and stack of the firmware. Flash: weights and tables; code adds some 8 to 24 KiB.",
        f"Each search was given {SEARCH_S:g} s: `mcudeploy plan MODEL --board NAME --time-limit 60` searches "
        "longer.",
    ]
    if any(found["latency"] and found["latency"]["milliseconds_by"] == LEAST for found in boards):
        notes.append("≥: at one instruction a clock, because there is no cycle model of the core.")
    from mcudeploy.boards.board import CODE_BYTES

    tight = [found["board"] for found in boards if found["fits"] and found["flash_free_bytes"] < CODE_BYTES]
    if tight:
        room = f"{CODE_BYTES // 1024} KiB"
        notes.append(f"Less than {room} of flash are left for code on {', '.join(tight)}.")
    return notes
