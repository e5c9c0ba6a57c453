"""Units of latencies, their conversion to milliseconds, and their form in reports."""

from __future__ import annotations

from typing import Any

PATH_UNIT = "critical-path instructions"
"""The unit of a latency if an emulator runs several cores: instructions along the longest chain of slices."""

MODEL_UNIT = "cycles (model)"
"""The unit of a latency that a cycle model computed from counted instructions."""

ESTIMATE_UNIT = "cycles (model and estimate)"
"""The unit of a latency that is estimated for a unit beside the core, and modelled for the core."""

CALIBRATED_UNIT = "cycles (calibrated)"
"""The unit of an estimate that is multiplied by factors measured on the board."""

LOWER_BOUND = "one clock an instruction"
"""The source of milliseconds, then a lower bound, if only instruction counts are known."""

HARDWARE_UNITS = frozenset({"us", "cycles"})
"""The units of times that hardware measures: they contain the waits for slow memories."""

_SOURCES = {
    "us": "timer",
    "cycles": "cycles",
    MODEL_UNIT: "cycle model",
    ESTIMATE_UNIT: "estimate",
    CALIBRATED_UNIT: "calibration",
}


def milliseconds(value: float, unit: str, clock_hz: int) -> float:
    """Convert ticks to milliseconds; a tick of any unit but microseconds ("us") is one clock."""
    return value / 1000 if unit == "us" else 1000 * value / clock_hz


def source_of(unit: str) -> str:
    """Return the source of milliseconds: one of _SOURCES, or LOWER_BOUND for other units."""
    return _SOURCES.get(unit, LOWER_BOUND)


def unit_of_cycles(has_unit: bool) -> str:
    """Return the unit of modelled cycles; `has_unit`: whether the core has a unit beside it."""
    return ESTIMATE_UNIT if has_unit else MODEL_UNIT


def manner_of(unit: str) -> str:
    """Return the origin of a run's latency: `measured`, `modelled`, `estimated` in part, or `counted`."""
    known = {MODEL_UNIT: "modelled", ESTIMATE_UNIT: "estimated"}
    return "measured" if unit in HARDWARE_UNITS else known.get(unit, "counted")


def time_text(duration_ms: float, source: str) -> str:
    """Format milliseconds for people, with "at least" if only instruction counts are known."""
    digits = 0 if duration_ms >= 1000 else 1 if duration_ms >= 1 else 2
    return f"{'≥ ' if source == LOWER_BOUND else ''}{duration_ms:,.{digits}f} ms"


def latency_object(value: float, unit: str, clock_hz: int) -> dict[str, Any]:
    """Return a latency with its milliseconds as a JSON object; `milliseconds_by` names their source."""
    return {
        "value": value,
        "unit": unit,
        "milliseconds": milliseconds(value, unit, clock_hz),
        "milliseconds_by": source_of(unit),
        "clock_hz": clock_hz,
    }
