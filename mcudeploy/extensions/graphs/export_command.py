"""`graph export`: the dependency graph of a model, or the rectangles of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from mcudeploy.common.errors import UsageError
from mcudeploy.extensions.graphs import graphtables
from mcudeploy.planner.plan_options import READING, Options

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board


@click.command()
@model_argument
@board_option(required=False)
@planning_options("plan_file", *(name for name in READING if name != "hop"), "stream_input")
@destination_option(
    "Write the graph, as JSON for `graph order`; with --plan the rectangles, as CSV for `graph place`.",
    required=True,
)
@files_option
@output_options
def export(*, model: Path, board: Board | None, options: Options, destination: Path, output: Output) -> None:
    """Write the dependency graph of a model, as the planner orders it: operators, tensors and their bytes.

    Scratch is that of the board's fastest kernels; without --board, of the portable ones. With --plan: the
    bytes of the plan, their first steps and ends, and their offsets.
    """
    if options.plan_file is not None:
        if board is None:
            raise UsageError("--plan needs --board, the board of the plan")
        output.result(
            _write_rectangles(model, board, options, options.plan_file, destination),
            graphtables.exported_plan,
        )
        return
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


def _write_rectangles(
    path: Path, board: Board, options: Options, plan_file: Path, destination: Path
) -> dict[str, Any]:
    """Write the rectangles of a plan; return the report."""
    from mcudeploy.extensions.graphs.partial_plans import Rectangles
    from mcudeploy.extensions.graphs.rectfile import problem_of, write_rectangles
    from mcudeploy.planner.files.stored_plan import stored_plan
    from mcudeploy.planner.model.model import read_model
    from mcudeploy.planner.place.placement_problem import lower_bound

    board = options.limited(board)
    stored = stored_plan(read_model(path, options, isa=board.isa), board, plan_file, ())
    plan = stored.plan
    rectangles = Rectangles.of(plan, stored.model, board)
    problem = problem_of(rectangles.named)
    write_rectangles(destination, rectangles.named)
    return {
        "rectangles": len(rectangles.named),
        "stacks": len(problem.stacks),
        "lower_bound_bytes": lower_bound(problem),
        "arena_bytes": plan.layout.arena_bytes,
        "moves": len(plan.layout.transfers),
    }
