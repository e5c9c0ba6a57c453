"""`--instances` of `build`."""

from __future__ import annotations

import functools
from typing import Any

import rich_click as click

from mcudeploy.cli.options import Command


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
