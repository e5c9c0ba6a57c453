"""The best-first search for the cuts with the least memory within a latency limit and a budget.

Method: Peking University's published patent on fine-grained splitting, after MAGIS (ASPLOS'24), which orders
states by (max(latency, limit), peak). States over the limit are dropped here, so the others are ordered by
their levels (see levels.py). With a RAM limit, ticks order those that keep it. States far from the best are
not expanded. Most generated states are duplicates, recognised by hash. A state is simulated segment by
segment, and every segment once.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf

from mcudeploy.common.effort import Effort
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.plan import Schedule, Search
from mcudeploy.planner.search.cuts import State
from mcudeploy.planner.search.levels import Level, level_of
from mcudeploy.planner.search.ordered_graph import Segment
from mcudeploy.planner.search.seeds import Chains, CutProblem, Seeds
from mcudeploy.planner.search.segments import CutSegments
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import live_peak

FOLLOWED_WITHIN = 1.10
"""States whose peak exceeds the best peak by more than this factor are not expanded."""

KEPT = 16
"""Number of candidates returned: the first may be too slow on the device, or may not pack best."""

ALIKE = 3
"""Number of candidates kept for one peak at one operator: they usually pack the same."""

PATIENCE = 2000
"""Number of consecutive states without a gain that ends a phase: the rest are variants of the best."""

SEEDING_SHARE = 0.9
"""Maximum share of the effort for seeds: branched networks get their cuts from them."""

REPORT_EVERY_S = 0.5

_STATE_UNITS = 130
"""Effort of a state, without the simulation of its segments."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A state with its schedule, its peak with the least scratch, and its time.

    `level_bytes`: its level, at least the RAM limit if there is one.
    """

    state: State
    tiled: TiledGraph
    schedule: Schedule
    peak_bytes: int
    peak_step: int
    ticks: float
    level_bytes: float

    @property
    def peak_operator(self) -> int:
        """The position of the operator at the peak."""
        return self.schedule.steps[self.peak_step].operator if self.schedule.steps else 0


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """The best candidates by increasing peak, always including the unsplit one, and the search.

    `hurried`: the effort was spent before the first move.
    """

    best: tuple[Candidate, ...]
    search: Search
    interrupted: bool = False
    hurried: bool = False


OnGain = Callable[[Search, Candidate], None]
"""Receives the search and its best candidate, at every gain and every `REPORT_EVERY_S` seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A state with its peak, the place of the operator at it, the segments that reach it, and its time.

    `problem`: that of the form it belongs to. The other fields of a `Candidate` are computed for the best
    states only.
    """

    problem: CutProblem
    state: State
    cut_segments: CutSegments
    peak_bytes: float
    peak_operator: int
    occurrences: int
    ticks: float


class BestFirst:
    """The search for the cuts of a problem: the known states, the queue, and the best states.

    `explore` continues the search, so more effort finds every state that less effort finds. `start`: states
    of an earlier search, tried first. Without `seeded`, its only seeds are the states that are added, also of
    other forms of the graph. `ended`: the queue is empty, or there was no gain for a long time.
    `interrupted`: by Ctrl-C.
    """

    def __init__(
        self,
        problem: CutProblem,
        *,
        start: Iterable[State] = (),
        seeded: bool = True,
        report: OnGain = lambda *_: None,
    ) -> None:
        self.problem, self.seeded = problem, seeded
        self._segments, self._most_ticks = problem.segments, problem.most_ticks
        self._effort, self._charged_units = Effort(0), problem.segments.effort_units
        self._report = report
        self._start = self._reported = time.monotonic()
        self.moved = self.ended = self.interrupted = False
        self._known: set[tuple[Chains, CutSegments]] = set()
        self._duplicates = self._last_gain = 0
        self._whole_ticks: dict[Chains, float] = {}
        self._added_ticks: dict[tuple[Chains, Segment], float] = {}
        self._queue: list[tuple[float, float, int, Scored]] = []
        self.best: list[Scored] = []
        self._shown: Candidate | None = None
        self._candidates: dict[Scored, Candidate] = {}
        self.unsplit = self._scored(problem, (), ())
        seeds = Seeds(problem, self._stopped)
        halves = problem.space.halves(self._segments.border_bytes)
        own = (halves, seeds.states(), self._prefixes()) if seeded else ()
        self._seeding: list[Iterator[State | None]] = [iter(start), *own]
        self._moves = self._moves_of_queue()
        self._record(self.unsplit)

    def explore(self, effort: Effort) -> None:
        """Try the seeds, then repeatedly the moves of the most promising state, until the effort is spent."""
        try:
            self._effort = effort.part(SEEDING_SHARE)
            while self._seeding and not self._stopped():
                self._try_all(self._own(self._seeding[0]))
                if not self._stopped():
                    del self._seeding[0]
            self._effort = effort
            if self._try_all(self._moves):
                self._moves = self._moves_of_queue()  # later seeds fill the queue again
            self.ended = not self._seeding and not self._stopped()
        except KeyboardInterrupt:
            self.interrupted = True

    def add(self, states: Iterable[tuple[CutProblem, State]]) -> None:
        """Score states of another search, as if a move had led to them."""
        for problem, state in states:
            self._try(problem, state)

    def found(self) -> SearchResult:
        """Return the best candidates so far."""
        kept = self.best if self.unsplit in self.best else [*self.best, self.unsplit]
        best = tuple(self._candidate(one) for one in kept)
        return SearchResult(best, self.counts(), self.interrupted, not self.moved)

    def _own(self, states: Iterator[State | None]) -> Iterator[tuple[CutProblem, State] | None]:
        """Yield states with the problem of this search."""
        for state in states:
            yield None if state is None else (self.problem, state)

    def _prefixes(self) -> Iterator[State]:
        """Yield states with one cut that starts at the input, if the whole tensors after it allow a gain."""
        if self.best[0].peak_bytes <= self.problem.ram_limit:
            return
        for state in self.problem.space.prefixes():
            if self._segments.border_bytes[state[0].last + 1] <= self.best[0].peak_bytes:
                yield state

    def counts(self) -> Search:
        return Search(time.monotonic() - self._start, len(self._known), self._duplicates)

    def _stopped(self) -> bool:
        """Return whether the effort is spent, and report progress now and then."""
        if time.monotonic() - self._reported > REPORT_EVERY_S:
            self._tell()
        self._effort.spend(self._segments.effort_units - self._charged_units)
        self._charged_units = self._segments.effort_units
        return self._effort.is_spent()

    def _over(self) -> bool:
        return self._stopped() or len(self._known) - self._last_gain > PATIENCE

    def _try_all(self, states: Iterator[tuple[CutProblem, State] | None]) -> bool:
        """Try states until one ends the search or there is no gain for long; return whether none is left."""
        self._last_gain = len(self._known)
        while not self._over():
            try:
                one = next(states)
            except StopIteration:
                return True
            if one is not None:
                self._try(*one)
        return False

    def _moves_of_queue(self) -> Iterator[tuple[CutProblem, State]]:
        """Yield the moves of the queued states, the most promising first, while the queue grows."""
        while self._queue:
            self.moved = True
            *_, scored = heapq.heappop(self._queue)
            if scored.peak_bytes <= self._most_bytes:
                problem, state, place = scored.problem, scored.state, scored.peak_operator
                for other in problem.space.moves(state, place):
                    yield problem, other

    @property
    def _most_bytes(self) -> float:
        """The peak above which no state is followed."""
        return FOLLOWED_WITHIN * self.best[0].peak_bytes if self.best else inf

    def _try(self, problem: CutProblem, state: State) -> None:
        cut_segments, before = problem.space.cut_segments(state), problem.segments.effort_units
        self._effort.spend(_STATE_UNITS)
        key = problem.chains, cut_segments
        if key in self._known:
            self._duplicates += 1
            return
        ticks = self._ticks(problem, cut_segments)
        if ticks > self._most_ticks or problem.segments.exceeds(cut_segments, self._most_bytes):
            self._known.add(key)
        else:
            self._record(self._scored(problem, state, cut_segments))
        if problem.segments is not self._segments:
            self._effort.spend(problem.segments.effort_units - before)

    def _scored(self, problem: CutProblem, state: State, cut_segments: CutSegments) -> Scored:
        """Return the state with its level, or with its peak if that alone is too far from the best state."""
        peak_bytes, place, occurrences = problem.segments.peak(cut_segments)
        ticks = self._ticks(problem, cut_segments)
        least = Level(max(peak_bytes, self.problem.ram_limit), place, ticks)
        if least.peak_bytes > self._most_bytes:
            return Scored(problem, state, cut_segments, peak_bytes, place, occurrences, ticks)
        space, times = problem.space, problem.variants.of_blocks
        rows, order = space.step_rows(state), space.order
        loads = problem.segments.loads(cut_segments)
        level = level_of(loads, lambda at: times(order[at], rows[order[at]]), least, self._most_ticks)
        if level.peak_bytes > least.peak_bytes:
            occurrences = 1
        return Scored(problem, state, cut_segments, level.peak_bytes, level.place, occurrences, level.ticks)

    def _ticks(self, problem: CutProblem, cut_segments: CutSegments) -> float:
        """Return the ticks of a state by the fastest kernels."""
        chains, space, variants = problem.chains, problem.space, problem.variants
        if chains not in self._whole_ticks:
            self._whole_ticks[chains] = variants.ticks(space.step_rows(()))
        for segment in cut_segments:
            if (chains, segment) not in self._added_ticks:
                positions, whole = space.order[segment[0] :], space.flow.iteration_rows
                self._added_ticks[chains, segment] = sum(
                    variants.operator_ticks(position, rows)
                    - variants.operator_ticks(position, BlockRows(whole[position]))
                    for position, rows in zip(positions, segment[1], strict=False)
                )
        return self._whole_ticks[chains] + sum(self._added_ticks[chains, segment] for segment in cut_segments)

    def _record(self, scored: Scored) -> None:
        """Record and queue a state that keeps the limit.

        States with equal peaks are ordered by the number of segments that reach it: the peak of a cell falls
        only after all its branches are cut. Those within a RAM limit are ordered by their ticks.
        """
        self._known.add((scored.problem.chains, scored.cut_segments))
        fits = scored.peak_bytes <= self.problem.ram_limit
        second = scored.ticks if fits else scored.occurrences
        heapq.heappush(self._queue, (scored.peak_bytes, second, len(self._known), scored))
        best = self.best[0] if self.best else None
        better = best is None or scored.peak_bytes < best.peak_bytes or (fits and scored.ticks < best.ticks)
        self._keep(scored)
        if better and scored is not self.unsplit:
            self._last_gain = len(self._known)
            self._shown = self._candidate(scored)
            self._tell()

    def _keep(self, scored: Scored) -> None:
        self.best.append(scored)
        self.best.sort(key=lambda one: (one.peak_bytes, one.ticks))
        alike = [
            one
            for one in self.best
            if (one.peak_bytes, one.peak_operator) == (scored.peak_bytes, scored.peak_operator)
        ]
        if len(alike) > ALIKE:
            self.best.remove(alike[-1])
        del self.best[KEPT:]

    def _candidate(self, scored: Scored) -> Candidate:
        if scored not in self._candidates:
            space, segments = scored.problem.space, scored.problem.segments
            tiled = space.tiled(scored.state)
            schedule = Schedule(segments.steps(scored.cut_segments), "feasible")
            peak_bytes, step = live_peak(tiled, schedule.steps, segments.work)
            level = max(scored.peak_bytes, peak_bytes)
            candidate = Candidate(scored.state, tiled, schedule, peak_bytes, step, scored.ticks, level)
            self._candidates[scored] = candidate
        return self._candidates[scored]

    def _tell(self) -> None:
        self._reported = time.monotonic()
        if self._shown is not None:
            self._report(self.counts(), self._shown)
