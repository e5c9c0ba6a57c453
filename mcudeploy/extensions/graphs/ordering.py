"""The flow of `graph order`: from a file to the best order of its nodes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from mcudeploy.common.effort import Effort
from mcudeploy.common.fast import note_lacking
from mcudeploy.common.files import write_file
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import count_text
from mcudeploy.extensions.graphs.modelgraph import dependency_graph, is_model, unsplit_model
from mcudeploy.extensions.graphs.plaingraph import PlainGraph, graph_of, load_plain_graph
from mcudeploy.planner.order.portfolio import DEFAULT, Ordered, best_order
from mcudeploy.planner.plan_options import Options

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class GraphOrder:
    """A dependency graph, its best order, and the wall-clock seconds of the search."""

    graph: PlainGraph
    best: Ordered
    seconds: float


def order_graph(path: Path, effort: Effort, method: str = AUTO, progress: Progress = SILENT) -> GraphOrder:
    """Order a dependency graph, or that of a model, by one of `METHODS` or the default ones.

    Raises ModelError for a file that is not such a graph.
    """
    progress.stage(f"reading {path.name}")
    if is_model(path):
        graph = graph_of(dependency_graph(unsplit_model(path, None, Options())), path.stem)
    else:
        graph = load_plain_graph(path)
    progress.stage(f"ordering {graph.problem.steps} of {count_text(len(graph.nodes), 'node')}")
    note_lacking()
    start = monotonic()
    methods = DEFAULT if method == AUTO else (method,)
    best = best_order(graph.problem, effort, methods, updates=graph.updates, interruptible=True)
    return GraphOrder(graph, best, monotonic() - start)


def write_order(ordered: GraphOrder, path: Path) -> None:
    """Write the ids of the nodes in execution order."""
    graph, best = ordered.graph, ordered.best
    content = {"name": graph.name, "peak_bytes": best.peak_bytes, "order": graph.node_order(best.order)}
    write_file(path, json.dumps(content) + "\n")
