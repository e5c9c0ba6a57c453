"""The budgeted search for the cut with the least memory within a latency limit: best first, every state once.

Method: Peking University's published patent on fine-grained splitting, after MAGIS (ASPLOS'24): states are
ordered by (max(latency, limit), peak); those over the limit are dropped, those far from the best are not
followed. Duplicates, most of what the moves generate, are known by their hash.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mcudeploy.optimizer.cuts import Space, State
from mcudeploy.plan import Schedule, Search
from mcudeploy.scheduler.rpo import reverse_post_order
from mcudeploy.simulator.blocks import TiledGraph
from mcudeploy.simulator.cost import Costs
from mcudeploy.simulator.live import WorkBytes, live_peak

FOLLOWED_WITHIN = 1.10
"""States with a higher peak than this times the best are not followed."""

KEPT = 8
"""How many candidates are handed on: the packing, and the device, may prefer another than the first."""

PATIENCE = 2000
"""So many states in a row that bring nothing end the search: what is left are variants of the best."""

TOLD_EVERY_S = 0.5

Report = Callable[[Search, int, float], None]
"""Told of every gain, and every `TOLD_EVERY_S` seconds: the search so far, the best peak in bytes, its
overhead in percent.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A state and what the simulator says of it."""

    state: State
    tiled: TiledGraph
    schedule: Schedule
    peak_bytes: int
    peak_step: int
    ticks: float

    @property
    def hot(self) -> int:
        """The position of the operator at the peak."""
        return self.schedule.steps[self.peak_step].operator if self.schedule.steps else 0


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop: after seconds, or at a new best candidate that is `enough`. What to drop: what takes more
    percent of latency over the unsplit plan.
    """

    seconds: float
    max_overhead: float
    enough: Callable[[Candidate], bool] = lambda _: False


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best candidates, least peak first (the unsplit one is always among them), and the search."""

    best: tuple[Candidate, ...]
    unsplit: Candidate
    search: Search


def search(
    space: Space,
    costs: Costs,
    work: WorkBytes,
    budget: Budget,
    report: Report,
    *,
    start: tuple[State, ...] = (),
) -> Found:
    """Search until the budget is spent, nothing is left, or Ctrl-C; what was found by then is returned.

    `start`: states of an earlier search, to be tried first.
    """
    run = _Run(space, costs, work, budget, report)
    try:
        run.explore(start)
    except KeyboardInterrupt:
        if run.unsplit is None:
            raise
    return run.found()


class _Run:
    """One search: what was seen, what is waiting, what is best."""

    def __init__(
        self, space: Space, costs: Costs, work: WorkBytes, budget: Budget, report: Report
    ) -> None:  # fmt: skip
        self.space, self.costs, self.work, self.budget, self._report = space, costs, work, budget, report
        self._start = self._told = time.monotonic()
        self._enough = False
        self._seen: set[tuple[int, ...]] = set()
        self._duplicates = self._last_gain = 0
        self._queue: list[tuple[float, int, int, Candidate]] = []
        self._best: list[Candidate] = []
        self.unsplit: Candidate | None = None

    def explore(self, start: tuple[State, ...]) -> None:
        """Seeds, then the moves of the most promising state, again and again."""
        places = {position: place for place, position in enumerate(self.space.order)}
        seeds = self.space.seeds()
        self._try_all((next(seeds), *start))  # the first one is the unsplit graph
        self._try_all(seeds)
        while self._queue and not self._over():
            *_, candidate = heapq.heappop(self._queue)
            if candidate.peak_bytes <= FOLLOWED_WITHIN * self._best[0].peak_bytes:
                self._try_all(self.space.moves(candidate.state, places[candidate.hot]))

    def found(self) -> Found:
        """What there is so far."""
        if self.unsplit is None:
            raise ValueError("the search has not begun")
        best = tuple(self._best)
        if self.unsplit not in best:
            best += (self.unsplit,)
        return Found(best, self.unsplit, self._search())

    def _search(self) -> Search:
        return Search(time.monotonic() - self._start, len(self._seen), self._duplicates)

    def _over(self) -> bool:
        idle = len(self._seen) - self._last_gain > PATIENCE
        return self._enough or idle or time.monotonic() - self._start > self.budget.seconds

    def _try_all(self, states: Iterable[State]) -> None:
        for state in states:
            if self.unsplit is not None:
                if self._over():
                    return
                if time.monotonic() - self._told > TOLD_EVERY_S:
                    self._tell(self.unsplit.ticks)
            self._try(state)

    def _try(self, state: State) -> None:
        rows = self.space.block_rows(state)
        if rows in self._seen:
            self._duplicates += 1
            return
        self._seen.add(rows)
        ticks = self.costs.ticks(rows)
        limit = self._limit()
        if limit is not None and ticks > limit:
            return
        candidate = self._simulate(state, rows, ticks)
        if self.unsplit is None:
            self.unsplit = candidate
            limit = self._limit() or ticks
        self._remember(candidate)
        key = (max(ticks, limit or ticks), candidate.peak_bytes, len(self._seen), candidate)
        heapq.heappush(self._queue, key)

    def _limit(self) -> float | None:
        if self.unsplit is None:
            return None
        return self.unsplit.ticks * (1 + self.budget.max_overhead / 100)

    def _simulate(self, state: State, rows: tuple[int, ...], ticks: float) -> Candidate:
        names = (operator.name for operator in self.space.flow.graph.operators)
        tiled = TiledGraph(self.space.flow, dict(zip(names, rows, strict=True)))
        schedule = reverse_post_order(tiled)
        peak_bytes, peak_step = live_peak(tiled, schedule.steps, self.work)
        return Candidate(state, tiled, schedule, peak_bytes, peak_step, ticks)

    def _remember(self, candidate: Candidate) -> None:
        better = not self._best or candidate.peak_bytes < self._best[0].peak_bytes
        self._best.append(candidate)
        self._best.sort(key=lambda one: (one.peak_bytes, one.ticks))
        del self._best[KEPT:]
        if better and self.unsplit is not None:
            self._last_gain = len(self._seen)
            self._enough = self.budget.enough(candidate)
            self._tell(self.unsplit.ticks)

    def _tell(self, unsplit_ticks: float) -> None:
        best, self._told = self._best[0], time.monotonic()
        self._report(self._search(), best.peak_bytes, 100 * (best.ticks / unsplit_ticks - 1))
