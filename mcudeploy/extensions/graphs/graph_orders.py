"""The JSON object of `graph order`."""

from __future__ import annotations

from typing import Any

from mcudeploy.extensions.graphs.limited import LimitedOrder
from mcudeploy.extensions.graphs.ordering import GraphOrder

JsonObject = dict[str, Any]


def graph_order(ordered: GraphOrder) -> JsonObject:
    """Report a graph's best order. Peaks and the lower bound are in bytes."""
    graph, best = ordered.graph, ordered.best
    return {
        "name": graph.name,
        "nodes": len(graph.nodes),
        "steps": graph.problem.steps,
        "peak_bytes": best.peak_bytes,
        "file_order_peak_bytes": graph.problem.peak(range(graph.problem.steps)),
        "lower_bound_bytes": best.lower_bound_bytes,
        "status": best.status,
        "method": best.method,
        "seconds": ordered.seconds,
    }


def graph_order_limited(limited: LimitedOrder) -> JsonObject:
    """Report the order and its residency under a limit of the fast memory."""
    plan, base = limited.plan, limited.base_cycles
    sizes = [limited.trace.items[transfer.item].size_bytes for transfer in plan.transfers]
    repeated = len(plan.trace.steps) - len(limited.trace.steps)
    return graph_order(limited.ordered) | {
        "memory_limit_bytes": limited.limit_bytes,
        "fast_peak_bytes": plan.peak_bytes,
        "transfers": {"count": len(sizes), "bytes": sum(sizes), "exposed_cycles": plan.exposed_cycles},
        "recompute": {"steps": repeated, "cycles": plan.repeated_cycles},
        "base_cycles": base,
        "cycles": plan.cycles,
        "overhead_percent": 100 * (plan.cycles / base - 1) if base else 0.0,
        "residency_method": plan.method,
        "least_cycles": limited.least_cycles,
    }
