"""Orders of unsplit models and wide random graphs: peak in file order, depth first and best; proof and time.

python benchmarks/order_models.py MODEL.onnx ... [--seconds 20]
python benchmarks/order_models.py --methods MODEL.onnx ... [--seconds 20]
python benchmarks/order_models.py --random [--seconds 60] [--seed 1] [--graph NAME]
python benchmarks/order_models.py --small [--seconds 20]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from random import Random

from mcudeploy.errors import ModelError
from mcudeploy.model import Model, load_model
from mcudeploy.scheduler.bounds import least_needs
from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.portfolio import HEURISTICS, METHODS, Ordered, best_order
from mcudeploy.scheduler.problem import Buffer, Problem
from mcudeploy.scheduler.tiled import problem_of
from mcudeploy.simulator.blocks import whole

Edge = tuple[int, int]
Wiring = Callable[[Random], tuple[int, list[Edge]]]
"""A random graph: how many nodes, and edges from a lower to a higher one."""

ALONE = tuple(method for method in METHODS if method != "set_aside")
"""Models have no steps to set aside."""


def watts_strogatz(random: Random, nodes: int, degree: int, rewired: float) -> list[Edge]:
    """A ring where each node knows its `degree` nearest, some of those edges leading elsewhere."""
    edges: set[Edge] = set()
    for node in range(nodes):
        for distance in range(1, degree // 2 + 1):
            other = (node + distance) % nodes
            if random.random() < rewired:
                other = random.choice([x for x in range(nodes) if x != node])
            edges.add((min(node, other), max(node, other)))
    return sorted(edges)


def erdos_renyi(random: Random, nodes: int, share: float) -> list[Edge]:
    """Each pair with the same chance."""
    return [(a, b) for a in range(nodes) for b in range(a + 1, nodes) if random.random() < share]


def barabasi_albert(random: Random, nodes: int, links: int) -> list[Edge]:
    """Each node joins earlier ones, the more likely the more edges they have."""
    edges: list[Edge] = []
    ends = list(range(links))
    for node in range(links, nodes):
        chosen: set[int] = set()
        while len(chosen) < links:
            chosen.add(random.choice(ends))
        edges += ((other, node) for other in sorted(chosen))
        ends += [*chosen, *[node] * links]
    return edges


def one_stage(random: Random, nodes: int, edges: list[Edge]) -> Problem:
    """One operator for each node, with a tensor of random size; one before all and one behind all."""
    needs: list[list[int]] = [[] for _ in range(nodes + 2)]
    for a, b in edges:
        needs[b + 1].append(a + 1)
    for node in range(1, nodes + 1):
        needs[node] = needs[node] or [0]
    needs[-1] = sorted(set(range(1, nodes + 1)) - {a + 1 for a, _ in edges})
    return _problem(needs, [random.choice((1, 2, 3, 4, 6, 8)) * 1024 for _ in needs])


def cells(random: Random, stages: Sequence[tuple[int, list[Edge]]]) -> Problem:
    """As a randomly wired network is exported: for each node a product per input, their sum two by two, two
    convolutions. Tensors of a stage have one random size.
    """
    needs: list[list[int]] = []
    sizes: list[int] = []

    def operator(inputs: list[int], size: int) -> int:
        needs.append(sorted(set(inputs)))
        sizes.append(size)
        return len(needs) - 1

    last = operator([], 4096)
    for nodes, edges in stages:
        size = random.choice((2, 3, 4, 6, 8)) * 1024
        made: list[int] = []
        for node in range(nodes):
            total, *others = [made[a] for a, b in edges if b == node] or [last]
            if others:
                total, *others = (operator([one], size) for one in (total, *others))
            for other in others:
                total = operator([total, other], size)
            made.append(operator([operator([total], size)], size))
        last, *others = (made[node] for node in range(nodes) if all(a != node for a, _ in edges))
        for other in others:
            last = operator([last, other], size)
    return _problem(needs, sizes)


def _problem(needs: list[list[int]], sizes: list[int]) -> Problem:
    readers: list[list[int]] = [[] for _ in needs]
    for step, inputs in enumerate(needs):
        for other in inputs:
            readers[other].append(step)
    end = len(needs) - 1
    buffers = (Buffer(size, (step, *readers[step]), kept=step == end) for step, size in enumerate(sizes))
    return Problem(tuple(map(tuple, needs)), tuple(buffers))


RANDOM: dict[str, Callable[[Random], Problem]] = {
    "cells ws(4, 0.75) 4x22": lambda r: cells(r, [(22, watts_strogatz(r, 22, 4, 0.75)) for _ in range(4)]),
    "cells ws(4, 0.75) 2x44": lambda r: cells(r, [(44, watts_strogatz(r, 44, 4, 0.75)) for _ in range(2)]),
    "cells ws(4, 0.75) 1x88": lambda r: cells(r, [(88, watts_strogatz(r, 88, 4, 0.75))]),
    "cells er(0.2) 2x32": lambda r: cells(r, [(32, erdos_renyi(r, 32, 0.2)) for _ in range(2)]),
    "cells er(0.1) 1x60": lambda r: cells(r, [(60, erdos_renyi(r, 60, 0.1))]),
    "cells ba(3) 2x32": lambda r: cells(r, [(32, barabasi_albert(r, 32, 3)) for _ in range(2)]),
    "cells ba(5) 1x40": lambda r: cells(r, [(40, barabasi_albert(r, 40, 5))]),
    "nodes ws(4, 0.25)": lambda r: one_stage(r, 450, watts_strogatz(r, 450, 4, 0.25)),
    "nodes ws(4, 0.75)": lambda r: one_stage(r, 450, watts_strogatz(r, 450, 4, 0.75)),
    "nodes er(0.01)": lambda r: one_stage(r, 450, erdos_renyi(r, 450, 0.01)),
    "nodes er(0.2)": lambda r: one_stage(r, 450, erdos_renyi(r, 450, 0.2)),
    "nodes ba(2)": lambda r: one_stage(r, 450, barabasi_albert(r, 450, 2)),
    "nodes ba(5)": lambda r: one_stage(r, 450, barabasi_albert(r, 450, 5)),
}
"""Wide graphs of some 400 to 500 operators."""

SMALL: dict[str, Callable[[Random], Problem]] = {
    "cells ws(4, 0.75) 1x24": lambda r: cells(r, [(24, watts_strogatz(r, 24, 4, 0.75))]),
    "cells er(0.2) 1x22": lambda r: cells(r, [(22, erdos_renyi(r, 22, 0.2))]),
    "cells ba(5) 1x16": lambda r: cells(r, [(16, barabasi_albert(r, 16, 5))]),
    "nodes ws(4, 0.75)": lambda r: one_stage(r, 60, watts_strogatz(r, 60, 4, 0.75)),
    "nodes er(0.07)": lambda r: one_stage(r, 60, erdos_renyi(r, 60, 0.07)),
    "nodes ba(5)": lambda r: one_stage(r, 60, barabasi_albert(r, 60, 5)),
}
"""The same kinds with one stage, small enough for a proof, as a rule."""


def small_row(name: str, problem: Problem, seconds: float) -> list[str]:
    """How far heuristics are above, and minimum cuts below, what is proven."""
    heuristic, _ = timed(problem, seconds, HEURISTICS)
    found, _ = timed(problem, seconds, METHODS)
    cut = max(least_needs(problem, Deadline.after(seconds, inf), found.peak_bytes))
    peaks = (f"{peak:,}" for peak in (heuristic.peak_bytes, found.peak_bytes, cut))
    return [name, f"{problem.steps}", *peaks, status(found), f"{100 * (found.peak_bytes / cut - 1):.1f} %"]


def random_row(name: str, problem: Problem, seconds: float) -> list[str]:
    """A wide graph: all methods together, and what they leave open."""
    depth_first = best_order(problem, seconds, methods=("rpo",))
    found, took = timed(problem, seconds, METHODS)
    peaks = problem.peak(range(problem.steps)), depth_first.peak_bytes, found.peak_bytes
    cells = (f"{peak:,}" for peak in (*peaks, found.lower_bound_bytes))
    return [name, f"{problem.steps}", *cells, status(found), found.method, f"{took:.1f}"]


def model_row(name: str, model: Model, seconds: float) -> list[str]:
    """Activations alone; then all that the arena holds, without writing in place and with it."""
    tiled = whole(model.graph)
    problems = (
        problem_of(tiled, {}, in_place=False),
        problem_of(tiled, model.work, in_place=False),
        problem_of(tiled, model.work),
    )
    results = [timed(problem, seconds, METHODS) for problem in problems]
    activations = problems[0]
    return [
        name,
        f"{activations.steps}",
        f"{activations.peak(range(activations.steps)):,}",
        *(f"{found.peak_bytes:,}" for found, _ in results),
        ", ".join(sorted({status(found) for found, _ in results})),
        results[0][0].method,
        f"{max(took for _, took in results):.2f}",
    ]


def methods_row(name: str, model: Model, seconds: float) -> list[str]:
    """Activations alone: peak and CPU seconds of each method by itself."""
    problem = problem_of(whole(model.graph), {}, in_place=False)
    cells = [name, f"{problem.steps}", f"{problem.peak(range(problem.steps)):,}"]
    for methods in (*((method,) for method in ALONE), METHODS):
        found, took = timed(problem, seconds, methods)
        proven = ", proven" if found.status == "optimal" else ""
        cells.append(f"{found.peak_bytes:,} ({took:.2f} s{proven})")
    return cells


def timed(problem: Problem, seconds: float, methods: Collection[str]) -> tuple[Ordered, float]:
    """The best order and the CPU seconds that it took: what else runs on the machine changes little."""
    start = time.process_time()
    found = best_order(problem, seconds, methods=methods, clock_seconds=inf)
    return found, time.process_time() - start


def status(found: Ordered) -> str:
    """`optimal`, or by how much the peak may be above it."""
    gap = 100 * (found.peak_bytes / max(found.lower_bound_bytes, 1) - 1)
    return f"gap {gap:.1f} %" if found.status == "feasible" else found.status


def line(cells: Iterable[str]) -> None:
    """Print a line of a Markdown table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def table(headings: Sequence[str], rows: Iterable[list[str]]) -> None:
    """Print a table line by line as its rows come."""
    line(headings)
    line("---" for _ in headings)
    for cells in rows:
        line(cells)
    print()


def of_models(
    paths: Iterable[Path], seconds: float, row: Callable[[str, Model, float], list[str]]
) -> Iterator[list[str]]:
    """A row for each model that is supported; the others are named on stderr."""
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
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--methods", action="store_true", help="each method by itself")
    parser.add_argument("--random", action="store_true", help="wide graphs of 400 to 500 operators")
    parser.add_argument("--graph", default="", help="only wide graphs with this in their names")
    parser.add_argument("--small", action="store_true", help="the same kinds with 60 to 130 operators")
    parser.add_argument("--seconds", type=float, default=20.0, help="of CPU time per problem, and per method")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    seconds = arguments.seconds
    if arguments.methods:
        headings = ("model", "steps", "file order", *ALONE, "all")
        table(headings, of_models(arguments.models, seconds, methods_row))
    elif arguments.models:
        headings = (
            "model", "steps", "file order", "activations", "with scratch", "and in place", "status",
            "best by", "CPU seconds",
        )  # fmt: skip
        table(headings, of_models(arguments.models, seconds, model_row))
    if arguments.random:
        headings = (
            "graph", "steps", "file order", "rpo", "best", "bound", "status", "best by", "CPU seconds",
        )  # fmt: skip
        chosen = {name: make for name, make in RANDOM.items() if arguments.graph in name}
        made = ((name, make(Random(arguments.seed))) for name, make in chosen.items())
        table(headings, (random_row(name, problem, seconds) for name, problem in made))
    if arguments.small:
        headings = ("graph", "steps", "heuristics", "best", "minimum cuts", "status", "best over cuts")
        seeds = [(name, make, seed) for name, make in SMALL.items() for seed in (1, 2, 3)]
        small = ((f"{name}, seed {seed}", make(Random(seed))) for name, make, seed in seeds)
        table(headings, (small_row(name, problem, seconds) for name, problem in small))


if __name__ == "__main__":
    main()
