"""Latencies as reports have them: ticks, and what they come to in milliseconds at a board's clock."""

from __future__ import annotations

from typing import Any

from mcudeploy.ir.plan import MODEL_UNIT

_BY = {"us": "timer", "cycles": "cycles", MODEL_UNIT: "cycle model"}


def latency_object(value: int, unit: str, clock_hz: int) -> dict[str, Any]:
    """A latency with its milliseconds. `milliseconds_by` says where these come from: the `timer` or the
    `cycles` of hardware, a `cycle model`, or `one clock an instruction`, which is the least.
    """
    milliseconds = value / 1000 if unit == "us" else 1000 * value / clock_hz
    by = _BY.get(unit, "one clock an instruction")
    return {
        "value": value,
        "unit": unit,
        "milliseconds": milliseconds,
        "milliseconds_by": by,
        "clock_hz": clock_hz,
    }
