"""The cost of a memory limit for training graphs, and the gap of plans to the exact model.

Prints the tables of docs/residency.md.

    PYTHONPATH=. python benchmarks/residency.py MODELS/training [--seconds S] [--only TABLE] [--rows N]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import process_time

from mcudeploy.checker.residency import check_residency
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import FitError
from mcudeploy.extensions.graphs.limited import trace_of
from mcudeploy.extensions.graphs.plaingraph import load_plain_graph
from mcudeploy.ir.trace import MemoryLink, Trace
from mcudeploy.planner.offload.exact_cycles import exact_cycles
from mcudeploy.planner.offload.offload import plan_residency
from mcudeploy.planner.offload.passive import passive_plan
from mcudeploy.planner.order.portfolio import DEFAULT, best_order
from tests.residency.random_traces import peak_bytes, training_step

CASES = (
    ("vit_d64_l4_b8", 20),
    ("mbv2_w035_96_b8", 25),
    ("resnet8_b8", 30),
    ("gpt_d64_l2_b8", 30),
    ("vggish_32_b1", 75),
)
NAMES = (*(name for name, _ in CASES), "tinyengine_49kb_int8", "gpt2_12l_t512_b32")
MEANS = (
    ("resnet8_b8", 50, 0.02),
    ("resnet8_b1", 50, 0.01),
    ("vit_d64_l4_b8", 50, 0.01),
    ("gpt_d64_l2_b8", 50, 0.01),
    ("mbv2_w035_96_b8", 50, 0.02),
    ("vggish_32_b1", 75, 0.005),
    ("gpt2_12l_t512_b32", 50, 0.05),
    ("tinyengine_49kb_int8", 98, 0.05),
)
"""Networks, percent of their peak, and bytes per cycle of a link that is too slow for swaps alone."""
EXACT = ((0, 12, 0.1), (1, 16, 0.05), (2, 20, 0.05), (3, 24, 0.05), (4, 30, 0.05), (5, 38, 0.2))
EXACT += ((6, 12, 0.2), (7, 16, 0.1), (8, 20, 0.05), (9, 24, 0.1))


class Graphs:
    """Traces in their best order, with the peak without a limit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[Trace, int]] = {}

    def __getitem__(self, name: str) -> tuple[Trace, int]:
        if name not in self._known:
            graph = load_plain_graph(self._folder / f"{name}.json.gz")
            order = best_order(graph.problem, Effort.of(30), DEFAULT, updates=graph.updates)
            self._known[name] = trace_of(graph, order.order), order.peak_bytes
        return self._known[name]


def row(graphs: Graphs, case: tuple[str, float, float], recompute: bool, seconds: float) -> str:
    """Return a line of a table, for a graph, percent of its peak and bytes per cycle."""
    name, percent, rate = case
    trace, peak = graphs[name]
    limit, link = int(peak * percent / 100), MemoryLink(rate, rate)
    base = sum(step.cycles for step in trace.steps)
    start = process_time()
    head = f"| {name} | {percent:g} % | {rate:g} |"
    try:
        plan = plan_residency(
            trace, limit, link, recompute=recompute, effort=Effort.of(seconds), reorder=True
        )
    except FitError as error:
        return f"{head} {error} |"
    if plan is None:
        return f"{head} no plan |"
    check_residency(plan, trace, limit)
    moved = sum(trace.items[transfer.item].size_bytes for transfer in plan.transfers)
    return (
        f"{head} {100 * (plan.cycles / base - 1):.2f} % | {100 * plan.exposed_cycles / base:.2f} % | "
        f"{100 * plan.repeated_cycles / base:.2f} % | {len(plan.transfers)} | {moved / 1e6:.1f} | "
        f"{plan.method} | {process_time() - start:.1f} |"
    )


def tables(graphs: Graphs, seconds: float) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield names and lines."""
    yield "targets", (row(graphs, (*case, 0.2), True, seconds) for case in CASES)
    yield "swap", (row(graphs, (*case, 0.2), False, seconds) for case in CASES)
    half = tuple((name, max(50, least)) for name, least in CASES if name != "vggish_32_b1")
    yield "slow", (row(graphs, (*case, 0.05), True, seconds) for case in (*half, ("vggish_32_b1", 75)))
    yield (
        "curve",
        (
            row(graphs, (name, percent, 0.01), True, seconds)
            for name, least in CASES
            for percent in (90, 75, 50, 30)
            if percent >= least
        ),
    )
    yield "alone", (row(graphs, (name, 50, 0), True, seconds) for name in NAMES[:4])
    yield "large", (row(graphs, (NAMES[-1], percent, 0.2), True, seconds) for percent in (50, 30))
    yield "passive", (passive_row(graphs, *case) for case in CASES)
    yield "means", (means_row(graphs, *case, seconds) for case in MEANS)
    yield "exact", (exact_row(*case, seconds) for case in EXACT)


def means_row(graphs: Graphs, name: str, percent: float, rate: float, seconds: float) -> str:
    """Return the cost by transfers alone, by repeated steps alone, and by both: waits plus repeated time."""
    trace, peak = graphs[name]
    base, cells = sum(step.cycles for step in trace.steps), []
    for rate_used, recompute in ((rate, False), (0.0, True), (rate, True)):
        link, limit = MemoryLink(rate_used, rate_used), int(peak * percent / 100)
        plan = plan_residency(
            trace, limit, link, recompute=recompute, effort=Effort.of(seconds), reorder=True
        )
        if plan is None:
            cells.append("impossible")
            continue
        check_residency(plan, trace, limit)
        parts = f" ({100 * plan.exposed_cycles / base:.2f} + {100 * plan.repeated_cycles / base:.2f})"
        cells.append(f"{100 * (plan.cycles / base - 1):.2f} %{parts if recompute and rate_used else ''}")
    return f"| {name} | {percent:g} % | {rate:g} | {' | '.join(cells)} |"


def passive_row(graphs: Graphs, name: str, percent: float) -> str:
    """Return the cost of evicting on demand."""
    trace, peak = graphs[name]
    limit, link = int(peak * percent / 100), MemoryLink(0.2, 0.2)
    plan = passive_plan(trace, limit, link)
    if plan is None:
        return f"| {name} | {percent:g} % | no plan |"
    check_residency(plan, trace, limit)
    share = 100 * plan.exposed_cycles / (plan.cycles - plan.exposed_cycles)
    return f"| {name} | {percent:g} % | {share:.2f} % |"


def exact_row(seed: int, steps: int, rate: float, seconds: float) -> str:
    """Return a random training step beside the exact model."""
    trace, link = training_step(seed, steps), MemoryLink(rate, rate)
    needed = max(sum(trace.items[a.item].size_bytes for a in step.accesses) for step in trace.steps)
    limit = max(needed, int(0.6 * peak_bytes(trace)))
    base = sum(step.cycles for step in trace.steps)
    exact = exact_cycles(trace, limit, link, Effort.of(60))
    plan = plan_residency(trace, limit, link, recompute=False, effort=Effort.of(seconds))
    assert exact is not None and plan is not None
    check_residency(plan, trace, limit)
    proven = "" if exact.optimal else f" (at least {exact.bound_cycles:.0f})"
    return (
        f"| {seed} | {steps} | {rate:g} | {base:.0f} | {exact.cycles:.0f}{proven} | {plan.cycles:.0f} | "
        f"{100 * (plan.cycles / exact.bound_cycles - 1):.2f} % |"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", type=int, help="of each table, the first")
    options = parser.parse_args()
    for name, lines in tables(Graphs(options.folder), options.seconds):
        if options.only in {"", name}:
            print(f"\n{name}", flush=True)
            for line in islice(lines, options.rows):
                print(line, flush=True)


if __name__ == "__main__":
    main()
