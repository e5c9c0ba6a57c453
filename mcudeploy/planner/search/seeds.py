"""The initial states of the search: for a bound on memory, the cuts that take the least time.

Tensors between segments are whole, so a border is possible if they fit into the bound. Whether a segment
fits depends on the segment before it only by whether that is cut. The least time under a bound is therefore a
shortest path over the borders. Bisection finds the least bound whose path keeps the latency limit.
For chains the bound is exact, except for the size of incoming blocks; the search simulates every state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.planner.search.cuts import ROWS_TRIED, Cut, Space, State
from mcudeploy.planner.search.levels import ticks_within
from mcudeploy.planner.search.ordered_graph import Segment
from mcudeploy.planner.search.segments import Segments
from mcudeploy.planner.search.tile_times import VariantTimes

REACH = (1, 2, 3, 4, 6, 8, 12)
"""Lengths of a segment, in borders. A place with more live bytes than the bound is not a border."""

_NEAR = 2
"""This number of operators before one that does not fit may be cut although they fit: it reads their rows."""

FINE = 64
"""The bisection ends when the bound is known to one part in this number."""

_SLACKS = (1.0, 0.97, 0.93, 0.85)
"""Shares of a RAM limit under which the fastest states are searched: offsets may take more than the peak."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """The assumptions of a path of cuts.

    `rows`: rows of tensors between segments die separately. `kernels`: fast kernels have their scratch.
    """

    rows: bool
    kernels: bool

    def after(self, is_cut: bool) -> Assumption:
        """Return the assumption for operators after some that are cut or not."""
        return replace(self, rows=self.rows or is_cut)


ASSUMPTIONS = tuple(Assumption(rows, kernels) for rows in (False, True) for kernels in (False, True))
"""The last is the most optimistic: what does not fit under it fits under none."""


@dataclass(frozen=True, slots=True)
class PathSegment:
    """Operators from a place on, one of them uncut or several in a cut, and their ticks.

    `form`: the number of the graph that has these operators, if there are several.
    """

    ticks: float
    place: int
    cut: Cut | None
    form: int = 0


def least_time(
    borders: Sequence[int],
    last: int,
    limit: float,
    between: Callable[[range, bool], Iterator[PathSegment]],
) -> tuple[PathSegment, ...] | None:
    """Return the segments of least ticks from place 0 to the last; None if they exceed the limit.

    A node is a border, and whether the operator before it is cut, so that its rows die separately. `between`
    yields the segments of the places between two borders, and receives the state of the first.
    """
    ways: dict[tuple[int, bool], tuple[float, tuple[PathSegment, ...]]] = {(0, True): (0.0, ())}
    for index, first in enumerate(borders):
        for is_cut in (False, True):
            if (first, is_cut) not in ways:
                continue
            ticks, path = ways[first, is_cut]
            for after in (borders[index + length] for length in REACH if index + length < len(borders)):
                for segment in between(range(first, after), is_cut):
                    node, total = (after, segment.cut is not None), ticks + segment.ticks
                    if node not in ways or total < ways[node][0]:
                        ways[node] = total, (*path, segment)
    ends = [ways[last, is_cut] for is_cut in (False, True) if (last, is_cut) in ways]
    total, fastest = min(ends, key=lambda way: way[0], default=(inf, None))
    return fastest if total <= limit else None


Chain = tuple[str, ...]
"""Names of operators, each of which alone reads the output of the one before."""

Chains = tuple[Chain, ...]
"""The chains that a form of the graph has as one operator each."""


class StoppedError(Exception):
    """The effort is spent."""


@dataclass(frozen=True, slots=True, eq=False)
class CutProblem:
    """The cuts of a graph, its segments, its times by kernel, and the ticks that no state may exceed.

    States with a peak of at most `ram_limit` bytes are compared by ticks. `chains`: those fused in the graph.
    """

    space: Space
    segments: Segments
    variants: VariantTimes
    most_ticks: float
    ram_limit: float = 0.0
    chains: Chains = ()


class Seeds:
    """States within the latency limit of a problem. `stopped` is called before each simulation of a cut."""

    def __init__(self, problem: CutProblem, stopped: Callable[[], bool]) -> None:
        space = problem.space
        self._space, self._segments = space, problem.segments
        self._stopped = stopped
        self._variants, self._ram_limit = problem.variants, problem.ram_limit
        whole = [space.flow.iteration_rows[position] for position in space.order]
        self._most = [space.most_rows[position] for position in space.order]
        self._singles: list[Segment] = [(place, (BlockRows(rows),)) for place, rows in enumerate(whole)]
        self._segment_of: dict[Cut, Segment] = {}
        self.names = tuple(space.flow.graph.operators[at].name for at in space.order)
        """The operators in their order."""
        self.limit = problem.most_ticks

    @property
    def least_bytes(self) -> int:
        """The bytes that the inputs or the outputs take."""
        border = self._segments.border_bytes
        return max(border[0], border[-1])

    def borders(self, bound: float) -> list[int]:
        """Return the places where a segment may begin or end under a bound."""
        return [place for place, load in enumerate(self._segments.border_bytes) if load <= bound]

    def segments(
        self, places: range, bound: float, assumption: Assumption, cutting: bool = True
    ) -> Iterator[PathSegment]:
        """Yield operators that fit into a bound: one that is not cut; if `cutting`, the best cut."""
        if len(places) == 1:
            whole = self._ticks_within(self._singles[places[0]], bound, assumption)
            if whole is not None:
                yield PathSegment(whole, places.start, None)
        best = self._cheapest(places, bound, assumption) if cutting else None
        if best is not None:
            yield PathSegment(best[0], places.start, best[1])

    def states(self) -> Iterator[State | None]:
        """Yield the fastest states under falling bounds, until none keeps the limit.

        A None says that the search was stopped; it may resume, and reuses the segments already simulated.
        """
        for assumption in ASSUMPTIONS:
            fits = False
            for slack in _SLACKS if self._ram_limit else ():
                for state in self._fastest(self._ram_limit * slack, assumption):
                    fits |= state is not None
                    yield state
            if not fits:
                yield from self._falling(assumption)

    def _fastest(self, bound: float, assumption: Assumption) -> Iterator[State | None]:
        """Yield the fastest state under a bound, if it keeps the latency limit."""
        while True:
            try:
                state = self._least_time(bound, assumption)
            except StoppedError:
                yield None
                continue
            if state is not None:
                yield state
            return

    def _falling(self, assumption: Assumption) -> Iterator[State | None]:
        low, high = self.least_bytes - 1, self._segments.peak(())[0]
        while high - low > max(1, high // FINE):
            bound = (low + high) // 2
            try:
                state = self._least_time(bound, assumption)
            except StoppedError:
                yield None
                continue
            if state is None:
                low = bound
            else:
                high = bound
                yield state

    def _least_time(self, bound: float, assumption: Assumption) -> State | None:
        """Return the fastest cuts that fit into a bound; None if they exceed the latency limit."""
        borders = self.borders(bound)
        number = {place: at for at, place in enumerate(borders)}
        misfits = [0]  # by place: the number of operators before it that do not fit uncut
        for single in self._singles:
            misfits.append(misfits[-1] + (self._peak(single, False) > bound))

        def between(places: range, is_cut: bool) -> Iterator[PathSegment]:
            first, after = places.start, places.stop
            length = number[after] - number[first]
            near = min(after + _NEAR, len(self._singles)) if length == 1 else after
            # uncut operators take less time, where they fit
            uncut = len(places) == length and misfits[near] == misfits[first]
            return self.segments(places, bound, assumption.after(is_cut), cutting=not uncut)

        path = least_time(borders, len(self._singles), self.limit, between)
        return None if path is None else tuple(each.cut for each in path if each.cut is not None)

    def _cheapest(self, places: range, bound: float, assumption: Assumption) -> tuple[float, Cut] | None:
        """Return time and cut of the largest parts that fit, assuming that larger parts never need less.

        Staggered parts may be larger than others, and smaller parts may leave room for faster kernels.
        """
        most = max(self._most[place] for place in places)
        cuts = [Cut(places[0], places[-1], rows, apart=True) for rows in ROWS_TRIED if rows < most]
        low = self._largest(cuts, bound, assumption)
        if low < 0:
            return None
        staggered = [replace(cut, staggered=True) for cut in cuts[low + 1 :]]
        larger = self._largest(staggered, bound, assumption)
        fitting = cuts[max(0, low - 1) : low + 1]
        if larger >= 0:
            fitting += staggered[max(0, larger - 1) : larger + 1]
        timed = ((self._ticks_within(self._segment(cut), bound, assumption), cut) for cut in fitting)
        return min(((ticks, cut) for ticks, cut in timed if ticks is not None), default=None)

    def _largest(self, cuts: Sequence[Cut], bound: float, assumption: Assumption) -> int:
        """Return the number of the last cut that fits, of ascending rows; -1 if none does."""
        low, high = -1, len(cuts)
        while high - low > 1:
            middle = (low + high) // 2 if low >= 0 else 0
            if self._stopped():
                raise StoppedError
            if self._peak(self._segment(cuts[middle]), assumption.rows) <= bound:
                low = middle
            else:
                high = middle
        return low

    def _peak(self, segment: Segment, in_rows: bool) -> int:
        return max(self._segments.alone(segment, in_rows).values(), default=0)

    def _segment(self, cut: Cut) -> Segment:
        if cut not in self._segment_of:
            rows = self._space.step_rows((cut,))
            places = range(cut.first, cut.last + 1)
            self._segment_of[cut] = cut.first, tuple(rows[self._space.order[place]] for place in places)
        return self._segment_of[cut]

    def _ticks_within(self, segment: Segment, bound: float, assumption: Assumption) -> float | None:
        """Return the ticks of a segment by the fastest kernels under a bound; None if it does not fit."""
        first, sizes = segment
        order, times = self._space.order, self._variants.of_blocks
        loads = self._segments.alone(segment, assumption.rows)
        if assumption.kernels and max(loads.values(), default=0) <= bound:
            bound = inf
        return ticks_within(loads, lambda place: times(order[place], sizes[place - first]), bound)
