"""Bounds of instructions and cycles as tables."""

from __future__ import annotations

from rich.console import Console

from mcudeploy.cli.output import Values, cell
from mcudeploy.cli.table_grids import ReportSection, table_of
from mcudeploy.common.text import plain


def bounds_facts(report: Values) -> list[tuple[str, str]]:
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


def bounds_table(console: Console, report: Values) -> None:
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


SECTION = ReportSection(bounds_table, bounds_facts)
