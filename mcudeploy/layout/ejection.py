"""Offsets below a limit by ejection: a unit that has no free place takes the place of those that give way
most easily, and these look for another place. What had to push counts for more from then on, so that in the
end those give way that fit anywhere.

Method: the ejection pool with penalties that learn of Nagata and Braysy (2009, for vehicle routes), here for
offsets. It proves nothing, but where little of the time is crowded it finds what no order of first fit does.

Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mcudeploy.layout.greedy import Units
from mcudeploy.layout.problem import Outcome

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FIXED = 1e9
"""What it would cost to push away a unit whose offset is given: more than twice as much as all others
together. Sums with it are still exact to less than _NOTHING.
"""

_NOTHING = 1e-6
"""Sums of weights below are sums that would be 0 without rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Ejection:
    """Units as arrays. Unit u must not have its base in (lo[k], hi[k]) above that of unit near[k], both
    excluded, for k from near_at[u] on.
    """

    units: Units
    height: Ints
    grain: Ints
    near_at: Ints
    near: Ints
    lo: Ints
    hi: Ints

    @classmethod
    def of(cls, units: Units) -> Ejection:
        """For a problem in one memory."""
        rectangles = units.problem.rectangles
        where = {index: (unit, at) for unit, part in enumerate(units.parts) for index, at in part}
        pairs: list[tuple[int, int, int]] = []
        near_at = [0]
        for part in units.parts:
            for index, at in part:
                for other in units.neighbours[index]:
                    unit, distance = where[other][0], where[other][1] - at
                    below = distance - rectangles[index].size_bytes
                    pairs.append((unit, below, distance + rectangles[other].size_bytes))
            near_at.append(len(pairs))
        table = np.array(pairs, np.int64).reshape(-1, 3).T.copy()
        ends = (at + rectangles[index].size_bytes for index, at in (part[-1] for part in units.parts))
        height = np.array(list(ends), np.int64)
        grain = np.array([rectangles[part[0][0]].alignment for part in units.parts], np.int64)
        return cls(units, height, grain, np.array(near_at, np.int64), *table)

    def fit(self, start: Sequence[int], limit: int, *, visits: int, seed: int) -> Outcome:
        """Offsets with all ends within `limit` bytes, beginning with `start`; gives up after
        `visits`, which are its work: pairs of units that are looked at.
        """
        parts, fixed = self.units.parts, self.units.problem.fixed
        base = np.array([start[part[0][0]] for part in parts], np.int64)
        given = np.array([part[0][0] in fixed for part in parts], np.bool_)
        if bool((self.height > limit).any()) or bool((given & (base + self.height > limit)).any()):
            return Outcome(None)
        # Large ones find a place less often: the square root of the size proved best.
        weight = np.sqrt(self.height)
        weight = np.where(given, _FIXED, weight / weight.mean())
        found, done = _fit(
            base, self.height, self.grain, self.near_at, self.near, self.lo, self.hi, weight,
            limit, visits, seed,
        )  # fmt: skip
        if not found:
            return Outcome(None, work=int(done))
        return Outcome(self._offsets(base), work=int(done))

    def first_fit(self, order: Sequence[int], placed: Mapping[int, int]) -> tuple[int, ...]:
        """What `Units.first_fit` finds around what is placed, by index, all fixed offsets among it, in less
        time.
        """
        parts = self.units.parts
        base = np.array([placed.get(part[0][0], -1) for part in parts], np.int64)
        _first_fit(np.array(order, np.int64), base, self.grain, self.near_at, self.near, self.lo, self.hi)
        return self._offsets(base)

    def _offsets(self, base: Ints) -> tuple[int, ...]:
        """By rectangle, from those of the units."""
        offsets = [0] * len(self.units.problem.rectangles)
        for part, at in zip(self.units.parts, base.tolist(), strict=True):
            for index, distance in part:
                offsets[index] = at + distance
        return tuple(offsets)


_ARRAYS = ",".join(["int64[::1]"] * 7)


@njit(f"void({_ARRAYS})", cache=True)
def _first_fit(  # noqa: PLR0917
    order: Ints, base: Ints, grain: Ints, near_at: Ints, near: Ints, lo: Ints, hi: Ints
) -> None:
    """Changes `base`: each unit without one gets the lowest that is free."""
    most = 0
    for u in range(len(base)):
        most = max(most, near_at[u + 1] - near_at[u])
    below, above = np.empty(most, np.int64), np.empty(most, np.int64)
    for u in order:
        if base[u] >= 0:
            continue
        count = 0
        for k in range(near_at[u], near_at[u + 1]):
            there = base[near[k]]
            if there >= 0 and there + hi[k] > 0:
                below[count], above[count] = there + lo[k], there + hi[k]
                count += 1
        at = 0
        for k in np.argsort(below[:count]):
            if at <= below[k]:
                break
            if at < above[k]:
                at = -(-above[k] // grain[u]) * grain[u]
        base[u] = at


@njit(f"Tuple((boolean,int64))({_ARRAYS},float64[::1],int64,int64,int64)", cache=True)
def _fit(  # noqa: PLR0915, PLR0917  (one function of arrays, as numba wants it)
    base: Ints, height: Ints, grain: Ints, near_at: Ints, near: Ints, lo: Ints, hi: Ints, weight: Floats,
    limit: int, visits: int, seed: int,
) -> tuple[bool, int]:  # fmt: skip
    """Changes `base` until all units have a place (True), or not (False); and the visits."""
    np.random.seed(seed)
    count, most = len(base), 0
    pool, waiting = np.empty(count, np.int64), 0
    for u in range(count):
        most = max(most, near_at[u + 1] - near_at[u])
        if base[u] + height[u] > limit:
            base[u] = -1
            pool[waiting] = u
            waiting += 1
    # Where an overlap with one other begins and ends, in grains, and where a unit could be.
    edge, change = np.empty(2 * most, np.int64), np.empty(2 * most, np.float64)
    bases = np.empty(2 * most + 2, np.int64)
    done = 0
    while waiting > 0 and done < visits:
        number = np.random.randint(waiting)
        u = pool[number]
        waiting -= 1
        pool[number] = pool[waiting]
        done += near_at[u + 1] - near_at[u] + 1
        highest = (limit - height[u]) // grain[u]
        edges, tries = 0, 2
        bases[0], bases[1] = 0, highest
        for k in range(near_at[u], near_at[u + 1]):
            there = base[near[k]]
            if there < 0:
                continue
            below, above = (there + lo[k]) // grain[u], -((-there - hi[k]) // grain[u])
            if below >= highest or above <= 0 or above - below < 2:
                continue  # no base that is possible and excluded
            edge[edges], change[edges] = below, weight[near[k]]
            edge[edges + 1], change[edges + 1] = above - 1, -weight[near[k]]
            edges += 2
            if below >= 0:
                bases[tries] = below
                tries += 1
            if above <= highest:
                bases[tries] = above
                tries += 1
        order = np.argsort(edge[:edges])
        least, best, same, passed, load, last = np.inf, 0, 0, 0, 0.0, -1
        for at in np.sort(bases[:tries]):
            if at == last:
                continue
            last = at
            while passed < edges and edge[order[passed]] < at:
                load += change[order[passed]]
                passed += 1
            if load < least - _NOTHING:
                least, best, same = load, at, 1
            elif load < least + _NOTHING:
                same += 1
                if np.random.randint(same) == 0:
                    best = at
        if least > _FIXED / 2:  # it may be a little less by rounding
            return False, done
        at = best * grain[u]
        base[u] = at
        if least < _NOTHING:
            continue
        weight[u] += 1
        for k in range(near_at[u], near_at[u + 1]):
            there = base[near[k]]
            if there >= 0 and there + lo[k] < at < there + hi[k]:
                base[near[k]] = -1
                pool[waiting] = near[k]
                waiting += 1
    return waiting == 0, done
