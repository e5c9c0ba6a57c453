"""`fit`: the chips that have room for a model, the smallest first, and its estimated latency there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from rich.console import Console

from mcudeploy.cli.help import LongCommand
from mcudeploy.cli.latencies import milliseconds_text
from mcudeploy.cli.options import model_argument, output_options, packed_as, planning_options
from mcudeploy.cli.output import Output, Values, cell
from mcudeploy.cli.parameter_types import Finite, ParsedText
from mcudeploy.cli.table_grids import table_of
from mcudeploy.common.errors import FitError, UsageError
from mcudeploy.common.sizes import parse_count, parse_size
from mcudeploy.common.text import agree
from mcudeploy.ir.clock import CALIBRATED_UNIT, LOWER_BOUND
from mcudeploy.planner.plan_options import READING, Options
from mcudeploy.report import as_json

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board


compared_boards_option = click.option(
    "--boards",
    metavar="NAME,NAME,...",
    help="Boards to compare, or files of boards; by default `all` that `mcudeploy boards` lists.",
)


@dataclass(frozen=True, slots=True)
class ChipLimits:
    """Limits of a list of chips: the number of chips, milliseconds of latency, bytes; None: no limit."""

    top: int | None
    max_latency: float | None
    max_ram: int | None
    max_flash: int | None

    def require(self, boards: Iterable[Board]) -> list[Board]:
        """Return the boards whose memories are within the limits. FitError if there are none."""
        if allowed := [board for board in boards if self._allows(board)]:
            return allowed
        raise replace(self, max_latency=None)._no_board()

    def _no_board(self) -> FitError:
        limits = {"--max-ram": self.max_ram, "--max-flash": self.max_flash, "--max-latency": self.max_latency}
        names = [name for name, limit in limits.items() if limit is not None]
        raised = agree(len(names), "it", "one of them")
        return FitError(f"no board is within {' and '.join(names)}: raise {raised}")

    def _allows(self, board: Board) -> bool:
        sizes = sum(memory.bytes for memory in board.memories), board.flash_bytes
        limits = zip(sizes, (self.max_ram, self.max_flash), strict=True)
        return all(limit is None or size <= limit for size, limit in limits)

    def _is_fast_enough(self, latency: Values | None) -> bool:
        return latency is None or self.max_latency is None or latency["milliseconds"] <= self.max_latency

    def rows(self, boards: Iterable[Values]) -> list[Values]:
        """Return the boards of the first `top` chips that are fast enough. FitError if there are none."""
        fast_enough = (board for board in boards if self._is_fast_enough(board["latency"]))
        if rows := [board for chip in chips(fast_enough)[: self.top] for board in chip]:
            return rows
        raise self._no_board()


@click.command(cls=LongCommand)
@model_argument
@compared_boards_option
@click.option("--all", "emulated", is_flag=True, help="Compare also boards that exist in an emulator only.")
@click.option("--top", metavar="N", type=ParsedText(parse_count), help="List the first N chips only.")
@click.option(
    "--max-latency",
    metavar="MS",
    type=Finite(min=0, min_open=True),
    help="Leave out boards on which a run takes more milliseconds by the estimate; boards without one stay.",
)
@click.option(
    "--max-ram", type=ParsedText(parse_size), help="Leave out boards with more RAM than this, such as 64k."
)
@click.option(
    "--max-flash", type=ParsedText(parse_size), help="Leave out boards with more flash than this, such as 1M."
)
@packed_as("limits", "mcudeploy.cli.fit_command:ChipLimits", "top", "max_latency", "max_ram", "max_flash")
@planning_options("optimize", "max_overhead", *READING)
@output_options
@click.pass_context
def fit(
    context: click.Context,
    *,
    model: Path,
    boards: str | None,
    emulated: bool,
    limits: ChipLimits,
    options: Options,
    output: Output,
) -> None:
    """Rank chips: whether the model fits, its RAM and flash, and its estimated latency.

    The smallest chip comes first: the one with the least RAM, then flash, then clock; prices are not known.
    Chips that are too small come last. Boards whose chips agree in core, clock, RAM and flash share a row.

    A board gets searches of 1 s for each core: unsplit, split, with --stream-input, and with a higher
    --max-overhead, until a plan fits. The table states the overhead of the fastest such plan found.
    `mcudeploy plan` searches longer, up to --time-limit. Exit code 5: the model fits none of the boards.
    """
    from mcudeploy.commands import checking

    compared = limits.require(named_boards(boards, emulated=emulated))
    with output.progress() as progress:
        report = as_json(checking.fit_model(model, compared, options, progress))
    report = output.result({**report, "boards": limits.rows(report["boards"])}, table)
    if not any(found["fits"] for found in report["boards"]):
        context.exit(FitError.exit_code)


def named_boards(names: str | None, *, emulated: bool) -> tuple[Board, ...]:
    """Return the boards of a list of names; without a list those to buy, or with `emulated` all."""
    from mcudeploy.boards.catalogue import catalogue, every_board, load_board

    if names is not None and emulated:
        raise UsageError("--boards and --all exclude each other")
    if names in (None, "all"):
        return every_board() if emulated else catalogue()
    known = [name.strip() for name in names.split(",")]
    if not all(known):
        raise UsageError("--boards names boards, separated by commas")
    return tuple({board.name: board for board in map(load_board, known)}.values())


def chips(boards: Iterable[Values]) -> list[list[Values]]:
    """Return the boards in groups with the same core, latency, memories and way to fit."""
    groups: dict[tuple[Any, ...], list[Values]] = {}
    for board in boards:
        facts = ("core", "board_ram_bytes", "board_flash_bytes", "fits", "way", "options")
        clock = (board["latency"] or {}).get("milliseconds")
        groups.setdefault((clock, *(board[name] for name in facts)), []).append(board)
    return list(groups.values())


def table(console: Console, report: Values) -> None:
    """Print the `fit` report: a row for each chip."""
    listed = chips(report["boards"])
    if cut := [chip[0]["board"] for chip in listed if chip[0]["fits"] and chip[0]["way"] != "unsplit"]:
        text = f"{len(cut)} of {len(listed)} fit only with operators cut into rows: {', '.join(cut)}."
        console.print(cell(text), soft_wrap=True)
    rows = table_of("boards", "fits", "how", "RAM>", "of>", "flash>", "of>", "latency>")
    for chip in listed:
        first = chip[0]
        verdict = cell("yes", "green") if first["fits"] else cell(f"{first['excess_bytes']:,} B short", "red")
        texts = (
            _how(first),
            f"{first['ram_bytes']:,}",
            f"{first['board_ram_bytes']:,}",
            f"{first['flash_bytes']:,}",
            f"{first['board_flash_bytes']:,}",
            milliseconds_text(first["latency"]),
        )
        rows.add_row(cell(", ".join(it["board"] for it in chip)), verdict, *map(cell, texts))
    console.print(rows)
    for line in _notes(report["boards"]):
        console.print(cell(line), soft_wrap=True)


def _how(fit: Values) -> str:
    kind = {"unsplit": "unsplit", "input kept": "split, input kept"}.get(fit["way"], "split")
    return f"{kind}, {fit['options']}" if fit["options"] else kind


def _notes(boards: list[dict[str, Any]]) -> list[str]:
    from mcudeploy.planner.fit import SEARCH_S

    notes = [
        "RAM: arena, data and stack of the firmware. Flash: weights and tables; code adds some 8 to 24 KiB.",
        "A row is a chip, the smallest first; the figures are those of its first board.",
        f"Each search was given {SEARCH_S:g} s: `mcudeploy plan MODEL --board NAME --time-limit 60` searches "
        "longer.",
    ]
    if any(found["latency"] and found["latency"]["milliseconds_by"] == LOWER_BOUND for found in boards):
        notes.append("≥: at one instruction a clock, because there is no cycle model of the core.")
    if names := [it["board"] for it in boards if (it["latency"] or {}).get("unit") == CALIBRATED_UNIT]:
        notes.append(f"Latencies of {', '.join(names)} are calibrated by times measured on the board.")
    if any(found["board"].startswith("pio:") and found["latency"] for found in boards):
        notes.append("Latencies of pio: boards leave out waits for flash, which their files do not state.")
    from mcudeploy.boards.board import CODE_BYTES

    tight = [found["board"] for found in boards if found["fits"] and found["flash_free_bytes"] < CODE_BYTES]
    if tight:
        room = f"{CODE_BYTES // 1024} KiB"
        notes.append(f"Less than {room} of flash are left for code on {', '.join(tight)}.")
    return notes
