"""Reports about board files and attached devices as tables for people."""

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


def devices(console: Console, report: Values) -> None:
    """The report of `devices`."""
    table = table_of("device", "kind", "USB id", "serial number", "port", "may be")
    for device in report["devices"]:
        port = device["port"] + ("" if device["allowed"] else " (no access: see doctor)")
        known = (device["name"], device["kind"], device["usb_id"], device["serial"], port)
        table.add_row(*map(cell, (*known, ", ".join(device["boards"]))))
    if report["devices"]:
        console.print(table)
    else:
        console.print(cell("no probe, no boot loader and no serial port is attached"))
