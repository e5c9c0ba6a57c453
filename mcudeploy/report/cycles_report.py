"""Report entries of `--timing cycles-model`, in place of counted instructions and beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from mcudeploy.execution.cycles.classes import Kind, classify
from mcudeploy.execution.cycles.core import Core, Cycles
from mcudeploy.execution.cycles.profile import Profile
from mcudeploy.ir.clock import MODEL_UNIT

JsonObject = dict[str, Any]


def cycles_report(profile: Profile, core: Core, measured: Mapping[str, Any]) -> JsonObject:
    """Return the keys of a report of `measure` or `run` that the cycle model replaces or adds.

    Latency and operators get cycles; `operators` keeps the counted instructions under that name. The unsplit
    plan's latency is in instructions and cannot be compared: the overhead is null.
    """
    of_operator = {name: profile.cycles(counts, core) for name, counts in profile.operators.items()}
    each = {name: _sum(cycles.values()) for name, cycles in of_operator.items()}
    total = _sum(each.values())
    kinds: defaultdict[Kind, Cycles] = defaultdict(Cycles)
    functions: defaultdict[str, Cycles] = defaultdict(Cycles)
    for cycles in of_operator.values():
        for address, spent in cycles.items():
            kinds[classify(profile.instructions[address])] += spent
            functions[profile.functions.at(address)] += spent
    whole = profile.whole()
    operators = [
        {
            **operator,
            "ticks": round(each[operator["name"]].typical),
            "instructions": profile.operators[operator["name"]].total,
            "share": each[operator["name"]].typical / (total.typical or 1),
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
