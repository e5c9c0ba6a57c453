"""`graph pipeline`: a model in regions on a topology of compute units, simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from rich.console import Console

from mcudeploy.cli.options import (
    destination_option,
    files_option,
    model_argument,
    output_options,
    planning_options,
)
from mcudeploy.cli.output import Output, cell
from mcudeploy.cli.parameter_types import InputFile, NewFile
from mcudeploy.cli.table_grids import facts, table_of
from mcudeploy.common.text import plain
from mcudeploy.planner.plan_options import Options

if TYPE_CHECKING:
    from mcudeploy.extensions.several_boards.pipeline.division import Mode
    from mcudeploy.extensions.several_boards.pipeline.unit_regions import Objective

_MODES = ("best", "first", "greedy", "exact")
_HEADINGS = ("stage", "operators", "units>", "ticks>", "busy>", "RAM>", "flash>", "sends>", "link ticks>")


@click.command()
@model_argument
@click.option(
    "--topology",
    metavar="FILE",
    type=InputFile(),
    required=True,
    help="The units and their links, a TOML file.",
)
@click.option(
    "--mode",
    type=click.Choice(_MODES),
    default="best",
    show_default=True,
    help="Method: best searches all cuts; first takes the first admissible cut, as published; greedy fills "
    "units from the front; exact uses CP-SAT.",
)
@click.option(
    "--objective",
    type=click.Choice(["throughput", "latency"]),
    default="throughput",
    show_default=True,
    help="What to minimise: the time between frames, or the time of one frame.",
)
@destination_option("Write the report, as JSON.")
@click.option(
    "--chart", metavar="FILE.svg", type=NewFile(".svg"), help="Draw the placement, and the stages over time."
)
@planning_options("float_io", "shapes")
@files_option
@output_options
def pipeline(
    *,
    model: Path,
    topology: Path,
    mode: Mode,
    objective: Objective,
    destination: Path | None,
    chart: Path | None,
    options: Options,
    output: Output,
) -> None:
    """Divide a model among compute units that share nothing but links, as a pipeline. Times are modelled."""
    from mcudeploy.common.files import write_file
    from mcudeploy.extensions.several_boards.pipeline.chart import pipeline_picture
    from mcudeploy.extensions.several_boards.pipeline.division import plan_pipeline
    from mcudeploy.extensions.several_boards.pipeline.pipeline_report import (
        gantt_text,
        grid_text,
        report,
        report_text,
    )
    from mcudeploy.extensions.several_boards.pipeline.topology import load_topology

    units = load_topology(topology)
    with output.progress() as progress:
        progress.stage(f"dividing {model.name} among {units.width} x {units.height} units")
        pipeline = plan_pipeline(model, units, mode, objective, options)
    content = report(pipeline)
    if destination:
        write_file(destination, report_text(pipeline.model.sha256, content))
    if chart:
        write_file(chart, pipeline_picture(pipeline))
    drawn = {"grid": grid_text(pipeline), "gantt": gantt_text(pipeline)}
    output.result(content, lambda console, shown: _table(console, dict(shown), drawn))


def _table(console: Console, content: dict[str, Any], drawn: dict[str, list[str]]) -> None:
    """The report for people: regions, facts, units, stages over time."""
    table = table_of(*_HEADINGS)
    links = [*content["links"], {}]
    for number, (stage, region, link) in enumerate(
        zip(content["stages"], content["regions"], links, strict=True), 1
    ):
        names = region["operators"]
        row = (
            number,
            names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}",
            stage["units"],
            f"{stage['ticks']:,.0f}",
            f"{stage['utilisation']:.0%}",
            f"{region['ram_bytes']:,} B",
            f"{region['flash_bytes']:,} B",
            f"{link['bytes']:,} B" if link else "",
            f"{link['ticks']:,.0f}" if link else "",
        )
        table.add_row(*map(cell, row))
    console.print(table)
    facts(console, _facts(content))
    for heading, lines in (("units, by stage", drawn["grid"]), ("frames over time", drawn["gantt"])):
        console.print()
        console.print(cell(heading, "dim"))
        for line in lines:
            console.print(cell(line), soft_wrap=True)


def _facts(content: dict[str, Any]) -> list[tuple[str, str]]:
    slowest, units, topology = content["bottleneck"], content["units"], content["topology"]
    size = f"{topology['width']} x {topology['height']}"
    proven = ", proven" if content["proven"] else ""
    rate, bound = content["throughput_ratio"], content["bound_throughput_ratio"]
    return [
        ("units", f"{units['used']} of {size}, {plain(topology['unit'])}"),
        ("found by", f"{content['mode']}, for {content['objective']}{proven}; {content['groups']} groups"),
        ("bottleneck", f"{slowest['kind']} {slowest['region']}: {slowest['ticks']:,.0f} ticks"),
        ("throughput", f"{content['frames_per_second']:,.2f} frames a second, {rate:.2f} times one unit"),
        ("", f"{bound:.2f} times if links cost nothing and everything fitted"),
        ("latency", f"{content['latency_ticks']:,.0f} ticks; one unit: {content['single_unit_ticks']:,.0f}"),
        ("all times", "modelled"),
    ]
