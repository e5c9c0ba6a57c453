"""Groups in a line, by depth, with the cost of every stretch on every number of units.

Each group depends on the previous one, so the parts of the graph that can be a region are the stretches of
this line. Single operators in a valid order form a line as well. Only neighbours communicate: values for a
later region pass through the regions between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.several_boards.pipeline.cost import Communication, OperatorTicks, group_ticks
from mcudeploy.extensions.several_boards.pipeline.groups import Group, GroupEdge, group_edges, group_numbers
from mcudeploy.extensions.several_boards.pipeline.workgraph import WorkGraph


@dataclass(frozen=True, slots=True)
class OperatorBytes:
    """Bytes of every operator: `weights` in flash, and `work`, the scratch in RAM while it runs."""

    weights: tuple[int, ...]
    work: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Units:
    """The number of equal units, and the limits of each."""

    count: int
    ram_bytes: float = inf
    flash_bytes: float = inf


@dataclass(frozen=True, slots=True, eq=False)
class GroupLine:
    """A group graph as a line of n groups.

    `stages[i, j, u]`: ticks of groups i to j - 1 on u units, infinite if they do not fit. `crossing[k]`:
    bytes of the values that cross from group k - 1 to k, `transfers[k]` their ticks; at 0 and n: inputs and
    outputs of the graph, which cost no time. Of each group, `loads`: the most live bytes, with scratch;
    `weights`: bytes of constants; `works`: ticks on one unit.
    """

    graph: WorkGraph
    groups: tuple[Group, ...]
    edges: tuple[GroupEdge, ...]
    units: Units
    crossing: tuple[int, ...]
    loads: tuple[int, ...]
    weights: tuple[int, ...]
    works: tuple[float, ...]
    stages: NDArray[np.float64]
    transfers: NDArray[np.float64]

    def work(self, first: int, end: int) -> float:
        """Return the ticks of a stretch on one unit without limits."""
        return sum(self.works[first:end])

    def operators(self, first: int, end: int) -> tuple[int, ...]:
        """Return the operators of a stretch, group by group."""
        return tuple(it for group in self.groups[first:end] for vertex in group for it in vertex)

    def ram_bytes(self, first: int, end: int) -> int:
        """Return the RAM of each unit of a region: the most live bytes, and for frames in flight a second
        buffer for all that the region receives and sends.
        """
        return max(self.loads[first:end]) + self.crossing[first] + self.crossing[end]

    def flash_bytes(self, first: int, end: int) -> int:
        """Return the bytes of a region's constants. Each of its units computes rows of every operator, and
        stores all constants.
        """
        return sum(self.weights[first:end])


def line_of(
    graph: WorkGraph,
    groups: Sequence[Group],
    units: Units,
    costs: tuple[OperatorTicks, Communication],
    needs: OperatorBytes | None = None,
) -> GroupLine:
    """Return the graph as a line of these groups; no group reads a value of a later one."""
    needs = needs or OperatorBytes((0,) * len(graph.names), (0,) * len(graph.names))
    ticks, link = costs
    crossing = _crossing(graph, groups)
    line = GroupLine(
        graph,
        tuple(groups),
        group_edges(graph, groups),
        units,
        crossing,
        _loads(graph, groups, needs.work),
        tuple(sum(needs.weights[it] for vertex in group for it in vertex) for group in groups),
        tuple(sum(ticks(it, 1) for vertex in group for it in vertex) for group in groups),
        _stages(graph, groups, units.count, costs),
        np.array([0.0, *(link.across(size) for size in crossing[1:-1]), 0.0]),
    )
    for first in range(len(groups)):
        for end in range(first + 1, len(groups) + 1):
            if (
                line.ram_bytes(first, end) > units.ram_bytes
                or line.flash_bytes(first, end) > units.flash_bytes
            ):
                line.stages[first, end] = inf
    return line


def _lives(graph: WorkGraph, groups: Sequence[Group]) -> list[tuple[int, int, int]]:
    """Return for each value its first group (-1: an input), its last reader's group, and its bytes."""
    number, count = group_numbers(groups), len(groups)
    lives = []
    for value in graph.values:
        writer = -1 if value.producer is None else number[value.producer]
        last = count if value.kept else max((number[reader] for reader in value.readers), default=writer)
        lives.append((writer, last, value.size_bytes))
    return lives


def _crossing(graph: WorkGraph, groups: Sequence[Group]) -> tuple[int, ...]:
    lives = _lives(graph, groups)
    return tuple(
        sum(size for writer, last, size in lives if writer < cut <= last) for cut in range(len(groups) + 1)
    )


def _loads(graph: WorkGraph, groups: Sequence[Group], work: Sequence[int]) -> tuple[int, ...]:
    """Return the most live bytes, with scratch, in each group, whose operators run in the graph's order."""
    order = [it for group in groups for it in sorted(it for vertex in group for it in vertex)]
    place = {operator: at for at, operator in enumerate(order)}
    change = [0] * (len(order) + 1)
    for value in graph.values:
        writer = 0 if value.producer is None else place[value.producer]
        last = max((place[reader] for reader in value.readers), default=writer)
        change[writer] += value.size_bytes
        change[len(order) if value.kept else last + 1] -= value.size_bytes
    live = np.cumsum(change)
    return tuple(
        max(int(live[place[it]]) + work[it] for vertex in group for it in vertex) for group in groups
    )


def _stages(
    graph: WorkGraph, groups: Sequence[Group], units: int, costs: tuple[OperatorTicks, Communication]
) -> NDArray[np.float64]:
    """Return the ticks of every stretch on every number of units, with its units' communication; infinite for
    an empty stretch.
    """
    ticks, link = costs
    count = len(groups)
    stages = np.full((count + 1, count + 1, units + 1), inf)
    inner_bytes = _inner_bytes(graph, groups)
    for number in range(1, units + 1):
        ends = np.cumsum([0.0, *(group_ticks(group, number, ticks) for group in groups)])
        for first in range(count):
            for end in range(first + 1, count + 1):
                communication = link.within(int(inner_bytes[first, end]), number)
                stages[first, end, number] = ends[end] - ends[first] + communication
    return stages


def _inner_bytes(graph: WorkGraph, groups: Sequence[Group]) -> NDArray[np.int64]:
    """Return the bytes of the values that are written and read within each stretch; a value counts once."""
    number, count = group_numbers(groups), len(groups)
    totals = np.zeros((count + 1, count + 1), dtype=np.int64)
    for value in graph.values:
        if value.producer is not None and value.readers:
            writer, read = number[value.producer], min(number[reader] for reader in value.readers)
            totals[: writer + 1, read + 1 :] += value.size_bytes
    return totals
