"""Reports about board files as tables for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from mcudeploy.cli.grids import facts, table_of
from mcudeploy.cli.output import cell, plain

Values = Mapping[str, Any]


def new(console: Console, report: Values) -> None:
    """The report of `boards --new`."""
    text = f"wrote {report['file']}, a copy of {report['like']}: correct its facts; --board takes its path"
    console.print(cell(text), soft_wrap=True)


def explained(console: Console, report: Values) -> None:
    """The report of `boards --explain`."""
    about = ("board", "file", "comment", "source")
    facts(console, [(name, plain(report[name])) for name in about])
    table = table_of("fact", "value", "where it is from")
    before = ""
    for fact in report["facts"]:
        said = fact["comment"] or report["source"]
        table.add_row(*map(cell, (fact["fact"], fact["value"], "" if said == before else said)))
        before = said
    console.print(table)
