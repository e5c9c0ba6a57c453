"""Why regions do not fit the units: the region, its need, and the excess."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from mcudeploy.common.text import count_text
from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine
from mcudeploy.extensions.several_boards.pipeline.unit_regions import Region


def region_text(line: GroupLine, region: Region) -> str:
    """Return the first and last operator of a region."""
    names = [line.graph.names[operator] for operator in line.operators(region.first, region.end)]
    return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"


def misfit(line: GroupLine, regions: Sequence[Region]) -> str:
    """Return a text on the first region that does not fit: what it needs; "" if all fit."""
    for number, region in enumerate(regions, 1):
        if line.stages[region.first, region.end, region.units] == inf:
            return f"region {number} ({region_text(line, region)}) {_needs(line, region)}"
    return ""


def no_partition(line: GroupLine) -> str:
    """Return a text on the region that does not fit, if no partition fits.

    Units are filled in order, each as far as it goes. The text names the first group that fits no unit, or
    the groups that remain for the last unit.
    """
    count, start = len(line.groups), 0
    for left in range(line.units.count, 0, -1):
        fitting = [end for end in range(start + 1, count + 1) if line.stages[start, end, 1] < inf]
        if left == 1 or not fitting:
            break
        start = fitting[-1]
    region = Region(start, count if fitting and start < count else min(start + 1, count), 1)
    units = count_text(line.units.count, "unit")
    return f"no partition among {units} fits: region {region_text(line, region)} {_needs(line, region)}"


def _needs(line: GroupLine, region: Region) -> str:
    ram, flash = line.ram_bytes(region.first, region.end), line.flash_bytes(region.first, region.end)
    short = [
        f"needs {needed:,} bytes of {memory}, a unit has {free:,}: {needed - free:,} too many"
        for memory, needed, free in (
            ("RAM", ram, line.units.ram_bytes),
            ("flash", flash, line.units.flash_bytes),
        )
        if needed > free
    ]
    return " and ".join(short) + "."
