"""Latencies as tables tell them."""

from __future__ import annotations

from mcudeploy.cli.output import Values, plain
from mcudeploy.ir.clock import LEAST

_HOW = {LEAST: f" and {LEAST}, the least", "cycle model": ", modelled"}


def latency_text(latency: Values | None) -> str:
    """Ticks with their milliseconds in brackets, where these are not what was measured anyway."""
    if not latency:
        return ""
    ticks = f"{latency['value']:,.0f} {plain(latency['unit'])}"
    by = latency.get("milliseconds_by")
    if by in (None, "timer"):
        return ticks
    clock = f"{latency['clock_hz'] / 1e6:g} MHz"
    return f"{ticks} ({latency['milliseconds']:,.2f} ms at {clock}{_HOW.get(by, '')})"


def milliseconds_text(latency: Values | None) -> str:
    """Milliseconds alone, for a column; at least so many where only instructions are known."""
    if latency is None:
        return "-"
    least = "≥ " if latency["milliseconds_by"] == LEAST else ""
    return f"{least}{latency['milliseconds']:,.{1 if latency['milliseconds'] < 1000 else 0}f} ms"


def latency_facts(report: Values) -> list[tuple[str, str]]:
    """The latency, or its estimate, and what the split costs of it."""
    estimated = report.get("estimated_latency")
    if report.get("latency") or not estimated:
        facts = [("latency", latency_text(report.get("latency")))]
    else:
        facts = [("latency", f"{milliseconds_text(estimated)}, estimated")]
    overhead, unsplit = report.get("overhead_percent"), report.get("unsplit_latency")
    if overhead is None or not report.get("splits"):
        return facts
    if report["overhead_source"] == "estimated":
        return [*facts, ("overhead", f"{overhead:+.2f} % of the unsplit plan's latency, estimated")]
    return [*facts, ("overhead", f"{overhead:+.2f} % of the unsplit plan's {latency_text(unsplit)}")]
