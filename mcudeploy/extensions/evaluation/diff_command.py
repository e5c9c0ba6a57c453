"""`diff`: figures and files of two libraries."""

from __future__ import annotations

from pathlib import Path

import rich_click as click
from rich.console import Console

from mcudeploy.cli.options import output_options
from mcudeploy.cli.output import Output, Values, cell
from mcudeploy.cli.parameter_types import InputData
from mcudeploy.cli.table_grids import facts, table_of


@click.command()
@click.argument("first", metavar="LIB", type=InputData())
@click.argument("second", metavar="LIB", type=InputData())
@output_options
def diff(*, first: Path, second: Path, output: Output) -> None:
    """Compare two libraries, folders that `build` wrote: the figures of their headers, and their files.

    Files that `build` wrote count, and C files that were added beside its sources. The exit code is 0 for
    libraries that differ, too; `equal` of --json says whether they are equal.
    """
    from mcudeploy.extensions.evaluation.library_difference import library_difference

    output.result(library_difference(first, second), _table)


def _table(console: Console, report: Values) -> None:
    changed = [it for it in report["figures"] if it["first"] != it["second"]]
    rows = table_of("figure", "first>", "second>", "change>")
    for it in changed:
        values = it["first"], it["second"]
        change = f"{values[1] - values[0]:+,}" if None not in values else ""
        texts = ("-" if value is None else f"{value:,}" for value in values)
        rows.add_row(*map(cell, (it["figure"], *texts, change)))
    if changed:
        console.print(rows)
    facts(console, [(name, ", ".join(report[name])) for name in ("removed", "added", "changed")])
    console.print("equal" if report["equal"] else "not equal")
