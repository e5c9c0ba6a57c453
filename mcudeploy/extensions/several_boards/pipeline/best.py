"""The best partition of a line of groups: dynamic programming over all cuts and all numbers of units."""

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
    """`longest`: the most ticks of a stage or transfer; `unit_counts`: allowed numbers of units in use."""

    longest: float
    unit_counts: Sequence[int]


def best(line: GroupLine, objective: Objective) -> tuple[Region, ...] | None:
    """Return the partition with the least objective; None if none fits.

    Among partitions with the same throughput, the least latency wins. Units may stay idle.
    """
    return _best([line.stages] * line.units.count, line.transfers, objective, range(line.units.count + 1))


def best_for_units(lines: Sequence[GroupLine]) -> tuple[Region, ...] | None:
    """Return the partition with the best throughput that gives each of several different units one region.

    `lines`: for each unit, the same groups with their costs on it. All costs are in the same measure of time.
    """
    return _best([line.stages for line in lines], lines[0].transfers, "throughput", (len(lines),))


def _best(
    stages: Sequence[NDArray[np.float64]],
    transfers: NDArray[np.float64],
    objective: Objective,
    unit_counts: Sequence[int],
) -> tuple[Region, ...] | None:
    """Return the best partition that uses one of these numbers of units.

    `stages[m]`: the costs of regions whose last unit is m, by first group, end and number of units.
    """
    unlimited = _PartitionLimits(inf, unit_counts)
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
    return _least(stages, transfers, "latency", _PartitionLimits(longest, unit_counts))


def _least(
    stages: Sequence[NDArray[np.float64]],
    transfers: NDArray[np.float64],
    objective: Objective,
    limits: _PartitionLimits,
) -> tuple[Region, ...] | None:
    """Return the partition with the least objective within the limits; `stages`: as in `_best`.

    `least[m, j]`: the objective of the best partition of the first j groups among the first m units.
    """
    longest = limits.longest
    groups, most_units = stages[0].shape[0] - 1, stages[0].shape[2] - 1
    transfers = np.where(transfers > longest, inf, transfers)
    least = np.full((len(stages) + 1, groups + 1), inf)
    least[0, 0] = 0.0
    last_region: dict[tuple[int, int], Region] = {}
    for total, costs in enumerate(stages, 1):
        for units in range(1, min(total, most_units) + 1):
            ticks = np.where(costs[:, :, units] > longest, inf, costs[:, :, units])
            ticks = _joined(objective, least[total - units], transfers, ticks)
            for end, start in enumerate(ticks.argmin(axis=0)):
                if ticks[start, end] < least[total, end]:
                    least[total, end] = ticks[start, end]
                    last_region[total, end] = Region(int(start), end, units)
    total, end = min(limits.unit_counts, key=lambda units: float(least[units, groups])), groups
    if least[total, groups] == inf:
        return None
    regions: list[Region] = []
    while end:
        region = last_region[total, end]
        regions.append(region)
        total, end = total - region.units, region.first
    return tuple(reversed(regions))


def _joined(
    objective: Objective,
    before: NDArray[np.float64],
    transfers: NDArray[np.float64],
    stages: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the objective of all groups up to each last region's end, by its first group and its end."""
    if objective == "latency":
        return (before + transfers)[:, None] + stages
    return np.maximum(np.maximum(before, transfers)[:, None], stages)
