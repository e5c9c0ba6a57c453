"""`--bounds` of `build` and `run`."""

from __future__ import annotations

import functools
from typing import Any

import rich_click as click

from mcudeploy.cli.options import Command


def _build_option(command: Command) -> Command:
    """Add --bounds, which becomes one of the `parts`."""

    @click.option(
        "--bounds/--no-bounds",
        default=False,
        help="Also state the most instructions and cycles of a call over all inputs, in the header and in "
        "NAME_bounds.md. They are counted in the emulator of a board with the same core.",
    )
    @functools.wraps(command)
    def packed(*args: Any, bounds: bool, parts: tuple[Any, ...] = (), **rest: Any) -> None:
        if bounds:
            from mcudeploy.extensions.bounds.bounds_part import BoundsPart

            parts = (*parts, BoundsPart())
        command(*args, parts=parts, **rest)

    return packed


def _run_option(command: Command) -> Command:
    """Add --bounds, which becomes one of the `analyses`."""

    @click.option(
        "--bounds/--no-bounds",
        default=False,
        help="Also show the most instructions and cycles of each operator over all inputs. They are counted "
        "in the emulator of a board with the same core.",
    )
    @functools.wraps(command)
    def packed(*args: Any, bounds: bool, analyses: tuple[Any, ...] = (), **rest: Any) -> None:
        if bounds:
            from mcudeploy.extensions.bounds.bounds_part import BoundsAnalysis

            analyses = (*analyses, BoundsAnalysis())
        command(*args, analyses=analyses, **rest)

    return packed


OPTIONS = {"build": (_build_option,), "run": (_run_option,)}
