"""Reports about boards, attached devices and what is missing for them, as tables for people."""

from __future__ import annotations

from rich.console import Console

from mcudeploy.cli.output import Values, cell
from mcudeploy.cli.table_grids import facts, table_of
from mcudeploy.common.text import plain


def boards(console: Console, report: Values) -> None:
    """Print the `boards` report."""
    table = table_of("board", "core", "flash>", "memories", "runs on", "radio")
    table.columns[0].no_wrap = True  # the name is what --board takes
    for board in report["boards"]:
        memories = ", ".join(f"{name} {_binary(size)}" for name, size in board["memories"].items())
        memories += "".join(f"; {link['engine']}" for link in board["links"])
        flash = _binary(board["flash_bytes"])
        ways = ["hardware"] * board["hardware"] + [board["emulator"]] * bool(board["emulator"])
        runs = ", ".join(ways) or ("library only" if board["facts_only"] else "this computer")
        runs += ", calibrated" * board["calibrated"]
        core = f"{board['cores']} x {board['core']}" if board["cores"] > 1 else board["core"]
        table.add_row(*map(cell, (board["name"], core, flash, memories, runs, ", ".join(board["radio"]))))
    console.print(table)
    names = ", ".join(board["name"] for board in report["boards"] if board["calibrated"])
    text = f"measured factors: {plain(names) or 'of no board yet'}; `mcudeploy calibrate` measures them"
    console.print(cell(text), soft_wrap=True)


def checks(console: Console, report: Values) -> None:
    """Print the `doctor` report."""
    table = table_of("", "check", "found", "remedy")
    for check in report["checks"]:
        mark = cell("ok", "green") if check["ok"] else cell("missing", "red")
        table.add_row(
            mark, cell(check["name"]), cell(check["found"]), cell("" if check["ok"] else check["remedy"])
        )
    console.print(table)


def new(console: Console, report: Values) -> None:
    """Print the report of `boards --new`."""
    text = f"wrote {report['file']}, a copy of {report['like']}: correct its facts; --board takes its path"
    console.print(cell(text), soft_wrap=True)


def explained(console: Console, report: Values) -> None:
    """Print the report of `boards --explain`."""
    about = ("board", "file", "comment", "source")
    facts(console, [(name, plain(report[name])) for name in about])
    table = table_of("fact", "value", "source")
    previous = ""
    for fact in report["facts"]:
        origin = fact["origin"]
        table.add_row(*map(cell, (fact["fact"], fact["value"], "" if origin == previous else origin)))
        previous = origin
    console.print(table)


def devices(console: Console, report: Values) -> None:
    """Print the report of `devices`."""
    table = table_of("device", "kind", "USB id", "serial number", "port", "may be")
    for device in report["devices"]:
        port = device["port"] + ("" if device["allowed"] else " (no access: see doctor)")
        texts = (device["name"], device["kind"], device["usb_id"], device["serial"], port)
        table.add_row(*map(cell, (*texts, ", ".join(device["boards"]))))
    if report["devices"]:
        console.print(table)
    else:
        console.print(cell("no probe, no boot loader and no serial port is attached"))


def _binary(size: int) -> str:
    for unit, scale in (("M", 1024**2), ("K", 1024)):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size:,} B"
