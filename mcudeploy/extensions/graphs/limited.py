"""The flow of `graph order --memory`: an order, and the offloading or rematerialising that makes it fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.checker.residency import check_residency
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import FitError
from mcudeploy.common.fast import lacking
from mcudeploy.common.files import write_file
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.extensions.graphs.ordering import AUTO, GraphOrder, order_graph
from mcudeploy.extensions.graphs.plaingraph import PlainGraph, PlainNode
from mcudeploy.ir.trace import Item, ItemAccess, MemoryLink, Residency, Trace, TraceStep
from mcudeploy.planner.offload.exact_cycles import MOST_STEPS, exact_cycles
from mcudeploy.planner.offload.offload import plan_residency

CYCLES_PER_BYTE = 0.25
"""The cycles of an operator per byte of its inputs and outputs, in addition to one cycle per FLOP."""

_ONCE = 0.25
"""The most FLOP per byte of an operator that reads its inputs once: one FLOP per number of four bytes.

Such an operator may access the slow memory directly.
"""

_EXACT_S = 20.0
"""The exact model takes at most a quarter of this time, or of the seconds of the user if these are fewer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A fast memory of `percent` of the unlimited peak, the link to a slow one, and whether steps may repeat.

    `rate` is in bytes per cycle each way (0: no link), `latency` in cycles.
    """

    percent: float
    rate: float = 0.0
    latency: float = 0.0
    recompute: bool = False

    @property
    def link(self) -> MemoryLink:
        """Return the link in the form that residencies use."""
        return MemoryLink(self.rate, self.rate, self.latency)


@dataclass(frozen=True, slots=True)
class LimitedOrder:
    """A graph in its order without a limit, its access trace, and its residency within `limit_bytes`.

    `least_cycles` is the exact model's lower bound for plans of this order; None if the model does not apply
    or OR-Tools is missing.
    """

    ordered: GraphOrder
    trace: Trace
    plan: Residency
    limit_bytes: int
    least_cycles: float | None

    @property
    def base_cycles(self) -> float:
        """Return the cycles of all steps without a limit."""
        return sum(step.cycles for step in self.trace.steps)


def order_limited(
    path: Path, seconds: float, limits: Limits, method: str = AUTO, progress: Progress = SILENT
) -> LimitedOrder:
    """Order a graph as without a limit, then find the cheapest residency within the limit.

    Raises ModelError for a file that is not such a graph, FitError if no residency fits.
    """
    effort = Effort.of(seconds)
    ordered = order_graph(path, effort.part(0.5), method, progress)
    graph, best = ordered.graph, ordered.best
    trace = trace_of(graph, best.order)
    limit = int(best.peak_bytes * limits.percent / 100)
    progress.stage(f"planning for {limit:,} B of fast memory")
    plan = plan_residency(trace, limit, limits.link, recompute=limits.recompute, effort=effort, reorder=True)
    if plan is None:
        other = "a link (--link)" if limits.recompute else "repeated steps (--recompute)"
        raise FitError(
            f"{graph.name}: no plan was found for {limit} B of fast memory ({limits.percent:g} % of the peak "
            f"of {best.peak_bytes} B): allow more memory, more time, or {other}"
        )
    check_residency(plan, trace, limit)
    return LimitedOrder(ordered, trace, plan, limit, _least_cycles(trace, limit, limits, seconds))


def _least_cycles(trace: Trace, limit: int, limits: Limits, seconds: float) -> float | None:
    """Return the exact model's lower bound for plans of this order, found in a fraction of the seconds.

    None without OR-Tools, if the graph is too large or has no link, or if steps may repeat, which the model
    does not cover.
    """
    if "ortools" in lacking() or len(trace.steps) > MOST_STEPS or not limits.rate or limits.recompute:
        return None
    effort = Effort.of(min(seconds, _EXACT_S) / 4)
    bound = exact_cycles(trace, limit, limits.link, effort)
    base = sum(step.cycles for step in trace.steps)
    return None if bound is None else max(base, bound.bound_cycles)


def write_plan(limited: LimitedOrder, path: Path) -> None:
    """Write the ids of the nodes in execution order, and the transfers between them."""
    graph, order, plan = limited.ordered.graph, limited.ordered.best.order, limited.plan
    places = (graph.steps[order[step.origin]] for step in plan.trace.steps)
    content = {
        "name": graph.name,
        "peak_bytes": plan.peak_bytes,
        "order": [graph.nodes[place].id for place in places],
        "passages": [
            {
                "item": plan.trace.items[transfer.item].name,
                "direction": transfer.direction,
                "start": transfer.start,
                "end": transfer.end,
            }
            for transfer in plan.transfers
        ],
    }
    write_file(path, json.dumps(content) + "\n")


def trace_of(graph: PlainGraph, order: Sequence[int]) -> Trace:
    """Return the trace of the problem's steps in `order`; its items are the memories that they access.

    Inputs are in the fast memory before the first step. Parameters are not items; updated
    parameters are items without bytes, so that no reader of them is repeated after their update.
    """
    nodes = [graph.nodes[graph.steps[step]] for step in order]
    written = {graph.roots[tensor] for node in nodes for tensor in node.outputs}
    touched = dict.fromkeys(graph.roots[tensor] for node in nodes for tensor in (*node.inputs, *node.outputs))
    roots = [root for root in touched if _is_item(graph, root, written)]
    item_of = {root: place for place, root in enumerate(roots)}
    items = tuple(_item(graph, root) for root in roots)
    available = set(graph.inputs | graph.persistent)
    steps = []
    for node in nodes:
        steps.append(_step(graph, node, item_of, available))
        available.update(graph.roots[tensor] for tensor in node.outputs)
    return Trace(items, tuple(steps))


def _is_item(graph: PlainGraph, root: int, written: set[int]) -> bool:
    return root in written if root in graph.persistent else graph.tensor_bytes[root] > 0


def _item(graph: PlainGraph, root: int) -> Item:
    if root in graph.persistent:
        return Item(graph.tensor_names[root], 0, loaded=True, kept=True, fixed=True)
    size = graph.tensor_bytes[root]
    return Item(graph.tensor_names[root], size, kept=root in graph.kept, loaded=root in graph.inputs)


def _step(graph: PlainGraph, node: PlainNode, item_of: dict[int, int], available: set[int]) -> TraceStep:
    """Return the step of a node, which also reads memory that it writes in part or in place."""
    size = sum(graph.tensor_bytes[tensor] for tensor in (*node.inputs, *node.outputs))
    outputs = dict.fromkeys(graph.roots[tensor] for tensor in node.outputs)
    inputs = dict.fromkeys(graph.roots[tensor] for tensor in node.inputs)
    inputs.update(dict.fromkeys(root for root in outputs if root in available))
    once = node.flops <= _ONCE * size

    def access(root: int, *, writes: bool) -> ItemAccess:
        direct = graph.tensor_bytes[root] if once and root not in graph.persistent else None
        return ItemAccess(item_of[root], writes, item_of[root], direct)

    accesses = (
        *(access(root, writes=False) for root in inputs if root in item_of),
        *(access(root, writes=True) for root in outputs if root in item_of),
    )
    return TraceStep(node.name or f"{node.op} {node.id}", node.flops + CYCLES_PER_BYTE * size, accesses)
