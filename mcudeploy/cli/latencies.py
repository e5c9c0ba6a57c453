"""Latencies as text: the time first, then in brackets the counts it comes from."""

from __future__ import annotations

from mcudeploy.cli.output import Values
from mcudeploy.common.text import plain
from mcudeploy.ir.clock import LOWER_BOUND, time_text

_LEAST_PERCENT_SHOWN = 0.5
"""Percent of the latency below which waits for flash are not shown."""
_HOW = {LOWER_BOUND: f" and {LOWER_BOUND}, the least"}


def latency_of(report: Values) -> Values | None:
    """Return the latency that stands for a plan: the measured one, or the modelled cycles if the measured one
    counts instructions only.
    """
    measured: Values | None = report.get("latency")
    estimated: Values | None = report.get("estimated_latency")
    if measured and estimated and _is_least(measured) and not _is_least(estimated):
        return estimated
    return measured or estimated


def _is_least(latency: Values) -> bool:
    return bool(latency.get("milliseconds_by") == LOWER_BOUND)


def milliseconds_text(latency: Values | None) -> str:
    """Return milliseconds alone, for a column; a lower bound if only instructions are known."""
    return "-" if latency is None else time_text(latency["milliseconds"], latency["milliseconds_by"])


def latency_facts(report: Values) -> list[tuple[str, str]]:
    """Return the latency, or its estimate, and the overhead of the split."""
    facts = [("latency", _latency(report))]
    overhead, unsplit = report.get("overhead_percent"), report.get("unsplit_latency")
    if overhead is None or not report.get("splits"):
        return facts
    if report["overhead_source"] == "estimated":
        compared = "latency" if _compares_latency(report) else "instructions, without waits"
        base = f"{compared} under this --flash-limit" if report.get("flash_limit") else compared
        return [*facts, ("overhead", f"{overhead:+.2f} % of the unsplit plan's {base}, estimated")]
    return [*facts, ("overhead", f"{overhead:+.2f} % of the unsplit plan's {_ticks(unsplit)}")]


def _compares_latency(report: Values) -> bool:
    """Whether the search compared the time that is shown; with `--objective instructions` it may not."""
    objective, shown = report.get("estimates"), report.get("estimated_latency")
    return not (objective and shown and objective["unit"] == "instructions" and shown.get("flash_stalls"))


def _latency(report: Values) -> str:
    measured, latency = report.get("latency"), latency_of(report)
    if not latency:
        return ""
    by = latency.get("milliseconds_by")
    if not measured:
        return _estimate(latency)
    if latency is not measured:
        least = f"{measured['milliseconds']:,.2f} ms at {LOWER_BOUND}, the least"
        return f"{_estimate(latency)} ({_ticks(measured)} counted: {least})"
    if by in (None, "timer"):
        return _ticks(latency)
    how = {"cycle model": ", modelled", "estimate": ", estimated in part"}.get(by, "")
    clock = f"{latency['clock_hz'] / 1e6:g} MHz{_HOW.get(by, '')}"
    return f"{milliseconds_text(latency)}{how} ({_ticks(latency)} at {clock})"


def _estimate(latency: Values) -> str:
    known = {"cycle model": "modelled", "calibration": "calibrated"}
    how = known.get(latency["milliseconds_by"], "estimated")
    return f"{milliseconds_text(latency)}, {how}{_waits(latency)}"


def _waits(latency: Values) -> str:
    percent = 100 * (latency.get("flash_stalls") or 0) / (latency["value"] or 1)
    return f", {percent:.0f} % of it waiting for flash" if percent >= _LEAST_PERCENT_SHOWN else ""


def _ticks(latency: Values | None) -> str:
    return f"{latency['value']:,.0f} {plain(latency['unit'])}" if latency else ""
