"""The initial states of the search: for a bound on memory, the cuts that take the least time.

Tensors between segments are whole, so a border is possible if they fit into the bound. Whether a segment
fits depends on the segment before it only by whether that is cut. The least time under a bound is therefore a
shortest path over the borders. Bisection finds the least bound whose path keeps the latency limit.
For chains the bound is exact, except for the size of incoming blocks; the search simulates every state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from mcudeploy.cost.tiles import Costs
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.planner.search.cuts import ROWS_TRIED, Cut, Space, State
from mcudeploy.planner.search.ordered_graph import Segment
from mcudeploy.planner.search.segments import Segments

_REACH = (1, 2, 3, 4, 6, 8, 12)
"""Lengths of a segment, in borders. A place with more live bytes than the bound is not a border."""

_NEAR = 2
"""This number of operators before one that does not fit may be cut although they fit: it reads their rows."""

_FINE = 64
"""The bisection ends when the bound is known to one part in this number."""


_Way = tuple[float, State]
"""Time so far, and the cuts."""


class _StoppedError(Exception):
    """The effort is spent."""


@dataclass(frozen=True, slots=True, eq=False)
class CutProblem:
    """The cuts of a graph, its segments, its times, and the ticks that no state may exceed."""

    space: Space
    segments: Segments
    costs: Costs
    most_ticks: float


class Seeds:
    """States within the latency limit of a problem. `stopped` is called before each simulation of a cut."""

    def __init__(self, problem: CutProblem, stopped: Callable[[], bool]) -> None:
        space = problem.space
        self._space, self._segments, self._costs = space, problem.segments, problem.costs
        self._limit, self._stopped = problem.most_ticks, stopped
        whole = [space.flow.iteration_rows[position] for position in space.order]
        self._most = [space.most_rows[position] for position in space.order]
        self._singles: list[Segment] = [(place, (BlockRows(rows),)) for place, rows in enumerate(whole)]
        self._segment_of: dict[Cut, Segment] = {}
        self._whole_ticks = [self._ticks(single) for single in self._singles]

    def states(self) -> Iterator[State | None]:
        """Yield the fastest states under falling bounds, until none keeps the limit.

        A None says that the search was stopped; it may resume, and reuses the segments already simulated.
        """
        for hopeful in (False, True):
            yield from self._falling(hopeful)

    def _falling(self, hopeful: bool) -> Iterator[State | None]:
        border = self._segments.border_bytes
        low, high = max(border[0], border[-1]) - 1, self._segments.peak(())[0]
        while high - low > max(1, high // _FINE):
            bound = (low + high) // 2
            try:
                state = self._least_time(bound, hopeful)
            except _StoppedError:
                yield None
                continue
            if state is None:
                low = bound
            else:
                high = bound
                yield state

    def _least_time(self, bound: int, hopeful: bool) -> State | None:
        """Return the fastest cuts that fit into a bound; None if they exceed the latency limit.

        A node is a border, and whether the operator before it is cut, so that its rows die separately.
        `hopeful`: assume that they always do.
        """
        borders = [place for place, load in enumerate(self._segments.border_bytes) if load <= bound]
        places = len(self._singles)
        misfits = [0]  # by place: the number of operators before it that do not fit uncut
        for single in self._singles:
            misfits.append(misfits[-1] + (self._segments.alone(single, False) > bound))
        ways: dict[tuple[int, bool], _Way] = {(0, True): (0.0, ())}
        for index, first in enumerate(borders):
            for is_cut in (False, True):
                if (first, is_cut) not in ways:
                    continue
                way, in_rows = ways[first, is_cut], is_cut or hopeful
                for further in _REACH:
                    if index + further >= len(borders):
                        break
                    after = borders[index + further]
                    if after == first + 1 and self._segments.alone(self._singles[first], in_rows) <= bound:
                        self._offer(ways, (after, False), (way[0] + self._whole_ticks[first], way[1]))
                    near = after + _NEAR if further == 1 else after
                    fit = misfits[min(near, places)] == misfits[first]
                    if after - first == further and fit:
                        continue  # uncut operators fit here, and take less time
                    cut = self._cheapest(first, after, bound, in_rows)
                    if cut is not None:
                        self._offer(ways, (after, True), (way[0] + cut[0], (*way[1], cut[1])))
        found = min((ways[places, cut] for cut in (False, True) if (places, cut) in ways), default=None)
        return None if found is None or found[0] > self._limit else found[1]

    @staticmethod
    def _offer(ways: dict[tuple[int, bool], _Way], node: tuple[int, bool], way: _Way) -> None:
        if node not in ways or way[0] < ways[node][0]:
            ways[node] = way

    def _cheapest(self, first: int, after: int, bound: int, in_rows: bool) -> tuple[float, Cut] | None:
        """Return time and cut of the largest parts that fit, assuming that larger parts never need less.

        Staggered parts may be larger than others, and take a little longer.
        """
        most = max(self._most[first:after])
        cuts = [Cut(first, after - 1, rows, apart=True) for rows in ROWS_TRIED if rows < most]
        low = self._largest(cuts, bound, in_rows)
        if low < 0:
            return None
        staggered = [replace(cut, staggered=True) for cut in cuts[low + 1 :]]
        larger = self._largest(staggered, bound, in_rows)
        fitting = [cuts[low], *staggered[larger : larger + 1]] if larger >= 0 else [cuts[low]]
        return min((self._ticks(self._segment(cut)), cut) for cut in fitting)

    def _largest(self, cuts: Sequence[Cut], bound: int, in_rows: bool) -> int:
        """Return the number of the last cut that fits, of ascending rows; -1 if none does."""
        low, high = -1, len(cuts)
        while high - low > 1:
            middle = (low + high) // 2 if low >= 0 else 0
            if self._stopped():
                raise _StoppedError
            if self._segments.alone(self._segment(cuts[middle]), in_rows) <= bound:
                low = middle
            else:
                high = middle
        return low

    def _segment(self, cut: Cut) -> Segment:
        if cut not in self._segment_of:
            rows = self._space.step_rows((cut,))
            places = range(cut.first, cut.last + 1)
            self._segment_of[cut] = cut.first, tuple(rows[self._space.order[place]] for place in places)
        return self._segment_of[cut]

    def _ticks(self, segment: Segment) -> float:
        positions = self._space.order[segment[0] :]
        return sum(
            self._costs.operator_ticks(position, rows)
            for position, rows in zip(positions, segment[1], strict=False)
        )
