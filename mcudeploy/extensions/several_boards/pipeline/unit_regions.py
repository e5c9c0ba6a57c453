"""Regions by recursive cuts, as in the published method (docs/pipeline.md), and a greedy partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine

Objective = Literal["latency", "throughput"]


@dataclass(frozen=True, slots=True)
class Region:
    """Groups first to end - 1 of a line, on `units` units."""

    first: int
    end: int
    units: int


@dataclass(frozen=True, slots=True)
class Decision:
    """One cut that the recursion considers: it would part the region before group `cut`.

    `whole`, `left`, `right`, `transfer`: the ticks t0 to t3 of the method; `taken`: whether the region is
    parted.
    """

    region: Region
    cut: int
    left_units: int
    whole: float
    left: float
    right: float
    transfer: float
    taken: bool


def joined(objective: Objective, *ticks: float) -> float:
    """Return the objective of several stages and transfers: the sum of their ticks, or the longest."""
    return sum(ticks) if objective == "latency" else max(ticks)


def worth(line: GroupLine, regions: Sequence[Region], objective: Objective) -> float:
    """Return the objective of a partition: the ticks of a frame, or the ticks between two frames."""
    stages = [float(line.stages[it.first, it.end, it.units]) for it in regions]
    transfers = [float(line.transfers[it.first]) for it in regions[1:]]
    return joined(objective, *stages, *transfers)


def first_admissible(
    line: GroupLine, objective: Objective
) -> tuple[tuple[Region, ...], tuple[Decision, ...]]:
    """Return the partition by the first admissible cuts, as published, and its decisions.

    The edges of a region of M units are tried by ascending weight. The first edge that leaves both sides at
    least 1/M of the work is its cut. The region is parted there if t0 > t1 + t2 + t3, or if it fits no unit;
    then each side is treated the same way.
    """
    decisions: list[Decision] = []
    regions = tuple(_parted(line, Region(0, len(line.groups), line.units.count), objective, decisions))
    return regions, tuple(decisions)


def _parted(
    line: GroupLine, region: Region, objective: Objective, decisions: list[Decision]
) -> Iterator[Region]:
    decision = _decision(line, region, objective)
    if decision is None:
        yield region
        return
    decisions.append(decision)
    if not decision.taken:
        yield region
        return
    cut, units = decision.cut, decision.left_units
    yield from _parted(line, Region(region.first, cut, units), objective, decisions)
    yield from _parted(line, Region(cut, region.end, region.units - units), objective, decisions)


def _decision(line: GroupLine, region: Region, objective: Objective) -> Decision | None:
    """Return the decision on a region at its first admissible edge; None if it has none."""
    total = line.work(region.first, region.end)
    for edge in line.edges:
        cut = edge.source + 1  # right after the group that writes the value
        if region.units < 2 or not (region.first < cut and edge.target < region.end):
            continue
        left = line.work(region.first, cut)
        if min(left, total - left) < total / region.units:
            continue
        units = min(max(int(region.units * left / total + 0.5), 1), region.units - 1) if total else 1
        whole = float(line.stages[region.first, region.end, region.units])
        sides = (
            float(line.stages[region.first, cut, units]),
            float(line.stages[cut, region.end, region.units - units]),
            float(line.transfers[cut]),
        )
        splits = whole == inf or whole > joined(objective, *sides)
        return Decision(region, cut, units, whole, *sides, splits)
    return None


def greedy(line: GroupLine) -> tuple[Region, ...]:
    """Return a region for each unit in order: its share of the remaining work, or as much as fits.

    Transfers are ignored. The last region takes the rest.
    """
    regions: list[Region] = []
    start, count = 0, len(line.groups)
    while start < count:
        left = line.units.count - len(regions)
        end = start + 1
        share = line.work(start, count) / left
        while end < count and (left == 1 or _nearer(line, start, end, share)):
            end += 1
        regions.append(Region(start, end, 1))
        start = end
    return tuple(regions)


def _nearer(line: GroupLine, start: int, end: int, share: float) -> bool:
    """Whether one more group brings a region nearer to its share of the work."""
    if line.stages[start, end + 1, 1] == inf:
        return False
    return abs(line.work(start, end + 1) - share) <= abs(line.work(start, end) - share)
