"""Orders of unsplit models: peak in file order and best; proof and time.

python benchmarks/order_models.py MODEL.onnx ... [--seconds 20]
python benchmarks/order_models.py --methods MODEL.onnx ... [--seconds 20]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from mcudeploy.common.effort import UNITS_PER_SECOND, Effort
from mcudeploy.common.errors import ModelError
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.order.order_problem import OrderProblem
from mcudeploy.planner.order.portfolio import DEFAULT, METHODS, Ordered, best_order
from mcudeploy.planner.order.tiled import problem_of
from mcudeploy.tiling.blocks import whole

ALONE = tuple(method for method in METHODS if method != "deferred_updates")
"""Models have no updates to defer."""


def model_row(name: str, model: Model, seconds: float) -> list[str]:
    """Return the row of activations alone; then of the whole arena, without writing in place and with it."""
    tiled = whole(model.graph)
    problems = (
        problem_of(tiled, {}, in_place=False),
        problem_of(tiled, model.work, in_place=False),
        problem_of(tiled, model.work),
    )
    results = [timed(problem, seconds, DEFAULT) for problem in problems]
    activations = problems[0]
    return [
        name,
        f"{activations.steps}",
        f"{activations.peak(range(activations.steps)):,}",
        *(f"{order.peak_bytes:,}" for order, _ in results),
        ", ".join(sorted({status(order) for order, _ in results})),
        results[0][0].method,
        f"{max(took for _, took in results):.2f}",
    ]


def methods_row(name: str, model: Model, seconds: float) -> list[str]:
    """Return the row of activations alone: peak and CPU seconds of each method by itself."""
    problem = problem_of(whole(model.graph), {}, in_place=False)
    cells = [name, f"{problem.steps}", f"{problem.peak(range(problem.steps)):,}"]
    for methods in (*((method,) for method in ALONE), DEFAULT):
        order, took = timed(problem, seconds, methods)
        proven = ", proven" if order.status == "optimal" else ""
        cells.append(f"{order.peak_bytes:,} ({took:.2f} s{proven})")
    return cells


def timed(problem: OrderProblem, seconds: float, methods: Collection[str]) -> tuple[Ordered, float]:
    """Return the best order and its CPU seconds: they hardly depend on other programs."""
    start = time.process_time()
    order = best_order(problem, Effort(seconds * UNITS_PER_SECOND), methods)
    return order, time.process_time() - start


def status(order: Ordered) -> str:
    """Return `optimal`, or the largest possible gap of the peak."""
    gap = 100 * (order.peak_bytes / max(order.lower_bound_bytes, 1) - 1)
    return f"gap {gap:.1f} %" if order.status == "feasible" else order.status


def line(cells: Iterable[str]) -> None:
    """Print a line of a Markdown table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def table(headings: Sequence[str], rows: Iterable[list[str]]) -> None:
    """Print a table line by line when rows are ready."""
    line(headings)
    line("---" for _ in headings)
    for cells in rows:
        line(cells)
    print()


def of_models(
    paths: Iterable[Path], seconds: float, row: Callable[[str, Model, float], list[str]]
) -> Iterator[list[str]]:
    """Yield a row for each supported model; the others are named on stderr."""
    for path in paths:
        try:
            model = load_model(path)
        except ModelError as error:
            print(f"{path.parent.name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        yield row(path.parent.name, model, seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--methods", action="store_true", help="each method by itself")
    parser.add_argument("--seconds", type=float, default=20.0, help="effort per problem, and per method")
    arguments = parser.parse_args()
    seconds = arguments.seconds
    if arguments.methods:
        headings = ("model", "steps", "file order", *ALONE, "all")
        table(headings, of_models(arguments.models, seconds, methods_row))
    else:
        headings = (
            "model", "steps", "file order", "activations", "with scratch", "and in place", "status",
            "best by", "CPU seconds",
        )  # fmt: skip
        table(headings, of_models(arguments.models, seconds, model_row))


if __name__ == "__main__":
    main()
