"""`graph export`: the dependency graph of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mcudeploy.cli.devices import board_option
from mcudeploy.cli.options import (
    destination_option,
    files_option,
    model_argument,
    output_options,
    planning_options,
)
from mcudeploy.cli.output import Output
from mcudeploy.extensions.graphs import graphtables
from mcudeploy.planner.plan_options import READING, Options

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board


@click.command()
@model_argument
@board_option(required=False)
@planning_options(*(name for name in READING if name != "hop"), "stream_input")
@destination_option("Write the graph, as JSON, for `graph order`.", "FILE.json", required=True)
@files_option
@output_options
def export(*, model: Path, board: Board | None, options: Options, destination: Path, output: Output) -> None:
    """Write the dependency graph of a model, as the planner orders it: operators, tensors and their bytes.

    Scratch is that of the board's fastest kernels; without --board, of the portable ones.
    """
    import json

    from mcudeploy.common.files import write_file
    from mcudeploy.extensions.graphs.modelgraph import dependency_graph, unsplit_model
    from mcudeploy.extensions.graphs.plaingraph import graph_of

    content = dependency_graph(unsplit_model(model, board, options))
    problem = graph_of(content).problem
    write_file(destination, json.dumps(content, indent=1) + "\n")
    report = {
        "name": content["name"],
        "nodes": len(content["nodes"]),
        "steps": problem.steps,
        "tensors": len(content["tensors"]),
        "file_order_peak_bytes": problem.peak(range(problem.steps)),
    }
    output.result(report, graphtables.exported)
