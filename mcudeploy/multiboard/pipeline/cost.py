"""What work costs: an operator on its share of units, a group on all of them, and what units tell each other.

All times are ticks: clocks of a unit. A core takes the instructions of its table for so many clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil, inf
from typing import Protocol

from mcudeploy.cost.tiles import STEP_TICKS, TileTime, timed_blocks
from mcudeploy.multiboard.pipeline.groups import Group
from mcudeploy.tiling.dataflow import Dataflow

OperatorTicks = Callable[[int, int], float]
"""Ticks of an operator, by its place in the work graph, on so many units."""


class Communication(Protocol):
    """What it takes to move bytes between units."""

    def within(self, size_bytes: int, units: int) -> float:
        """Ticks in which the units of a region tell each other so many bytes; 0 for one unit."""
        ...

    def across(self, size_bytes: int) -> float:
        """Ticks of a transfer from one region to the next."""
        ...


@dataclass(frozen=True, slots=True)
class UnitLink:
    """Links between neighbours: bytes in a tick, ticks before the first byte, links that a unit uses at once.

    A region of M units exchanges its bytes in `bytes * (M - 1) / (M * links * rate) + latency`.
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
"""Links that cost nothing."""


def systolic_ticks(m: int, k: int, n: int, edge: int) -> float:
    """Ticks of a product of m x k and k x n on an array of `edge` x `edge` cells."""
    if m > edge or n > edge:
        return m * k * n / edge**2 + 2 * (edge - 1)
    return m + k + n - 1


def systolic_operators(flow: Dataflow, positions: tuple[int, ...], edge: int) -> OperatorTicks:
    """Time on systolic arrays. Units share the output's pixels; what multiplies nothing makes `edge` values
    in a tick.
    """

    @cache
    def ticks(place: int, units: int) -> float:
        operator = flow.graph.operators[positions[place]]
        rows, cols, channels = flow.graph.tensors[operator.output].shape
        m = ceil(rows * cols / units)
        macs = flow.graph.loops(operator).macs()
        if macs == 0:
            return ceil(m * channels / edge)
        return systolic_ticks(m, round(macs / (rows * cols * channels)), channels, edge)

    return ticks


def core_operators(flow: Dataflow, positions: tuple[int, ...], tile_time: TileTime) -> OperatorTicks:
    """Time on cores. Units share an operator's rows; the longest tile counts."""

    @cache
    def ticks(place: int, units: int) -> float:
        position = positions[place]
        operator = flow.graph.operators[position]
        rows = ceil(flow.iteration_rows[position] / units)
        return STEP_TICKS + max(tile_time(operator, tile) for tile, _ in timed_blocks(flow, position, rows))

    return ticks


def shares(works: list[float], units: int) -> list[int]:
    """Units for each of several works, at least one each, the others in proportion to the works."""
    found = [1] * len(works)
    for _ in range(units - len(works)):
        most = max(range(len(works)), key=lambda one: (works[one] / found[one], -one))
        found[most] += 1
    return found


def group_ticks(group: Group, units: int, ticks: OperatorTicks) -> float:
    """Ticks until the last vertex of a group is done.

    Vertices have units of their own, in proportion to their work; with fewer units than vertices, each vertex
    in turn, the largest first, goes to the unit that has least to do.
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
