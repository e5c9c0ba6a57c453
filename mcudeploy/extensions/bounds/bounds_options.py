"""`--bounds` of `build` and `run`, and the bounds in their reports."""

from __future__ import annotations

import functools
from typing import Any

import rich_click as click
from rich.console import Console

from mcudeploy.cli.options import Command
from mcudeploy.cli.output import Values, cell
from mcudeploy.cli.table_grids import ReportSection, table_of
from mcudeploy.common.text import plain


def _build_option(command: Command) -> Command:
    """Add --bounds, which becomes one of the `parts`."""

    @click.option(
        "--bounds/--no-bounds",
        default=False,
        help="Also state the most instructions and cycles of a call over all inputs, in the header and in "
        "NAME_bounds.md. They are counted in the emulator of a board with the same core.",
    )
    @functools.wraps(command)
    def packed(*args: Any, bounds: bool, parts: tuple[Any, ...] = (), **rest: Any) -> None:
        if bounds:
            from mcudeploy.extensions.bounds.bounds_part import BoundsPart

            parts = (*parts, BoundsPart())
        command(*args, parts=parts, **rest)

    return packed


def _run_option(command: Command) -> Command:
    """Add --bounds, which becomes one of the `analyses`."""

    @click.option(
        "--bounds/--no-bounds",
        default=False,
        help="Also show the most instructions and cycles of each operator over all inputs. They are counted "
        "in the emulator of a board with the same core.",
    )
    @functools.wraps(command)
    def packed(*args: Any, bounds: bool, analyses: tuple[Any, ...] = (), **rest: Any) -> None:
        if bounds:
            from mcudeploy.extensions.bounds.bounds_part import BoundsAnalysis

            analyses = (*analyses, BoundsAnalysis())
        command(*args, analyses=analyses, **rest)

    return packed


OPTIONS = {"build": (_build_option,), "run": (_run_option,)}


def _facts(report: Values) -> list[tuple[str, str]]:
    """Return the bounds of a run and of a step, and why there is none."""
    bounds = report.get("bounds")
    if not bounds:
        return []
    facts = [
        (f"{unit}, at most", f"{bounds[f'run_{unit}']:,} a run, {bounds[f'step_{unit}']:,} a step")
        for unit in ("instructions", "cycles")
        if bounds[f"run_{unit}"] is not None
    ]
    reasons = [f"{plain(it['operator'])}: {it['reason']}" for it in bounds["operators"] if it["reason"]]
    return [*facts, ("no bound", "; ".join(reasons))]


def _table(console: Console, report: Values) -> None:
    """Print the bounds of each operator."""
    bounds = report.get("bounds")
    if not bounds:
        return
    table = table_of("operator", "kernel", "data", "steps>", "counted>", "bound>", "cycles, at most>")
    for operator in bounds["operators"]:
        numbers = (operator["steps"], operator["counted"], operator["instructions"], operator["cycles"])
        texts = ("none" if number is None else f"{number:,}" for number in numbers)
        table.add_row(*map(cell, (operator["operator"], operator["kernel"], operator["data"], *texts)))
    console.print(table)


SECTION = ReportSection(_table, _facts)
