"""What cannot be within a bound, seen from the turns of a few chosen steps.

In every order the chosen steps take turns: one runs while some of the others are done and the rest is left.
A minimum cut tells the least memory of such a turn, whatever all other steps do. Turns that fit within the
bound join the sets of chosen steps done before and after them; where no way leads from none of them done to
all of them, no order stays within the bound. Else one more step is chosen, and every turn becomes two: with
that step done, and with it left. A set of done steps that shows that a turn fits shows it for one of the two.

This is the search over sets of done steps, relaxed: most steps are not looked at, and orders of the same
steps meet in one set. To choose well decides all: of the steps that need the most that one is taken which,
in a sample of turns, brings both sides nearest to the bound, or above it (the product rule of strong
branching in integer programs). As a rule ten or twenty are enough.

Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcudeploy.scheduler import flow
from mcudeploy.scheduler.arrays import Bits, Flags, Ints, counts
from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.pieces import Pair
from mcudeploy.scheduler.probing import Probe
from mcudeploy.scheduler.problem import Problem

MOST_CHOSEN = 64
"""Sets of chosen steps are words of so many bits."""

_CANDIDATES = 60
"""So many of the steps that need the most are thought of as the next to choose."""

_SAMPLE = 30
"""So many turns tell which is the best."""

_CHUNK = 100
"""So many turns are weighed between two looks at the clock."""

_LITTLE = 0.1
"""What a side counts that is as far from the bound as before."""

_NOTHING = np.zeros(0, np.int64)


class Turns(NamedTuple):
    """Turns that fit: the chosen steps that are done, as bits by their places, the place of the one that
    runs, the bytes it needs at least, and the smallest and the largest set of done steps that need no more.
    """

    done: NDArray[np.uint64]
    place: Ints
    need: Ints
    smallest: Bits
    largest: Bits

    def of(self, which: Flags | Ints) -> Turns:
        """Some of them."""
        columns = (column[which] for column in self)
        return Turns(*columns)  # type: ignore[arg-type]

    def after(self) -> NDArray[np.uint64]:
        """The chosen steps that are done after each."""
        return self.done | _bit(self.place)


def explore(problem: Problem, bound: int, most_cuts: float, deadline: Deadline) -> tuple[bool, list[Pair]]:
    """As `probing.learn`, after what turns tell, to which half of `most_cuts` goes at most."""
    probe = Probe(problem, bound, 0, deadline)
    if not probe.run():
        return False, []
    search = Search(probe)
    thinkable = search.run(most_cuts / 2)
    if thinkable:
        for first, second in search.pairs():
            if not probe.decided(first, second):
                probe.add(first, second)
        probe.most_cuts = most_cuts
        thinkable = probe.run()
    return thinkable, probe.pairs()


class Search:
    """The chosen steps and their turns, under the bound of a probe and with what it knows."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.chosen = np.zeros(0, np.int64)
        words = probe.known.before.shape[1]
        sets = np.zeros((0, words), np.uint64)
        self.turns = Turns(_NOTHING.astype(np.uint64), _NOTHING, _NOTHING, sets, sets)
        self.random = np.random.default_rng(0)

    def run(self, most_cuts: float) -> bool:
        """False if there is no order within the bound; True if nobody can say so with about so many cuts, or
        at the deadline of the probe.
        """
        order = np.argsort(-self.probe.known.needs, kind="stable").tolist()
        candidates = [step for step in order if self.probe.leaves_open(step)]
        with suppress(TimeoutError):
            while candidates and len(self.chosen) < MOST_CHOSEN and self.probe.cuts <= most_cuts:
                step = self._best(candidates)
                candidates.remove(step)
                self._choose(step)
                if not len(self.turns.done):
                    return False
        return True

    def pairs(self) -> list[Pair]:
        """Pairs of chosen steps that come in this order on every way."""
        found = []
        for place, step in enumerate(self.chosen.tolist()):
            before = np.bitwise_and.reduce(self.turns.done[self.turns.place == place])
            found += [(other, step) for k, other in enumerate(self.chosen.tolist()) if int(before) >> k & 1]
        return found

    def _best(self, candidates: list[int]) -> int:
        """The one that brings a sample of turns the nearest to the bound on both sides: the largest sum of
        products of how far each side raises what is needed.
        """
        count = len(self.turns.done)
        if not count:
            return candidates[0]
        sample = self.turns.of(self.random.choice(count, min(_SAMPLE, count), replace=False))
        room = self.probe.bound - sample.need + 1
        for begin in range(0, len(candidates), _CANDIDATES):
            some = np.array(candidates[begin : begin + _CANDIDATES])
            *_, needs = self._weigh(self.chosen, sample.done, sample.place, some)
            raised = np.minimum(needs - sample.need, room) / room + _LITTLE
            gains = np.where((needs == flow.CONTRADICTED).any(0), 0, raised.prod(0)).sum(1)
            if gains.any():
                return int(some[gains.argmax()])
        return candidates[0]

    def _choose(self, step: int) -> None:
        """Every turn with that step done, and with it left, and its own turns, where they lie on a way."""
        turns, chosen, place = self.turns, np.append(self.chosen, step), len(self.chosen)
        found = [
            Turns(done, turns.place, *self._with(turns, step, side))
            for side, done in ((False, turns.done), (True, turns.done | _bit(place)))
        ]
        own = np.unique(np.concatenate([np.zeros(1, np.uint64), turns.done, turns.after()]))
        places = np.full(len(own), place)
        found.append(Turns(own, places, *self._weigh(chosen, own, places)[:3]))
        fitting = [some.of((some.need >= 0) & (some.need <= self.probe.bound)) for some in found]
        self.turns = Turns(*(np.concatenate(columns) for columns in zip(*fitting, strict=True)))
        self.chosen = chosen
        self.turns = self.turns.of(self._on_the_way())

    def _with(self, turns: Turns, step: int, side: bool) -> tuple[Ints, Bits, Bits]:
        """What turns need with one more step done, or left, and the sets for that. Where a set that is there
        shows it, no cut is needed.
        """
        word, bit = step >> 6, np.uint64(1 << (step & 63))
        in_smallest, in_largest = turns.smallest[:, word] & bit != 0, turns.largest[:, word] & bit != 0
        needs, smallest, largest = turns.need.copy(), turns.smallest.copy(), turns.largest.copy()
        if side:
            smallest[~in_smallest] = largest[~in_smallest]
        else:
            largest[in_largest] = smallest[in_largest]
        ask = np.flatnonzero(~in_largest if side else in_smallest)
        done = turns.done[ask] | _bit(len(self.chosen)) if side else turns.done[ask]
        chosen = np.append(self.chosen, step)
        needs[ask], smallest[ask], largest[ask], _ = self._weigh(chosen, done, turns.place[ask])
        return needs, smallest, largest

    def _weigh(
        self, chosen: Ints, done: Bits, place: Ints, more: Ints = _NOTHING
    ) -> tuple[Ints, Bits, Bits, Ints]:
        """As `flow.weigh_turns`. TimeoutError at the deadline."""
        probe, found = self.probe, []
        for begin in range(0, max(1, len(done)), _CHUNK):
            if probe.deadline.passed():
                raise TimeoutError
            some = slice(begin, begin + _CHUNK)
            found.append(
                flow.weigh_turns(probe.given, probe.known, chosen, done[some], place[some], probe.bound, more)
            )
        needs, sets, with_more = zip(*found, strict=True)
        smallest, largest = np.concatenate(sets, axis=1)
        return np.concatenate(needs), smallest, largest, np.concatenate(with_more, axis=2)

    def _on_the_way(self) -> Flags:
        """The turns on some way from none of the chosen steps done to all of them."""
        turns, after = self.turns, self.turns.after()
        level = counts(turns.done[:, None])
        count = len(self.chosen)
        on = np.zeros(len(level), np.bool_)
        reached = np.zeros(1, np.uint64)
        for size in range(count):
            these = np.flatnonzero(level == size)
            on[these] = np.isin(turns.done[these], reached)
            reached = np.unique(after[these[on[these]]])
        for size in reversed(range(count)):
            these = np.flatnonzero(on & (level == size))
            on[these] = np.isin(after[these], reached)
            reached = np.unique(turns.done[these[on[these]]])
        return on


def _bit(place: int | Ints) -> NDArray[np.uint64]:
    return np.uint64(1) << np.asarray(place, np.uint64)
