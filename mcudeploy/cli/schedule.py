"""`schedule`: an execution order of a plain dependency graph."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from mcudeploy.cli import tables
from mcudeploy.cli.options import files_option, output_options
from mcudeploy.cli.output import Output
from mcudeploy.cli.values import Finite, InputFile, NewFile

_METHODS = ("auto", "rpo", "lifetime_bfs", "chain_dfs", "deferred_updates", "refine", "beam", "exact", "ilp")


@click.command()
@click.argument("graph", type=InputFile(pipes=True))
@click.option(
    "--time-limit",
    metavar="SECONDS",
    type=Finite(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="How long the search may take.",
)
@click.option(
    "--method",
    type=click.Choice(_METHODS),
    default="auto",
    show_default=True,
    help="How to look for it; auto: all of them but ilp. Never worse than the order of the file.",
)
@click.option(
    "-o",
    "--output",
    "destination",
    metavar="FILE",
    type=NewFile(),
    help="Write the order: the ids of all nodes, as JSON.",
)
@files_option
@output_options
def schedule(
    *, graph: Path, time_limit: float, method: str, destination: Path | None, output: Output
) -> None:
    """Order a dependency graph, such as a training step, so that it needs the least memory."""
    from mcudeploy.schedule.ordering import order_graph

    with output.progress() as progress:
        report = order_graph(graph, time_limit, method, destination, progress)
    output.result(report, tables.schedule)


COMMANDS = (schedule,)
