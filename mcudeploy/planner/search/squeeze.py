"""Better states by way of worse ones: one figure is bounded a little below the best, the other is searched.

The search passes only through states that keep the latency limit, and looks for less memory. Here a bound on
memory is given, and less time is looked for until the limit is kept. With a RAM limit it is the other way
round: a bound on time is given, and less memory is looked for.
"""

from __future__ import annotations

from dataclasses import replace

from mcudeploy.common.effort import Effort
from mcudeploy.planner.search.best_first import BestFirst
from mcudeploy.planner.search.seeds import CutProblem

_FIRST_SHARE, _LAST_SHARE = 0.88, 0.98
"""The bound as a fraction of the best state's peak or time: the first, and the largest."""

_SLOWER = 1.5
"""States may exceed the latency limit by this factor on the way."""

_EFFORT_SHARE = 0.25
"""Share of the remaining effort for one bound."""

_STARTS = 3
"""The number of the best states from which the search under a bound starts."""


def squeeze(search: BestFirst, effort: Effort) -> None:
    """Add better states to a search under rising bounds, until there are none or the effort is spent."""
    share = _FIRST_SHARE
    while share < _LAST_SHARE and not search.interrupted and not effort.is_spent():
        before, starts = search.best[0], [(one.problem, one.state) for one in search.best[:_STARTS]]
        other = BestFirst(_bounded(search, share), seeded=search.seeded)
        other.add(starts)
        other.explore(effort.part(_EFFORT_SHARE))
        search.interrupted = other.interrupted
        search.add((one.problem, one.state) for one in other.best)
        if search.best[0] is before:
            share = (1 + share) / 2


def _bounded(search: BestFirst, share: float) -> CutProblem:
    problem, best = search.problem, search.best[0]
    if best.peak_bytes <= problem.ram_limit:
        return replace(problem, ram_limit=0.0, most_ticks=min(problem.most_ticks, share * best.ticks))
    return replace(problem, ram_limit=share * best.peak_bytes, most_ticks=_SLOWER * problem.most_ticks)
