"""The best partition of a line, by dynamic programming over all cuts and all divisions of the units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine
from mcudeploy.extensions.several_boards.pipeline.unit_regions import Objective, Region


@dataclass(frozen=True, slots=True)
class _PartitionLimits:
    """The most ticks of a stage or transfer, and the numbers of units that a partition may use."""

    longest: float
    used: Sequence[int]


def best(line: GroupLine, objective: Objective) -> tuple[Region, ...] | None:
    """Return the partition with the least objective; None if none fits.

    Among partitions with the same throughput, the least latency wins. Units may stay idle.
    """
    return _best([line.stages] * line.units.count, line.transfers, objective, range(line.units.count + 1))


def best_row(lines: Sequence[GroupLine]) -> tuple[Region, ...] | None:
    """Return the partition for different units in a row, each with a line of the same groups.

    It is the best for throughput; each unit has one region. Costs of the lines have the same unit.
    """
    return _best([line.stages for line in lines], lines[0].transfers, "throughput", (len(lines),))


def _best(
    stages: Sequence[NDArray[np.float64]],
    transfers: NDArray[np.float64],
    objective: Objective,
    used: Sequence[int],
) -> tuple[Region, ...] | None:
    """Return the best partition among as many units as one of the numbers in `used`.

    `stages[m]`: the costs of regions that end with unit m, by first group, end and number of units.
    """
    unlimited = _PartitionLimits(inf, used)
    if objective == "latency":
        return _least(stages, transfers, "latency", unlimited)
    quickest = _least(stages, transfers, "throughput", unlimited)
    if quickest is None:
        return None
    longest, total = 0.0, 0
    for it in quickest:
        total += it.units
        longest = max(
            longest, float(stages[total - 1][it.first, it.end, it.units]), float(transfers[it.first])
        )
    return _least(stages, transfers, "latency", _PartitionLimits(longest, used))


def _least(
    every: Sequence[NDArray[np.float64]],
    transfers: NDArray[np.float64],
    objective: Objective,
    limits: _PartitionLimits,
) -> tuple[Region, ...] | None:
    """Return the partition with the least objective within the limits.

    `every`: the costs of stages on each unit, as in `_best`. `least_of[m][j]`: the objective of the best
    partition of the first j groups among m units.
    """
    longest = limits.longest
    count, most = every[0].shape[0] - 1, every[0].shape[2] - 1
    transfers = np.where(transfers > longest, inf, transfers)
    least_of = np.full((len(every) + 1, count + 1), inf)
    least_of[0, 0] = 0.0
    choice: dict[tuple[int, int], tuple[int, int]] = {}
    for total, stages in enumerate(every, 1):
        for part in range(1, min(total, most) + 1):
            ticks = stages[:, :, part]
            ticks = np.where(ticks > longest, inf, ticks)
            ticks = _joined(objective, least_of[total - part], transfers, ticks)
            starts = ticks.argmin(axis=0)
            for end, start in enumerate(starts):
                if ticks[start, end] < least_of[total, end]:
                    least_of[total, end] = ticks[start, end]
                    choice[total, end] = int(start), part
    least = min(limits.used, key=lambda units: float(least_of[units, count]))
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
