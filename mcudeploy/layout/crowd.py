"""Offsets below a limit, the crowded steps first: what is alive in them is placed as if there was nothing
else, first fit puts the rest around that, and ejection mends what then ends too high. The fewer steps count
as crowded the easier is the first part and the harder the last; so it begins with few.

Two searches take turns in placing the crowd, because now this one and now that one is quick: the canonical
one, also with all scratch at the top, which leaves rows of few sizes; and CP-SAT, with intervals of bytes and
on a grid of cells.

Row blocks that run depth first need this: a few steps of each turn are full to the last byte, most are not.
Import only where it is needed: numba and the solver take their time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain

from mcudeploy.layout import canonical, cells, effort, intervals
from mcudeploy.layout.ejection import Ejection
from mcudeploy.layout.greedy import brief_at_the_top, used_bytes
from mcudeploy.layout.problem import Outcome, Problem, conflicts, stacks_at_the_top

_SHARES = (0.98, 0.95, 0.92, 0.9, 0.88, 0.86, 0.84, 0.82, 0.8, 0.75, 0.7, 0.0)
"""A step is crowded where its load is at least this part of the limit; the last ones are all steps."""

_CANONICAL_S, _INTERVALS_S, _CELLS_S, _EJECTION_S = 0.2, 1.2, 0.25, 0.5
"""Effort for one crowd at most, in the first round; in each round twice as much."""

_ROUNDS = 8
"""Each from few crowded steps to all, with another seed."""

_PATIENCE = 2
"""A search that fails so often in a row is given up: with more rectangles it is harder as a rule."""

_Way = Callable[[list[int]], Outcome]
"""Offsets of a crowd, by index of its rectangles."""

_Packer = Callable[..., tuple[dict[int, int] | None, float]]
"""`intervals.pack` or `cells.pack`."""


def fit(
    ejection: Ejection, limit: int, *, seconds: float, deadline: float, seed: int
) -> tuple[Outcome, float]:
    """Offsets with all ends within `limit` bytes, and the seconds of effort that it took, of `seconds`;
    `deadline` (of `time.process_time`) ends it. The problem is one without overlaps and fixed offsets.
    """
    search = _Search(ejection, limit, seconds, deadline, seed)
    return search.run(), seconds - search.left


@dataclass(slots=True, eq=False)
class _Search:
    """`left`: seconds of effort. `most`: how much more is spent on one crowd than in the first round."""

    ejection: Ejection
    limit: int
    left: float
    deadline: float
    seed: int
    most: int = 1

    def run(self) -> Outcome:
        problem = self.ejection.units.problem
        hung, brief = stacks_at_the_top(problem, self.limit), brief_at_the_top(problem, self.limit)
        if any(at < 0 for at in hung.values()):
            return Outcome(None)
        ways: list[_Way] = [partial(self._canonical, hung)]
        if brief != hung and min(brief.values()) >= 0:
            ways.append(partial(self._canonical, brief))
        for pack, seconds in ((intervals.pack, _INTERVALS_S), (cells.pack, _CELLS_S)):
            ways.append(partial(self._solved, pack, seconds, hung))
        crowds = list(self._crowds())
        for _ in range(_ROUNDS):
            found = self._round(ways, crowds)
            if found.decided or self.left <= 0:
                return found
            self.seed, self.most = self.seed + 1, self.most * 2
        return Outcome(None)

    def _round(self, ways: list[_Way], crowds: list[list[int]]) -> Outcome:
        failed = dict.fromkeys(range(len(ways)), 0)
        for indices in crowds:
            for number, way in enumerate(ways):
                if self.left <= 0 or time.process_time() > self.deadline:
                    return Outcome(None)
                if failed[number] >= _PATIENCE:
                    continue
                found = way(indices)
                failed[number] = 0 if found.offsets is not None else failed[number] + 1
                if found.proven:
                    return found
                if found.offsets is not None:
                    mended = self._mended(dict(zip(indices, found.offsets, strict=True)))
                    if mended is not None:
                        return Outcome(mended)
            if all(count >= _PATIENCE for count in failed.values()):
                break
        return Outcome(None)

    def _crowds(self) -> Iterator[list[int]]:
        """What lives in crowded steps, and all stacks, by index; ever more."""
        problem, before = self.ejection.units.problem, 0
        bytes_by_step = loads(problem)
        fullest = [
            max(max(bytes_by_step[life.lo : life.hi]) for life in item.lives) for item in problem.rectangles
        ]
        for index in chain(*problem.stacks):
            fullest[index] = self.limit
        for share in _SHARES:
            indices = [index for index, load in enumerate(fullest) if load >= share * self.limit]
            if len(indices) > before:
                yield indices
            before = len(indices)

    def _canonical(self, hung: dict[int, int], indices: list[int]) -> Outcome:
        """Offsets of the crowd."""
        part = _part(self.ejection.units.problem, indices)
        if not canonical.applies(part):
            return Outcome(None)
        given = {at: hung[index] for at, index in enumerate(indices) if index in hung}
        work = int(min(_CANONICAL_S * self.most, self.left) * effort.LOOKED_AT)
        found = canonical.pack(
            part, conflicts(part), self.limit, work=work, deadline=self.deadline, seed=self.seed, hung=given
        )
        self.left -= found.work / effort.LOOKED_AT
        return found

    def _solved(self, pack: _Packer, seconds: float, hung: dict[int, int], indices: list[int]) -> Outcome:
        """Offsets of the crowd by CP-SAT, with so much effort in the first round."""
        free, given = [i for i in indices if i not in hung], {i: hung[i] for i in indices if i in hung}
        offsets, took = pack(
            self.ejection.units.problem, free, given, self.limit, seconds=min(seconds * self.most, self.left),
            brake=max(0.1, self.deadline - time.process_time()), seed=self.seed,
        )  # fmt: skip
        self.left -= took
        if offsets is None:
            return Outcome(None)
        placed = given | offsets
        return Outcome(tuple(placed[index] for index in indices))

    def _mended(self, placed: dict[int, int]) -> tuple[int, ...] | None:
        """All offsets, around those of the crowd, if that is possible or ejection makes it so."""
        best = _around(self.ejection, placed)
        if used_bytes(self.ejection.units.problem, best) <= self.limit:
            return best
        visits = int(min(_EJECTION_S * self.most, self.left) * effort.VISITED)
        mended = self.ejection.fit(best, self.limit, visits=visits, seed=self.seed)
        self.left -= mended.work / effort.VISITED
        return mended.offsets


def loads(problem: Problem) -> list[int]:
    """Bytes alive by step."""
    change = [0] * (max(item.lives[-1].hi for item in problem.rectangles) + 1)
    for item in problem.rectangles:
        for life in item.lives:
            change[life.lo] += item.size_bytes
            change[life.hi] -= item.size_bytes
    return list(accumulate(change))[:-1]


def _part(problem: Problem, indices: list[int]) -> Problem:
    """Some rectangles alone, all stacks among them."""
    number = {index: at for at, index in enumerate(indices)}
    stacks = tuple(tuple(number[index] for index in stack) for stack in problem.stacks)
    return Problem(tuple(problem.rectangles[index] for index in indices), stacks=stacks)


def _around(ejection: Ejection, placed: dict[int, int]) -> tuple[int, ...]:
    """The best of first fit in the fixed orders, around what is placed."""
    found = (ejection.first_fit(order, placed) for order in ejection.units.orders())
    return min(found, key=lambda offsets: used_bytes(ejection.units.problem, offsets))
