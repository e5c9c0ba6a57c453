"""The flow of `graph order`: it reads a dependency graph and returns its nodes' order and memory."""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic
from typing import Any

from mcudeploy.common.effort import Effort
from mcudeploy.common.files import write_file
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import count_text
from mcudeploy.planner.order.portfolio import DEFAULT, Ordered, best_order
from mcudeploy.planner.plain.plaingraph import PlainGraph, load_plain_graph

AUTO = "auto"


def order_graph(
    path: Path,
    seconds: float,
    method: str = AUTO,
    order_file: Path | None = None,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Order a dependency graph with the effort of some `seconds`, by one of `METHODS` or the default ones.

    The order's node ids go into `order_file`. Raises ModelError for a file that is no such graph.
    """
    graph, found, report = ordered(path, Effort.of(seconds), method, progress)
    if order_file:
        content = {"name": graph.name, "peak_bytes": found.peak_bytes, "order": graph.node_order(found.order)}
        write_file(order_file, json.dumps(content) + "\n")
    return report


def ordered(
    path: Path, effort: Effort, method: str, progress: Progress = SILENT
) -> tuple[PlainGraph, Ordered, dict[str, Any]]:
    """Return a graph, its best order, and the report on both."""
    progress.stage(f"reading {path.name}")
    graph = load_plain_graph(path)
    progress.stage(f"ordering {graph.problem.steps} of {count_text(len(graph.nodes), 'node')}")
    start = monotonic()
    methods = DEFAULT if method == AUTO else (method,)
    found = best_order(graph.problem, effort, methods, updates=graph.updates, interruptible=True)
    report = {
        "name": graph.name,
        "nodes": len(graph.nodes),
        "steps": graph.problem.steps,
        "peak_bytes": found.peak_bytes,
        "file_order_peak_bytes": graph.problem.peak(range(graph.problem.steps)),
        "lower_bound_bytes": found.lower_bound_bytes,
        "status": found.status,
        "method": found.method,
        "seconds": monotonic() - start,
    }
    return graph, found, report
