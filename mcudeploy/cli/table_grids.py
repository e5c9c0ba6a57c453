"""The two shapes of a report for people: rows under headings, and named facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table

from mcudeploy.cli.output import Render, Values, cell


@dataclass(frozen=True, slots=True)
class ReportSection:
    """The view of an extension on the reports of `build` and `run`: a table and named facts, both empty where
    a report lacks its keys.
    """

    table: Render
    facts: Callable[[Values], list[tuple[str, str]]]


def facts(console: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Print a line for each name and value; none for an empty value."""
    grid = Table.grid(padding=(0, 2))
    for name, value in pairs:
        if value:
            grid.add_row(cell(name, "dim"), cell(value))
    console.print(grid)


def table_of(*headings: str) -> Table:
    """Return a table with these headings; a heading that ends in `>` aligns its column right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading.rstrip(">"), justify="right" if heading.endswith(">") else "left")
    return table
