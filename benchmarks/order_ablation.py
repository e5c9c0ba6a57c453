"""The benefit of each part of the scheduler: orders without it. Prints a Markdown table.

    python benchmarks/order_ablation.py MODEL.onnx ... GRAPH.json.gz ... [--seconds 20] [--rows N]

Models are not split, or all their operators into blocks of N rows. A row for each omitted part: higher peaks,
peaks that are no longer proven, and the CPU seconds of all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from unittest.mock import patch

from mcudeploy.common.effort import UNITS_PER_SECOND, Effort
from mcudeploy.extensions.graphs.plaingraph import load_plain_graph
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.order import portfolio
from mcudeploy.planner.order.order_problem import OrderOutcome, OrderProblem
from mcudeploy.planner.order.portfolio import DEFAULT, Ordered, best_order
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.order.tiled import problem_of
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow

Case = tuple[str, OrderProblem, tuple[int, ...]]
"""A name, a problem, and the steps that may be deferred."""


def _uncut(problem: OrderProblem) -> list[tuple[list[int], OrderProblem]]:
    return [(list(range(problem.steps)), problem)]


def _as_it_is(problem: OrderProblem, _: Effort) -> tuple[OrderProblem, list[int]]:
    return problem, list(range(problem.steps))


PARTS: dict[str, tuple[str, Callable[..., object]]] = {
    "series decomposition": ("in_series", _uncut),
    "contraction": ("contracted", _as_it_is),
    "minimum cuts": ("least_needs", lambda problem, needs, effort, most: needs),
    "best-first search": ("best_first", lambda problem, floor, beat, effort: OrderOutcome(None, floor)),
}
"""Parts that are not methods: a name in `portfolio`, and its replacement."""


def case(path: Path, rows: int | None) -> Case:
    """Return the problem of a file, models in blocks of some rows."""
    if path.suffix == ".onnx":
        model = load_model(path)
        flow = Dataflow.of(model.graph)
        sizes = zip(model.graph.operators, flow.iteration_rows, strict=True)
        tiled = TiledGraph(flow, {operator.name: min(rows or most, most) for operator, most in sizes})
        steps = reverse_post_order(tiled).steps
        return path.parent.name, problem_of(tiled, model.work, steps=steps), ()
    graph = load_plain_graph(path)
    return graph.name, graph.problem, graph.updates


def orders(
    cases: Sequence[Case], seconds: float, methods: Collection[str]
) -> tuple[dict[str, Ordered], float]:
    """Return the best order of each case, and the CPU seconds of all."""
    start = time.process_time()
    results = {
        name: best_order(problem, Effort(seconds * UNITS_PER_SECOND), methods, updates=updates)
        for name, problem, updates in cases
    }
    return results, time.process_time() - start


def row(left_out: str, full: dict[str, Ordered], others: dict[str, Ordered], seconds: float) -> str:
    """Return a line of the table."""
    higher = (
        f"{name} {100 * (each.peak_bytes / full[name].peak_bytes - 1):+.1f} %"
        for name, each in others.items()
        if each.peak_bytes != full[name].peak_bytes
    )
    open_now = (
        name for name, each in others.items() if each.status != "optimal" and full[name].status == "optimal"
    )
    return f"| {left_out} | {', '.join(higher)} | {', '.join(open_now)} | {seconds:.1f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--seconds", type=float, default=20.0, help="effort for each order")
    parser.add_argument("--rows", type=int, help="rows of the blocks that models are cut into")
    arguments = parser.parse_args()
    cases = [case(path, arguments.rows) for path in arguments.files]
    full, seconds = orders(cases, arguments.seconds, DEFAULT)
    print("| without | higher peaks | no longer proven | CPU seconds |\n| --- | --- | --- | --- |")
    print(row("nothing", full, full, seconds), flush=True)
    for method in DEFAULT:
        rest = [other for other in DEFAULT if other != method]
        print(row(method, full, *orders(cases, arguments.seconds, rest)), flush=True)
    for part, (name, without) in PARTS.items():
        with patch.object(portfolio, name, without):
            print(row(part, full, *orders(cases, arguments.seconds, DEFAULT)), flush=True)


if __name__ == "__main__":
    main()
