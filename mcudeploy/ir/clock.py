"""Ticks as time at a board's clock, and latencies as reports have them."""

from __future__ import annotations

from typing import Any

from mcudeploy.ir.plan import MODEL_UNIT

LEAST = "one clock an instruction"
"""Where milliseconds come from if only instructions are known: they are a lower bound."""
_BY = {"us": "timer", "cycles": "cycles", MODEL_UNIT: "cycle model"}


def milliseconds(value: float, unit: str, clock_hz: int) -> float:
    """Ticks of a unit as time: microseconds as they are, all others a clock each."""
    return value / 1000 if unit == "us" else 1000 * value / clock_hz


def source_of(unit: str) -> str:
    """Where milliseconds come from: the `timer` or the `cycles` of hardware, a `cycle model`, or LEAST."""
    return _BY.get(unit, LEAST)


def time_text(duration_ms: float, source: str) -> str:
    """Milliseconds for people; at least as many where only instructions are known."""
    digits = 0 if duration_ms >= 1000 else 1 if duration_ms >= 1 else 2
    return f"{'≥ ' if source == LEAST else ''}{duration_ms:,.{digits}f} ms"


def latency_object(value: float, unit: str, clock_hz: int) -> dict[str, Any]:
    """A latency with its milliseconds; `milliseconds_by` is their source."""
    return {
        "value": value,
        "unit": unit,
        "milliseconds": milliseconds(value, unit, clock_hz),
        "milliseconds_by": source_of(unit),
        "clock_hz": clock_hz,
    }
