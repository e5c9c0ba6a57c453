"""Conversion of ticks to milliseconds at a board's clock, and latencies as reports show them."""

from __future__ import annotations

from typing import Any

PATH_UNIT = "critical-path instructions"
"""The unit of a latency if an emulator runs several cores: instructions along the longest chain of slices."""

MODEL_UNIT = "cycles (model)"
"""The unit of a latency that a cycle model computed from counted instructions."""

ESTIMATE_UNIT = "cycles (model and estimate)"
"""The unit of a latency whose parts on a unit beside the core are estimated, and the others modelled."""

CALIBRATED_UNIT = "cycles (calibrated)"
"""The unit of an estimate that factors measured on the board correct."""

LEAST = "one clock an instruction"
"""The source of milliseconds if only instruction counts are known; they are a lower bound."""

HARDWARE_UNITS = frozenset({"us", "cycles"})
"""The units of times that hardware measures: they contain the waits for slow memories."""

_BY = {
    "us": "timer",
    "cycles": "cycles",
    MODEL_UNIT: "cycle model",
    ESTIMATE_UNIT: "estimate",
    CALIBRATED_UNIT: "calibration",
}


def milliseconds(value: float, unit: str, clock_hz: int) -> float:
    """Convert ticks of a unit to milliseconds: microseconds directly, any other unit as one clock each."""
    return value / 1000 if unit == "us" else 1000 * value / clock_hz


def source_of(unit: str) -> str:
    """Return the source of milliseconds: the `timer` or `cycles` of hardware, a `cycle model`, a model with
    the factors of a `calibration`, or LEAST.
    """
    return _BY.get(unit, LEAST)


def unit_of_cycles(has_unit: bool) -> str:
    """Return the unit of cycles of a core, with a unit beside it or without."""
    return ESTIMATE_UNIT if has_unit else MODEL_UNIT


def manner_of(unit: str) -> str:
    """Return how a run's latency is known: `measured` on hardware, `modelled`, `estimated` in parts, or
    `counted` instructions.
    """
    known = {MODEL_UNIT: "modelled", ESTIMATE_UNIT: "estimated"}
    return "measured" if unit in HARDWARE_UNITS else known.get(unit, "counted")


def time_text(duration_ms: float, source: str) -> str:
    """Format milliseconds for people, with "at least" if only instruction counts are known."""
    digits = 0 if duration_ms >= 1000 else 1 if duration_ms >= 1 else 2
    return f"{'≥ ' if source == LEAST else ''}{duration_ms:,.{digits}f} ms"


def latency_object(value: float, unit: str, clock_hz: int) -> dict[str, Any]:
    """Return a latency with its milliseconds as a JSON object; `milliseconds_by` names their source."""
    return {
        "value": value,
        "unit": unit,
        "milliseconds": milliseconds(value, unit, clock_hz),
        "milliseconds_by": source_of(unit),
        "clock_hz": clock_hz,
    }
