"""A packing problem as arrays for the compiled search of `canonical`, and the orders that it tries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.rectangles import PlacementProblem
from mcudeploy.planner.place.placement_problem import align_up

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_NODES = 1_000
"""Nodes of the first try of an order; they double in each round."""

_NOISY_TRIES = 3
"""The number of orders with noise per round: other orders are often better than more nodes."""

_NOISE = 0.7
"""Keys of an order are multiplied by up to e to this power."""


@dataclass(frozen=True, slots=True, eq=False)
class Sections:
    """The problem as arrays. Rectangle u lives in sections [lo[u], hi[u]), at a multiple of multiple[u]."""

    grain: int
    size: Ints
    multiple: Ints
    lo: Ints
    hi: Ints
    near_at: Ints
    near: Ints
    load: Ints
    room: Ints
    steps: Ints

    @classmethod
    def of(
        cls,
        problem: PlacementProblem,
        neighbours: list[list[int]],
        free: list[int],
        anchored: Mapping[int, int],
        capacity: int,
    ) -> Sections:
        """Return all rectangles but the `anchored`, which limit the room of their sections.

        Bytes are in units of `grain`.
        """
        items = [problem.rectangles[index] for index in free]
        times = np.unique([time for it in problem.rectangles for time in (it.life.lo, it.life.hi)])
        lo = np.searchsorted(times, np.array([item.life.lo for item in items], np.int64)).astype(np.int64)
        hi = np.searchsorted(times, np.array([item.life.hi for item in items], np.int64)).astype(np.int64)
        alignments = [item.alignment for item in problem.rectangles]
        alignment = gcd(*alignments)
        sizes = np.array([align_up(item.size_bytes, alignment) for item in items], np.int64)
        # Offsets are sums of sizes, and of padding if alignments differ; none if everything is anchored.
        uneven = [] if len(set(alignments)) == 1 else alignments
        grain = gcd(int(np.gcd.reduce(sizes)), *uneven) or 1
        size = sizes // grain
        multiple = np.array([item.alignment // grain if uneven else 1 for item in items], np.int64)
        load = np.zeros(len(times), np.int64)
        for a, b, height in zip(lo, hi, size, strict=True):
            load[a:b] += height
        # The whole capacity is rounded up, so that a proof holds for the exact capacity.
        room = np.full(len(times), align_up(capacity, alignment) // grain, np.int64)
        for index, offset in anchored.items():
            life = problem.rectangles[index].life
            a, b = np.searchsorted(times, (life.lo, life.hi))
            room[a:b] = np.minimum(room[a:b], offset // grain)
        number = {index: at for at, index in enumerate(free)}
        nears = [[number[other] for other in neighbours[index] if other in number] for index in free]
        near = np.array([other for others in nears for other in others], np.int64)
        near_at = np.cumsum([0, *map(len, nears)], dtype=np.int64)
        steps = np.array([len(item.life) for item in items], np.int64)
        return cls(grain, size, multiple, lo, hi, near_at, near, load, room, steps)

    def twins(self, order: Ints) -> Ints:
        """Return, for each rectangle, the previous one in order that equals it, or -1."""
        twins, last = np.full(len(order), -1, np.int64), dict[tuple[int, ...], int]()
        for u in map(int, order):
            key = tuple(int(each[u]) for each in (self.size, self.multiple, self.lo, self.hi))
            twins[u] = last.get(key, -1)
            last[key] = u
        return twins


def tries(sections: Sections, seed: int) -> Iterator[tuple[Floats, int, int]]:
    """Yield, without end, keys of an order, the row of the keys that is the crowd (-1: none), and nodes.

    The first row decides. Rows are life, area, and crowd, which the search itself fills in.
    """
    draw = np.random.default_rng(seed)
    life, crowd = -sections.steps.astype(np.float64), np.zeros(len(sections.steps))
    area = life * sections.size
    nodes = _NODES
    while True:
        yield np.array([crowd, life, area]), 0, nodes
        yield np.array([crowd, area, life]), 0, nodes
        yield np.array([life, area, crowd]), 2, nodes
        for number in range(_NOISY_TRIES):
            noisy = (life, area)[number % 2] * np.exp(draw.uniform(0, _NOISE, len(life)))
            yield np.array([crowd, noisy]), 0, nodes
        nodes *= 2
