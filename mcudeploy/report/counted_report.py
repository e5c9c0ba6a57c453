"""The parts of a report that counts of the emulator replace or add: `--timing`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcudeploy.execution.cycles.memory_traffic import MemoryTraffic
from mcudeploy.execution.cycles.profile import CORES
from mcudeploy.execution.results import Measured
from mcudeploy.ir.clock import latency_object
from mcudeploy.report.cycles_report import cycles_report

JsonObject = dict[str, Any]
UNIT = "instructions + stalls (model)"
SOURCE = (
    "loads and stores counted in the emulator, by the rates and wait states of the board file; instruction "
    "fetches are assumed to be in time, and constants that fit a cache to be read once a step; transfers of "
    "engines are not counted"
)


def counted_report(result: Measured, measured: Mapping[str, Any]) -> JsonObject:
    """Return the keys of a report of `measure` or `run` that counts of operators replace or add."""
    deployment = result.device_run.deployment
    if result.profile is None:
        traffic = _traffic(result.traffic, measured, UNIT)
    else:
        cycles = cycles_report(result.profile, CORES[deployment.board.core], measured)
        traffic = cycles | _traffic(result.traffic, cycles, cycles["latency"]["unit"])
    value, unit = traffic["latency"]["value"], traffic["latency"]["unit"]
    return traffic | {"latency": latency_object(value, unit, deployment.board.clock_hz)}


def _traffic(each: Mapping[str, MemoryTraffic], report: Mapping[str, Any], unit: str) -> JsonObject:
    """Return the keys of a report of `measure` or `run` that counted accesses replace or add.

    The stalls are added to latency and operators, as `unit` states.
    """
    whole = MemoryTraffic.total(each.values())
    spent = {it["name"]: it["ticks"] + each[it["name"]].stalls for it in report["operators"]}
    return {
        "latency": {"value": round(report["latency"]["value"] + whole.stalls), "unit": unit},
        "overhead_percent": None,
        "overhead_source": None,
        "operators": [
            {
                **operator,
                "ticks": round(spent[operator["name"]]),
                "stall_cycles": round(each[operator["name"]].stalls),
                "traffic_counted": each[operator["name"]].by_region,
                "share": spent[operator["name"]] / (sum(spent.values()) or 1),
            }
            for operator in report["operators"]
        ],
        "traffic_counted": {
            name: {"loaded": whole.loaded[name], "stored": whole.stored[name]} for name in whole.by_region
        },
        "stalls": {
            "cycles": round(whole.stalls),
            "by_memory": {name: round(waits) for name, waits in whole.stall_cycles.items() if waits},
            "percent": 100 * whole.stalls / (report["latency"]["value"] or 1),
            "source": SOURCE,
        },
    }
