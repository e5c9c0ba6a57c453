"""Orders of training steps: peak and seconds of each method, and their growth. Prints Markdown tables.

    python benchmarks/order_training.py GRAPHS [--time-limit 60]
    python benchmarks/order_training.py --growth 10000 [--growth-limit 300] [--svg docs/growth.svg]

GRAPHS is a folder of dependency graphs (.json or .json.gz). Exit 1 if an order is worse than the file's.
Each size of the second table has a separate process, so that its memory is its own.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import log10
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mcudeploy.common.effort import UNITS_PER_SECOND, Effort
from mcudeploy.extensions.graphs.plaingraph import PlainGraph, graph_of, load_plain_graph
from mcudeploy.planner.order.portfolio import DEFAULT, best_order

QUICK = ("rpo", "lifetime_bfs", "chain_dfs", "deferred_updates")
SEED = 0
SIZES = (250, 500, 1000, 2500, 5000, 10000, 20000)

WIDTH, HEIGHT, MARGIN = 640, 360, 60
LOWEST, HIGHEST = -2, 3
"""The curves' common axis, as powers of ten."""


def synthetic(count: int, seed: int) -> dict[str, Any]:
    """Return a training step of about `count` nodes, in the format of the files.

    It has forward operators over random branches, their gradients in the opposite order, which read the
    forward pass's results, and updates in place.
    """
    rng = random.Random(seed)
    nodes: list[dict[str, Any]] = []
    tensors: list[dict[str, Any]] = []

    def node(op: str, inputs: list[int], size: int, phase: str, base: int | None = None) -> int:
        sources = len(tensors)
        tensors.append({"id": sources, "bytes": size, "alias_of": base})
        nodes.append(
            {"id": len(nodes), "op": op, "inputs": inputs, "outputs": [sources], "view": base is not None}
            | {"phase": phase}
        )
        return sources

    layers = max(count // 7, 2)
    weights = [node("param", [], 4 * rng.randrange(16, 65536), "fwd") for _ in range(layers)]
    sources = [node("input", [], 65536, "fwd")]
    reads: list[list[int]] = []
    for weight in weights:
        chosen = sorted(
            {max(0, len(sources) - 1 - int(rng.expovariate(0.4))) for _ in range(rng.choice((1, 1, 2, 3)))}
        )
        view = node(
            "view", [sources[chosen[0]]], tensors[sources[chosen[0]]]["bytes"], "fwd", sources[chosen[0]]
        )
        size = 1024 * rng.choice((4, 16, 16, 64, 64, 256))
        reads.append(chosen)
        sources.append(node("layer", [view, weight, *(sources[other] for other in chosen[1:])], size, "fwd"))
    gradient: dict[int, int] = {}
    updates: list[tuple[int, int]] = []
    for layer in reversed(range(layers)):
        own = gradient.pop(layer + 1, None)
        if own is None:
            own = node("loss_grad", [sources[layer + 1]], tensors[sources[layer + 1]]["bytes"], "bwd")
        for other in reads[layer]:
            inputs = [own, weights[layer], sources[other]]
            if other in gradient:
                inputs.append(gradient[other])
            if other:
                gradient[other] = node("input_grad", inputs, tensors[sources[other]]["bytes"], "bwd")
        size = tensors[weights[layer]]["bytes"]
        slope = node("weight_grad", [own, sources[reads[layer][0]]], size, "bwd")
        scaled = node("mul", [slope], size, "bwd")
        updates.append((weights[layer], node("sub", [weights[layer], scaled], size, "update")))
    return {
        "name": f"synthetic_{count}",
        "nodes": nodes,
        "tensors": tensors,
        "outputs": [new for _, new in updates],
        "inplace_updates": updates,
    }


def graphs(folder: Path) -> list[PlainGraph]:
    """Return all graphs of a folder, the small ones first."""
    loaded = [load_plain_graph(path) for path in sorted((*folder.glob("*.json"), *folder.glob("*.json.gz")))]
    return sorted(loaded, key=lambda graph: graph.problem.steps)


def compared(graph: PlainGraph, seconds: float) -> tuple[list[str], bool]:
    """Return a line of the first table: peak in KiB and CPU seconds of each method alone, and of all."""
    file_order = graph.problem.peak(range(graph.problem.steps))
    cells = [graph.name, f"{len(graph.nodes):,}", f"{graph.problem.steps:,}", f"{file_order / 1024:,.1f}"]
    good = True
    for methods in (*((method,) for method in DEFAULT), DEFAULT):
        start = time.process_time()
        order = best_order(graph.problem, Effort(seconds * UNITS_PER_SECOND), methods, updates=graph.updates)
        cells.append(f"{order.peak_bytes / 1024:,.1f} ({time.process_time() - start:.1f} s)")
        good = good and graph.problem.is_valid(order.order) and order.peak_bytes <= file_order
    gap = order.peak_bytes / order.lower_bound_bytes - 1
    cells += [f"{order.lower_bound_bytes / 1024:,.1f}", f"{gap:.2%}", order.status, order.method]
    print(f"{graph.name}: {cells[-5:]}", file=sys.stderr)
    return cells, good


@dataclass(frozen=True, slots=True)
class Grown:
    """A synthetic graph that was ordered: its line of the table, and its points of the curves."""

    cells: tuple[str, ...]
    nodes: int
    quick_s: float
    mebibytes: float


def grown(count: int, seconds: float) -> Grown:
    """Order a synthetic graph of `count` nodes, by the quick methods and by all."""
    graph = graph_of(synthetic(count, SEED))
    file_order = graph.problem.peak(range(graph.problem.steps))
    start = time.monotonic()
    quick = best_order(graph.problem, Effort.of(seconds), QUICK, updates=graph.updates)
    quick_s = time.monotonic() - start
    start = time.monotonic()
    order = best_order(graph.problem, Effort.of(seconds), updates=graph.updates)
    taken = time.monotonic() - start
    gap = order.peak_bytes / order.lower_bound_bytes - 1
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peaks = (f"{peak / 1024:,.1f}" for peak in (file_order, quick.peak_bytes, order.peak_bytes))
    cells = (
        f"{len(graph.nodes):,}", f"{graph.problem.steps:,}", *peaks, f"{order.lower_bound_bytes / 1024:,.1f}",
        f"{gap:.2%}", order.method, f"{quick_s:.1f}", f"{taken:.1f}", f"{mebibytes:,.0f}",
    )  # fmt: skip
    return Grown(cells, len(graph.nodes), quick_s, mebibytes)


def drawing(points: list[Grown]) -> str:
    """Return the curves as SVG: seconds and memory over nodes, both axes logarithmic."""
    left, right = log10(points[0].nodes), log10(points[-1].nodes)

    def place(nodes: float, value: float) -> tuple[float, float]:
        across = (log10(nodes) - left) / ((right - left) or 1.0)
        up = min(max((log10(value) - LOWEST) / (HIGHEST - LOWEST), 0.0), 1.0)
        return MARGIN + (WIDTH - 2 * MARGIN) * across, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * up

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<polyline points="{MARGIN},{MARGIN} {MARGIN},{HEIGHT - MARGIN} {WIDTH - MARGIN},{HEIGHT - MARGIN}" '
        'fill="none" stroke="black"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 15}" text-anchor="middle">nodes of a training step</text>',
    ]
    for power in range(LOWEST, HIGHEST + 1):
        _, y = place(points[0].nodes, 10.0**power)
        parts.append(
            f'<line x1="{MARGIN}" y1="{y:.1f}" x2="{WIDTH - MARGIN}" y2="{y:.1f}" stroke="#dddddd"/>'
        )
        parts.append(f'<text x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for one in points:
        x, _ = place(one.nodes, 1.0)
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{one.nodes:,}</text>'
        )
    curves = (
        ("seconds of the quick methods", "#1b6ca8", [one.quick_s for one in points]),
        ("MiB of the process, all methods", "#c0392b", [one.mebibytes for one in points]),
    )
    for number, (name, colour, values) in enumerate(curves):
        spots = [place(one.nodes, value) for one, value in zip(points, values, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        parts.append(f'<text x="{MARGIN + 10}" y="{MARGIN - 30 + 16 * number}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def table(headings: list[str], rows: list[list[str]]) -> None:
    """Print Markdown."""
    for line in (headings, ["---"] * len(headings), *rows):
        print("| " + " | ".join(line) + " |", flush=True)
    print()


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graphs", type=Path, nargs="?", help="folder of dependency graphs")
    parser.add_argument(
        "--time-limit", type=float, default=60, metavar="SECONDS", help="per graph and method"
    )
    parser.add_argument(
        "--growth", type=int, default=0, metavar="NODES", help="synthetic graphs up to this size"
    )
    parser.add_argument(
        "--growth-limit", type=float, default=300, metavar="SECONDS", help="per synthetic graph"
    )
    parser.add_argument("--svg", type=Path, help="file for the curves of growth")
    arguments = parser.parse_args()
    good = True
    if arguments.graphs:
        rows = [compared(graph, arguments.time_limit) for graph in graphs(arguments.graphs)]
        good = all(fine for _, fine in rows)
        print("Peaks in KiB.\n")
        table(
            ["graph", "nodes", "steps", "file order", *DEFAULT, "all",
             "lower bound", "gap", "status", "best by"],
            [cells for cells, _ in rows],
        )  # fmt: skip
    sizes = [size for size in SIZES if size <= arguments.growth]
    if sizes:
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
            results = list(pool.map(partial(grown, seconds=arguments.growth_limit), sizes))
        table(
            ["nodes", "steps", "file order", "quick", "all", "lower bound", "gap", "best by",
             "seconds, quick", "seconds, all", "MiB of the process"],
            [list(one.cells) for one in results],
        )  # fmt: skip
        if arguments.svg:
            arguments.svg.write_text(drawing(results), "utf-8")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
