"""`graph place`: offsets for a file of rectangles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import rich_click as click

from mcudeploy.cli.options import destination_option, files_option, output_options, planning_options
from mcudeploy.cli.output import Output
from mcudeploy.cli.parameter_types import InputFile, ParsedText
from mcudeploy.common.sizes import parse_size
from mcudeploy.common.text import count_text
from mcudeploy.extensions.graphs import graphtables
from mcudeploy.planner.plan_options import Options


@click.command()
@click.argument("rects", type=InputFile(pipes=True))
@click.option(
    "--capacity",
    type=ParsedText(parse_size),
    required=True,
    help="Size of the memory, such as 96k, 64KiB or 1M.",
)
@click.option("--fewest", is_flag=True, help="Search on for the fewest bytes once all rectangles fit.")
@planning_options("time_limit", "seed")
@destination_option("Write the rectangles with their offsets to this CSV file.")
@files_option
@output_options
def place(
    *,
    rects: Path,
    capacity: int,
    fewest: bool,
    options: Options,
    destination: Path | None,
    output: Output,
) -> None:
    """Place rectangles, a CSV file of id,lower,upper,size (upper exclusive), in a memory."""
    from mcudeploy.checker.offsets import check_offsets
    from mcudeploy.common.effort import Effort
    from mcudeploy.common.errors import FitError
    from mcudeploy.common.fast import note_lacking
    from mcudeploy.extensions.graphs.rectfile import problem_of, read_rectangles, write_rectangles
    from mcudeploy.planner.place.place import place as place_problem
    from mcudeploy.planner.place.placement_problem import lower_bound

    named = read_rectangles(rects)
    problem = problem_of(named)
    least = lower_bound(problem)
    if least > capacity:
        missing = least - capacity
        raise FitError(
            f"{rects} needs {least:,} bytes at least, the capacity is {capacity:,}: {missing:,} missing"
        )
    with output.progress() as progress:
        progress.stage(f"placing {count_text(len(named), 'rectangle')}")
        note_lacking()
        effort = Effort.of(options.time_limit)
        placed = place_problem(problem, capacity, effort, seed=options.seed, fewest=fewest)
    used, bound = placed.used_bytes, placed.lower_bound_bytes
    if used > capacity:
        raise FitError(
            f"{rects}: the best placement found has {used:,} bytes, the capacity is {capacity:,}: "
            f"{used - capacity:,} missing. None below {bound:,} is possible; try a larger --time-limit"
        )
    check_offsets(problem, placed.offsets, capacity)
    if destination is not None:
        pairs = zip(named, placed.offsets, strict=True)
        write_rectangles(destination, [replace(one, offset=offset) for one, offset in pairs])
    report = {
        "capacity": capacity,
        "used_bytes": used,
        "lower_bound_bytes": bound,
        "status": placed.status,
        "rectangles": len(named),
    }
    output.result(report, graphtables.placed)
