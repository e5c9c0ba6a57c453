"""`graph complete`: a plan from cuts, or from offsets."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.devices import board_option
from mcudeploy.cli.help import LongCommand
from mcudeploy.cli.options import (
    destination_option,
    files_option,
    model_argument,
    output_options,
    planning_options,
)
from mcudeploy.cli.output import Output
from mcudeploy.cli.parameter_types import InputFile
from mcudeploy.planner.plan_options import READING, Options

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board

_CHOICES = (
    "stream_input", "optimize", "max_overhead", "time_limit", "ram_limit", "flash_limit", "memory_limits",
    "dma_io", "io_align", "objective",
)  # fmt: skip


@click.command(cls=LongCommand)
@model_argument
@board_option(required=True)
@click.option(
    "--cuts",
    type=InputFile(pipes=True),
    help="JSON with `splits`, each with `operators` and `rows`, such as an edited plan file.",
)
@click.option(
    "--offsets",
    type=InputFile(),
    help="CSV of `graph export --plan` with a column `offset`: the places of the tensors of --plan.",
)
@planning_options("plan_file", *(name for name in READING if name != "hop"), *_CHOICES)
@destination_option("Write the plan to this file, for --plan.", required=True)
@files_option
@output_options
def complete(
    *,
    model: Path,
    board: Board,
    cuts: Path | None,
    offsets: Path | None,
    options: Options,
    destination: Path,
    output: Output,
) -> None:
    """Make a plan with your cuts, or with your offsets for a plan: the checker judges it.

    With --cuts the planner finds the order, the kernels and the offsets.
    """
    from mcudeploy.commands import commands as api
    from mcudeploy.common.errors import UsageError
    from mcudeploy.extensions.graphs.partial_plans import Rectangles, plan_of_cuts
    from mcudeploy.planner.files.planfile import save_plan
    from mcudeploy.planner.files.stored_plan import stored_plan
    from mcudeploy.planner.model.model import read_model
    from mcudeploy.report import as_json

    if (cuts is None) == (offsets is None) or (offsets is None) != (options.plan_file is None):
        raise UsageError("give --cuts FILE, or --plan PLAN with --offsets FILE")
    with output.progress() as progress:
        read = read_model(model, options, isa=board.isa)
        if cuts is not None:
            plan = plan_of_cuts(read, board, options, cuts, progress)
        else:
            assert offsets is not None and options.plan_file is not None
            limited = options.limited(board)
            stored = stored_plan(read, limited, options.plan_file, ())
            rectangles = Rectangles.of(stored.plan, stored.model, limited)
            plan = rectangles.placed(stored.model, limited, offsets)
        with tempfile.TemporaryDirectory() as folder:  # the plan is checked and reported as that of a user
            file = Path(folder, "plan.json")
            save_plan(plan, read.sha256, file)
            deployment = api.plan_model(model, board, replace(options, plan_file=file), progress)
    api.save_plan(deployment, destination)
    output.result(as_json(deployment), tables.plan)
