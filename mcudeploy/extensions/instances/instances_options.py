"""`--instances` of `build`, and the RAM of instances in its report."""

from __future__ import annotations

import functools
from typing import Any

import rich_click as click

from mcudeploy.cli.options import Command
from mcudeploy.cli.output import Values
from mcudeploy.cli.table_grids import ReportSection
from mcudeploy.common.text import plain


def _instances_option(command: Command) -> Command:
    """Add --instances, which becomes one of the `parts`."""

    @click.option(
        "--instances",
        metavar="N",
        type=click.IntRange(1, 255),
        default=1,
        show_default=True,
        help="Instances of a model that keeps states: each has its own states and shares weights, code and "
        "the rest of the arena. MODEL_select(i) chooses the one that runs.",
    )
    @functools.wraps(command)
    def packed(*args: Any, instances: int, parts: tuple[Any, ...] = (), **rest: Any) -> None:
        if instances > 1:
            from mcudeploy.extensions.instances.instances_part import InstancesPart

            parts = (*parts, InstancesPart(instances))
        command(*args, parts=parts, **rest)

    return packed


OPTIONS = {"build": (_instances_option,)}


def _facts(report: Values) -> list[tuple[str, str]]:
    """Return the arenas of all instances, and the share of each."""
    instances = report.get("instances")
    if not instances:
        return []
    arenas = ", ".join(f"{plain(memory)} {size:,} B" for memory, size in instances["arenas"].items())
    text = f"{arenas}: arena and states; {instances['state_bytes']:,} B of states each"
    return [(f"{instances['count']} instances", text)]


SECTION = ReportSection(lambda _console, _report: None, _facts)
