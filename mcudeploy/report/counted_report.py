"""The parts of a report that counts of the emulator replace or add: `--timing`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from mcudeploy.execution.cycles.classes import Kind, classify
from mcudeploy.execution.cycles.core import Core, Cycles
from mcudeploy.execution.cycles.memory_traffic import MemoryTraffic
from mcudeploy.execution.cycles.profile import Profile, cycle_model
from mcudeploy.execution.results import Measured
from mcudeploy.ir.clock import MODEL_UNIT, latency_object
from mcudeploy.ir.engine import FLASH

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
        core = cycle_model(deployment.board.core)
        assert core is not None  # else nothing was counted
        cycles = _cycles(result.profile, core, measured)
        traffic = cycles | _traffic(result.traffic, cycles, cycles["latency"]["unit"])
    value, unit = traffic["latency"]["value"], traffic["latency"]["unit"]
    waits = round(sum(each.stall_cycles[FLASH] for each in result.traffic.values()))
    latency = latency_object(value, unit, deployment.board.clock_hz) | {"flash_stalls": waits}
    return traffic | {"latency": latency}


def _traffic(by_operator: Mapping[str, MemoryTraffic], report: Mapping[str, Any], unit: str) -> JsonObject:
    """Return the keys of a report of `measure` or `run` that counted accesses replace or add.

    The stalls are added to latency and operators, as `unit` states.
    """
    whole = MemoryTraffic.total(by_operator.values())
    spent = {it["name"]: it["ticks"] + by_operator[it["name"]].stalls for it in report["operators"]}
    return {
        "latency": {"value": round(report["latency"]["value"] + whole.stalls), "unit": unit},
        "overhead_percent": None,
        "overhead_source": None,
        "operators": [
            {
                **operator,
                "ticks": round(spent[operator["name"]]),
                "stall_cycles": round(by_operator[operator["name"]].stalls),
                "traffic_counted": by_operator[operator["name"]].by_region,
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


def _cycles(profile: Profile, core: Core, measured: Mapping[str, Any]) -> JsonObject:
    """Return the keys of a report of `measure` or `run` that the cycle model replaces or adds.

    Latency and operators get cycles; `operators` keeps the counted instructions under that name. The unsplit
    plan's latency is in instructions and cannot be compared: the overhead is null.
    """
    by_address = {name: profile.cycles(counts, core) for name, counts in profile.operators.items()}
    by_operator = {name: _sum(cycles.values()) for name, cycles in by_address.items()}
    total = _sum(by_operator.values())
    kinds: defaultdict[Kind, Cycles] = defaultdict(Cycles)
    functions: defaultdict[str, Cycles] = defaultdict(Cycles)
    for cycles in by_address.values():
        for address, spent in cycles.items():
            kinds[classify(profile.instructions[address])] += spent
            functions[profile.functions.at(address)] += spent
    whole = profile.whole()
    operators = [
        {
            **operator,
            "ticks": round(by_operator[operator["name"]].typical),
            "instructions": profile.operators[operator["name"]].total,
            "share": by_operator[operator["name"]].typical / (total.typical or 1),
        }
        for operator in measured["operators"]
    ]
    return {
        "latency": {"value": round(total.typical), "unit": MODEL_UNIT},
        "overhead_percent": None,
        "overhead_source": None,
        "operators": operators,
        "cycles_model": {
            "core": core.name,
            "source": core.source,
            "left_out": list(core.left_out),
            "instructions": whole.total,
            "cycles": round(total.typical),
            "least": round(total.least),
            "most": round(total.most),
            "histogram": {
                kind: {"instructions": count, "cycles": round(kinds[kind].typical)}
                for kind, count in profile.by_kind(whole).items()
            },
            "functions": {
                name: {"instructions": count, "cycles": round(functions[name].typical)}
                for name, count in profile.by_function(whole).items()
            },
        },
    }


def _sum(cycles: Iterable[Cycles]) -> Cycles:
    return sum(cycles, Cycles())
