"""The best partition of a line, by dynamic programming over all cuts and all divisions of the units."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine
from mcudeploy.extensions.several_boards.pipeline.unit_regions import Objective, Region


def best(line: GroupLine, objective: Objective) -> tuple[Region, ...] | None:
    """Return the partition with the least objective; None if none fits.

    Among partitions with the same throughput, the least latency wins. Units may stay idle.
    """
    if objective == "latency":
        return _least(line, "latency", inf)
    quickest = _least(line, "throughput", inf)
    if quickest is None:
        return None
    longest = max(
        *(float(line.stages[it.first, it.end, it.units]) for it in quickest),
        *(float(line.transfers[it.first]) for it in quickest),
    )
    return _least(line, "latency", longest)


def _least(line: GroupLine, objective: Objective, longest: float) -> tuple[Region, ...] | None:
    """Return the least partition without a stage or transfer above `longest`.

    `least_of[m][j]`: the objective of the best partition of the first j groups among m units.
    """
    count, units = len(line.groups), line.units.count
    stages = np.where(line.stages > longest, inf, line.stages)
    transfers = np.where(line.transfers > longest, inf, line.transfers)
    least_of = np.full((units + 1, count + 1), inf)
    least_of[0, 0] = 0.0
    choice: dict[tuple[int, int], tuple[int, int]] = {}
    for total in range(1, units + 1):
        for part in range(1, total + 1):
            ticks = _joined(objective, least_of[total - part], transfers, stages[:, :, part])
            starts = ticks.argmin(axis=0)
            for end, start in enumerate(starts):
                if ticks[start, end] < least_of[total, end]:
                    least_of[total, end] = ticks[start, end]
                    choice[total, end] = int(start), part
    least = int(least_of[:, count].argmin())
    if least_of[least, count] == inf:
        return None
    regions: list[Region] = []
    end = count
    while end:
        start, part = choice[least, end]
        regions.append(Region(start, end, part))
        least, end = least - part, start
    return tuple(reversed(regions))


def _joined(
    objective: Objective,
    before: NDArray[np.float64],
    transfers: NDArray[np.float64],
    stages: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the objective of each last region with all before it, by its first group and end."""
    if objective == "latency":
        return (before + transfers)[:, None] + stages
    return np.maximum(np.maximum(before, transfers)[:, None], stages)
