"""Offsets below a limit, one birth after the other, in time or against it. Quick ways of placing go as far
as they can. From a few births before the place where the best of them got stuck a beam search goes on, which
judges every choice by how far the quick ways get from it; what gets further is the new start. The longer
nothing does, the more births are taken back and the wider is the beam.

Method: the pilot method (Duin and Voss, 1999) in a beam, for the part of the order that matters. A rectangle
goes to an end of a gap. Where equal bytes are taken by rectangles that live equally long the future is the
same, so one such state is kept. Plans of row blocks need this: most of their steps leave room, some are full
to the last byte, and what must be free in these is decided long before. It proves nothing.

Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mcudeploy.layout import beam
from mcudeploy.layout.beam import Flags, Ints
from mcudeploy.layout.greedy import Units
from mcudeploy.layout.problem import Outcome

_MOST_RECTANGLES = 5_000
"""Who meets whom is a table with a byte for each pair."""

_LADDER = ((16, 4), (64, 8), (256, 16), (1_024, 32), (4_096, 64), (16_384, 256))
"""Births that are taken back, and the width of the beam."""

_TURNS = 8
"""Each begins anew, with other choices among equals."""

_TASTES = ((1, 3), (0, 1, 2, 3, 4, 5))
"""Quick ways (`beam.spots`) that judge together. Which set does best differs from plan to plan, so both take
turns.
"""


@dataclass(slots=True, eq=False)
class _Way:
    """One direction of time: births, deaths, sizes, alignments and kinds by rectangle, the order of births,
    offsets for the first ones of the order, as many as are placed, and the tastes that judge.
    """

    items: tuple[Ints, ...]
    order: Ints
    offsets: Ints
    tastes: Ints
    placed: int = field(default=0)

    @property
    def done(self) -> bool:
        return self.placed >= len(self.order)


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Rectangles of one memory as arrays. `kind` is a number for those of equal size and lives."""

    lo: Ints
    hi: Ints
    size: Ints
    grain: Ints
    kind: Ints
    meets: Flags

    @classmethod
    def of(cls, units: Units) -> Sweep | None:
        """None for more rectangles than it is made for."""
        rectangles = units.problem.rectangles
        if len(rectangles) > _MOST_RECTANGLES:
            return None
        meets = np.zeros((len(rectangles), len(rectangles)), np.bool_)
        for index, others in enumerate(units.neighbours):
            meets[index, others] = True
        kinds: dict[object, int] = {}
        lo, hi, size, grain, kind = np.array(
            [
                (
                    item.lives[0].lo,
                    item.lives[-1].hi,
                    item.size_bytes,
                    item.alignment,
                    kinds.setdefault((item.size_bytes, item.lives), len(kinds)),
                )
                for item in rectangles
            ],
            np.int64,
        ).T.copy()
        return cls(lo, hi, size, grain, kind, meets)

    def fit(self, limit: int, *, given: Mapping[int, int], work: int, seed: int) -> Outcome:
        """Offsets with all ends within `limit` bytes, around those that are given, by index; gives up when
        the work is done (rectangles that are looked at), or what is given does not go together.
        """
        if any(at < 0 or at + self.size[index] > limit for index, at in given.items()):
            return Outcome(None)
        if any(
            self.meets[one, two] and low < given[two] + self.size[two] and given[two] < low + self.size[one]
            for one, low in given.items()
            for two in given
        ):
            return Outcome(None)
        left = work
        for turn in range(_TURNS):
            ways = self._ways(given)
            for rungs in range(1, len(_LADDER) + 1):
                for way in ways:
                    left -= self._climb(way, _LADDER[:rungs], limit, left, seed + turn)
                    if way.done:
                        return Outcome(tuple(way.offsets.tolist()), work=work - left)
                    if left <= 0:
                        return Outcome(None, work=work - left)
        return Outcome(None, work=work - left)

    def _ways(self, given: Mapping[int, int]) -> list[_Way]:
        offsets = np.full(len(self.size), -1, np.int64)
        for index, at in given.items():
            offsets[index] = at
        last, ways = int(self.hi.max()), []
        for birth, death in ((last - self.hi, last - self.lo), (self.lo, self.hi)):
            order = np.lexsort((-self.size, -death, birth))
            items = (birth, death, self.size, self.grain, self.kind)
            for tastes in _TASTES:
                ways.append(_Way(items, order[offsets[order] < 0], offsets, np.array(tastes)))
        return ways

    def _climb(self, way: _Way, rungs: tuple[tuple[int, int], ...], limit: int, most: int, seed: int) -> int:
        """Places more, as long as one of the rungs does; the work that it took."""
        work, rung = 0, 0
        while rung < len(rungs) and work < most and not way.done:
            back, width = rungs[rung]
            start = max(0, way.placed - back)
            placed, looked_at, offsets = beam.go_on(
                way.items, self.meets, way.order, way.offsets, start, way.placed, limit, width,
                way.tastes, most - work, seed,
            )  # fmt: skip
            work += looked_at
            rung = 0 if placed > way.placed else rung + 1
            way.placed, way.offsets = placed, offsets
        return work
