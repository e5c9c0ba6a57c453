"""Regions on a topology, row by row in alternating direction.

Neighbours in the line are neighbours on the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from mcudeploy.extensions.several_boards.pipeline.unit_regions import Region

Place = tuple[int, int]
"""Column and row of a unit."""


def boustrophedon(width: int, height: int) -> tuple[Place, ...]:
    """Return the units of a grid in the order in which regions fill it."""
    return tuple(
        (col, row)
        for row in range(height)
        for col in (range(width) if row % 2 == 0 else reversed(range(width)))
    )


def place(regions: Sequence[Region], width: int, height: int) -> tuple[tuple[Place, ...], ...]:
    """Return the units of each region, in the order of the line; rows continue in the next one.

    Raises ValueError if the regions need more units than there are.
    """
    path = boustrophedon(width, height)
    ends = [0, *accumulate(region.units for region in regions)]
    if ends[-1] > len(path):
        raise ValueError(f"{ends[-1]} units wanted, {width} x {height} are {len(path)}")
    return tuple(path[start:end] for start, end in pairwise(ends))
