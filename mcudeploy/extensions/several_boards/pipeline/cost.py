"""Costs of an operator on some units, of a group on the units of its region, and of communication.

All times are ticks: clocks of a unit. An instruction in a core's table counts as one clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil, inf
from typing import Protocol

from mcudeploy.costs.tiles import STEP_TICKS, TileTime, timed_blocks
from mcudeploy.extensions.several_boards.pipeline.groups import Group
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.tiling.dataflow import Dataflow

OperatorTicks = Callable[[int, int], float]
"""Ticks of an operator, by its number in the work graph and the number of units."""


class Communication(Protocol):
    """The cost of moving bytes between units."""

    def within(self, size_bytes: int, units: int) -> float:
        """Return the ticks in which the units of a region exchange these bytes; 0 for one unit."""
        ...

    def across(self, size_bytes: int) -> float:
        """Return the ticks of a transfer from one region to the next."""
        ...


@dataclass(frozen=True, slots=True)
class UnitLink:
    """Links between neighbours. `rate`: bytes per tick; `latency`: ticks before the first byte.

    `links`: the number that a unit uses at once. A region of M units exchanges its bytes in
    `bytes * (M - 1) / (M * links * rate) + latency`.
    """

    rate: float
    latency: float = 0.0
    links: int = 1

    def within(self, size_bytes: int, units: int) -> float:
        if units == 1:
            return 0.0
        return size_bytes * (units - 1) / (units * self.links * self.rate) + self.latency

    def across(self, size_bytes: int) -> float:
        return size_bytes / self.rate + self.latency


FREE = UnitLink(inf)
"""Links without cost."""


def systolic_ticks(m: int, k: int, n: int, edge: int, groups: int = 1) -> float:
    """Return the ticks of a product of m x k and k x n on an array of `edge` x `edge` cells.

    A grouped convolution is a product for each group in turn, on as many columns as a group has outputs. A
    depthwise convolution uses one column.
    """
    if groups > 1:
        columns = min(edge, n // groups)
        return m * k * n / (edge * columns) + 2 * (edge - 1)
    if m > edge or n > edge:
        return m * k * n / edge**2 + 2 * (edge - 1)
    return m + k + n - 1


def systolic_operators(flow: Dataflow, positions: tuple[int, ...], edge: int) -> OperatorTicks:
    """Return the ticks of operators on systolic arrays; `positions`: of the operators in the model's graph.

    Units share the output's pixels; an operator without multiplications computes `edge` values per tick.
    """

    @cache
    def ticks(place: int, units: int) -> float:
        operator = flow.graph.operators[positions[place]]
        rows, cols, channels = flow.graph.tensors[operator.output].shape
        m = ceil(rows * cols / units)
        nest = flow.graph.loops(operator)
        if nest.macs() == 0:
            return ceil(m * channels / edge)
        groups = next((axis.size for axis in nest.axes if axis.name == "g"), 1)
        return systolic_ticks(m, round(nest.macs() / (rows * cols * channels)), channels, edge, groups)

    return ticks


def core_operators(flow: Dataflow, positions: tuple[int, ...], tile_time: TileTime) -> OperatorTicks:
    """Return the ticks of operators on cores. Units share an operator's rows; the longest tile counts."""

    @cache
    def ticks(place: int, units: int) -> float:
        position = positions[place]
        operator = flow.graph.operators[position]
        rows = BlockRows(ceil(flow.iteration_rows[position] / units))
        return STEP_TICKS + max(tile_time(operator, tile) for tile, _ in timed_blocks(flow, position, rows))

    return ticks


def shares(works: list[float], units: int) -> list[int]:
    """Return the number of units for each work: at least one, further units in proportion to the works."""
    counts = [1] * len(works)
    for _ in range(units - len(works)):
        slowest = max(range(len(works)), key=lambda number: (works[number] / counts[number], -number))
        counts[slowest] += 1
    return counts


def group_ticks(group: Group, units: int, ticks: OperatorTicks) -> float:
    """Return the ticks until the last vertex of a group is done.

    Vertices run on separate units, in proportion to their work. With fewer units than vertices, the vertices
    go to the least loaded unit in turn, the largest first.
    """
    works = [sum(ticks(operator, 1) for operator in vertex) for vertex in group]
    if units < len(group):
        loads = [0.0] * units
        for work in sorted(works, reverse=True):
            loads[loads.index(min(loads))] += work
        return max(loads)
    parts = shares(works, units)
    return max(
        sum(ticks(operator, part) for operator in vertex) for vertex, part in zip(group, parts, strict=True)
    )
