"""Orders of training steps: peak and seconds of each method, and how they grow. Prints Markdown tables.

    python benchmarks/order_training.py GRAPHS [--time-limit 60] [--growth 10000]

GRAPHS is a folder of dependency graphs (.json or .json.gz). Exit 1 where an order is worse than the file's.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from pathlib import Path
from typing import Any

from mcudeploy.frontend.plaingraph import PlainGraph, graph_of, load_plain_graph
from mcudeploy.scheduler.portfolio import HEURISTICS, METHODS, best_order

ALONE = (*HEURISTICS, "exact")
QUICK = ("rpo", "lifetime_bfs", "chain_dfs", "set_aside")
SEED = 0


def synthetic(count: int, seed: int) -> dict[str, Any]:
    """A training step of about `count` nodes, in the format of the files: forward operators over random
    branches, their gradients in the opposite order, which read what the forward pass made, updates in place.
    """
    rng = random.Random(seed)
    nodes: list[dict[str, Any]] = []
    tensors: list[dict[str, Any]] = []

    def node(op: str, inputs: list[int], size: int, phase: str, base: int | None = None) -> int:
        made = len(tensors)
        tensors.append({"id": made, "bytes": size, "alias_of": base})
        nodes.append(
            {"id": len(nodes), "op": op, "inputs": inputs, "outputs": [made], "view": base is not None}
            | {"phase": phase}
        )
        return made

    layers = max(count // 7, 2)
    weights = [node("param", [], 4 * rng.randrange(16, 65536), "fwd") for _ in range(layers)]
    made = [node("input", [], 65536, "fwd")]
    reads: list[list[int]] = []
    for weight in weights:
        chosen = sorted(
            {max(0, len(made) - 1 - int(rng.expovariate(0.4))) for _ in range(rng.choice((1, 1, 2, 3)))}
        )
        view = node("view", [made[chosen[0]]], tensors[made[chosen[0]]]["bytes"], "fwd", made[chosen[0]])
        size = 1024 * rng.choice((4, 16, 16, 64, 64, 256))
        reads.append(chosen)
        made.append(node("layer", [view, weight, *(made[other] for other in chosen[1:])], size, "fwd"))
    gradient: dict[int, int] = {}
    updates: list[tuple[int, int]] = []
    for layer in reversed(range(layers)):
        own = gradient.pop(layer + 1, None)
        if own is None:
            own = node("loss_grad", [made[layer + 1]], tensors[made[layer + 1]]["bytes"], "bwd")
        for other in reads[layer]:
            inputs = [own, weights[layer], made[other]]
            if other in gradient:
                inputs.append(gradient[other])
            if other:
                gradient[other] = node("input_grad", inputs, tensors[made[other]]["bytes"], "bwd")
        size = tensors[weights[layer]]["bytes"]
        slope = node("weight_grad", [own, made[reads[layer][0]]], size, "bwd")
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
    """All graphs of a folder, the small ones first."""
    found = [load_plain_graph(path) for path in sorted((*folder.glob("*.json"), *folder.glob("*.json.gz")))]
    return sorted(found, key=lambda graph: graph.problem.steps)


def compared(graph: PlainGraph, seconds: float) -> tuple[list[str], bool]:
    """A line of the first table: peak in KiB and seconds of each method alone, and of all."""
    file_order = graph.problem.peak(range(graph.problem.steps))
    cells = [graph.name, f"{len(graph.nodes):,}", f"{graph.problem.steps:,}", f"{file_order / 1024:,.1f}"]
    good = True
    for methods in (*((method,) for method in ALONE), METHODS):
        start = time.monotonic()
        found = best_order(graph.problem, seconds, set_aside=graph.updates, methods=methods)
        cells.append(f"{found.peak_bytes / 1024:,.1f} ({time.monotonic() - start:.1f} s)")
        good = good and graph.problem.is_valid(found.order) and found.peak_bytes <= file_order
    gap = 1 - found.lower_bound_bytes / found.peak_bytes
    cells += [f"{found.lower_bound_bytes / 1024:,.1f}", f"{gap:.2%}", found.status, found.method]
    print(f"{graph.name}: {cells[-5:]}", file=sys.stderr)
    return cells, good


def grown(count: int, seconds: float) -> list[str]:
    """A line of the second table: a synthetic graph of `count` nodes."""
    graph = graph_of(synthetic(count, SEED))
    file_order = graph.problem.peak(range(graph.problem.steps))
    start = time.monotonic()
    quick = best_order(graph.problem, seconds, set_aside=graph.updates, methods=QUICK)
    quick_s = time.monotonic() - start
    start = time.monotonic()
    found = best_order(graph.problem, seconds, set_aside=graph.updates)
    taken = time.monotonic() - start
    gap = 1 - found.lower_bound_bytes / found.peak_bytes
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peaks = (f"{peak / 1024:,.1f}" for peak in (file_order, quick.peak_bytes, found.peak_bytes))
    return [
        f"{len(graph.nodes):,}",
        f"{graph.problem.steps:,}",
        *peaks,
        f"{gap:.2%}",
        found.method,
        f"{quick_s:.1f}",
        f"{taken:.1f}",
        f"{memory:,.0f}",
    ]


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
    parser.add_argument("graphs", type=Path, help="folder of dependency graphs")
    parser.add_argument(
        "--time-limit", type=float, default=60, metavar="SECONDS", help="per graph and method"
    )
    parser.add_argument(
        "--growth", type=int, default=0, metavar="NODES", help="synthetic graphs up to this size"
    )
    parser.add_argument(
        "--growth-limit", type=float, default=300, metavar="SECONDS", help="per synthetic graph"
    )
    arguments = parser.parse_args()
    rows = [compared(graph, arguments.time_limit) for graph in graphs(arguments.graphs)]
    print("Peaks in KiB.\n")
    table(
        ["graph", "nodes", "steps", "file order", *ALONE, "all", "lower bound", "gap", "status", "best by"],
        [cells for cells, _ in rows],
    )
    sizes = [size for size in (250, 500, 1000, 2500, 5000, 10000, 20000) if size <= arguments.growth]
    if sizes:
        table(
            ["nodes", "steps", "file order", "heuristics", "all", "gap", "best by",
             "seconds, heuristics", "seconds, all", "MiB of the process"],
            [grown(size, arguments.growth_limit) for size in sizes],
        )  # fmt: skip
    return int(not all(good for _, good in rows))


if __name__ == "__main__":
    sys.exit(main())
