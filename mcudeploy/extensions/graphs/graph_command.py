"""`graph`: the commands for dependency graphs, rectangles and modelled compute units; and their old names."""

from __future__ import annotations

import copy
import functools
from typing import Any

import rich_click as click

from mcudeploy.cli.output import deprecated
from mcudeploy.extensions.graphs.complete_command import complete
from mcudeploy.extensions.graphs.export_command import export
from mcudeploy.extensions.graphs.order_command import order
from mcudeploy.extensions.graphs.place_command import place as graph_place
from mcudeploy.extensions.several_boards.pipeline_command import pipeline as graph_pipeline


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def graph() -> None:
    """Export a model's graph, order one, place rectangles, complete a plan, or divide a model among units."""


def _alias(old: str, command: click.Command) -> click.Command:
    """A command by the name that it had before `graph`; deprecated, and not in the help."""
    body = command.callback
    assert body is not None

    @functools.wraps(body)
    def callback(*args: Any, **values: Any) -> Any:
        deprecated(old, f"graph {command.name}")
        return body(*args, **values)

    alias = copy.copy(command)
    alias.name, alias.hidden, alias.callback = old, True, callback
    return alias


for member in (export, order, graph_place, complete, graph_pipeline):
    graph.add_command(member)

schedule = _alias("schedule", order)
place = _alias("place", graph_place)
pipeline = _alias("pipeline", graph_pipeline)
