"""`graph order`: an execution order of a plain dependency graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mcudeploy.cli.options import (
    destination_option,
    files_option,
    output_options,
    packed_as,
    planning_options,
)
from mcudeploy.cli.output import Output
from mcudeploy.cli.parameter_types import Finite, InputFile, NewFile, ParsedText
from mcudeploy.common.errors import UsageError
from mcudeploy.common.sizes import parse_percent
from mcudeploy.extensions.graphs import graphtables
from mcudeploy.planner.plan_options import Options

if TYPE_CHECKING:
    from mcudeploy.extensions.graphs.limited import LimitedOrder, Limits
    from mcudeploy.extensions.graphs.ordering import GraphOrder

_METHODS = ("auto", "rpo", "lifetime_bfs", "chain_dfs", "deferred_updates", "refine", "beam", "exact", "ilp")


@click.command()
@click.argument("graph", type=InputFile(pipes=True))
@planning_options("time_limit")
@click.option(
    "--method",
    type=click.Choice(_METHODS),
    default="auto",
    show_default=True,
    help="Method of ordering; auto: all but ilp. The result is never worse than the order of the file.",
)
@destination_option("Write the order: the ids of all nodes, as JSON.")
@click.option(
    "--memory",
    "percent",
    metavar="P%",
    type=ParsedText(parse_percent),
    help="Size of the fast memory, in percent of the peak. Tensors leave it and return, or are recomputed.",
)
@click.option(
    "--link",
    metavar="RATE",
    type=Finite(min=0),
    help="Bytes per cycle between the fast memory and a slow one, in each direction; 0: no slow memory.",
)
@click.option(
    "--link-latency",
    metavar="CYCLES",
    type=Finite(min=0),
    help="Cycles that each transfer takes in addition to those of its bytes.  [default: 0]",
)
@click.option("--recompute", is_flag=True, help="Operators may run again.")
@click.option(
    "--chart",
    metavar="FILE.svg",
    type=NewFile(".svg"),
    help="Draw what core, engine and fast memory do over time.",
)
@files_option
@output_options
@packed_as("limits", f"{__name__}:_limits", "link", "recompute", memory="percent", latency="link_latency")
def order(
    *,
    graph: Path,
    options: Options,
    method: str,
    destination: Path | None,
    limits: Limits | None,
    chart: Path | None,
    output: Output,
) -> None:
    """Order a dependency graph, such as a training step, or a model, so that it needs the least memory.

    GRAPH: a JSON file, or a model (.onnx, .tflite). A model gets the sizes of the portable kernels;
    `graph export --board` makes a graph with those of a board.

    With --memory, whole tensors leave that memory over a link or are recomputed, at the least cost in time.
    """
    from mcudeploy.common.effort import Effort
    from mcudeploy.extensions.graphs.ordering import order_graph, write_order

    if limits is not None:
        from mcudeploy.extensions.graphs.limited import order_limited

        with output.progress() as progress:
            limited = order_limited(graph, options.time_limit, limits, method, progress)
        _write_limited(limited, limits, destination, chart)
        output.result(_limited_order(limited), graphtables.schedule)
        return
    if chart:
        raise _no_limit()
    with output.progress() as progress:
        ordered = order_graph(graph, Effort.of(options.time_limit), method, progress)
    if destination:
        write_order(ordered, destination)
    output.result(_ordered_graph(ordered), graphtables.schedule)


def _no_limit() -> UsageError:
    return UsageError(
        "--link, --link-latency, --recompute and --chart belong to a memory limit: add --memory"
    )


def _limits(
    memory: float | None, link: float | None, latency: float | None, recompute: bool
) -> Limits | None:
    """The limit of memory, None without one. Raises UsageError for options that do not fit together."""
    from mcudeploy.extensions.graphs.limited import Limits

    if memory is None:
        if link is not None or latency is not None or recompute:
            raise _no_limit()
        return None
    if not link and not recompute:
        raise UsageError("--memory needs a way to keep the limit: add --link RATE, --recompute, or both")
    if latency and not link:
        raise UsageError("--link-latency belongs to a link: add --link RATE")
    return Limits(memory, link or 0.0, latency or 0.0, recompute)


def _write_limited(
    limited: LimitedOrder, limits: Limits, destination: Path | None, chart: Path | None
) -> None:
    from mcudeploy.common.files import write_file
    from mcudeploy.costs.timeline import timeline
    from mcudeploy.extensions.graphs.limited import write_plan
    from mcudeploy.report.chart.gantt import gantt_picture

    if destination:
        write_plan(limited, destination)
    if chart:
        run = timeline(limited.plan, limits.link)
        name = limited.ordered.graph.name
        write_file(chart, gantt_picture(name, limited.plan, run, limited.limit_bytes))


def _ordered_graph(ordered: GraphOrder) -> dict[str, Any]:
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


def _limited_order(limited: LimitedOrder) -> dict[str, Any]:
    """Report the order and its residency under a limit of the fast memory."""
    plan, base = limited.plan, limited.base_cycles
    sizes = [limited.trace.items[transfer.item].size_bytes for transfer in plan.transfers]
    repeated = len(plan.trace.steps) - len(limited.trace.steps)
    return _ordered_graph(limited.ordered) | {
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
