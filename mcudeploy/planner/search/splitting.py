"""Split plans of a model: a search in rounds, and the best plans of each round's stages."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from mcudeploy.common.effort import Effort, endless
from mcudeploy.common.progress import SILENT, Progress, Report, no_report
from mcudeploy.common.text import count_text
from mcudeploy.ir.plan import Plan, Search
from mcudeploy.planner.search import placing
from mcudeploy.planner.search.best_first import BestFirst, Candidate, OnGain
from mcudeploy.planner.search.cuts import State
from mcudeploy.planner.search.ranking import front, sort_key
from mcudeploy.planner.search.seeds import CutProblem
from mcudeploy.planner.search.segments import Segments
from mcudeploy.planner.search.squeeze import squeeze
from mcudeploy.planner.search.stages import MADE_ANYWAY, Round, first_fit, run_stages
from mcudeploy.planner.search.task import SearchTask

_LOG = logging.getLogger(__name__)

_SEARCH_SHARE = 0.5
"""Share of the effort of a round for the search; the later stages share the rest."""

_FIRST_SHARE = 0.75
"""Share of the search's effort before it goes through worse states."""

_SPARE = 0.1
"""A round without a gain is the last if it leaves more than this fraction of its spent effort."""

_PACKING_SHARE = 0.05
"""Share of the time for packing the arenas that progress shows during the search."""


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Plans that keep the limits, the best first, the search for them, and whether Ctrl-C stopped it.

    `points`: arena (bytes) and latency of every plan built, including those over a limit.
    """

    plans: tuple[Plan, ...]
    search: Search
    interrupted: bool
    points: tuple[tuple[int, float], ...] = ()


def split_plans(
    task: SearchTask,
    budgets: Iterable[Effort],
    unsplit: Plan,
    stored: Plan | None = None,
    *,
    tries: bool = False,
    report: Report = no_report,
    progress: Progress = SILENT,
) -> Splits:
    """Search in rounds and build plans from the candidates of each.

    The search starts from a stored plan if that has the model's form. `tries`: a device runs the plans, so a
    better stored plan is the first of them, even if it misses the latency limit by the sum of its tiles.
    `budgets`: the effort of each round.
    A round continues the previous search, and depends only on the efforts up to its own. More rounds
    therefore find every plan that fewer rounds find. A later round replaces the best plan only by one that
    costs no more memory.
    """
    if stored is not None and stored.form != task.model.form:
        stored = None  # it has no cuts, or its form has other operators
    if task.fits(unsplit) and not unsplit.estimate.avoidable_ticks:
        return Splits((), Search(), interrupted=False)  # no plan is faster
    made: list[Plan] = []
    if stored is not None:
        kernels = task.model.with_kernels(stored.kernels)
        made.append(placing.timed(stored, kernels, task.board, task.tiles, task.price))
    current, best = Round([], [plan for plan in made if task.keeps(plan)]), unsplit
    search = _search(task, stored, report)
    interrupted, candidates = False, set[State]()
    for effort in budgets:
        part = effort.part(_SEARCH_SHARE)
        search.explore(part.part(_FIRST_SHARE))
        squeeze(search, part)
        interrupted, found = search.interrupted, search.found().best
        current.number += 1
        current.candidates = [one for one in found if one.state not in candidates]
        candidates.update(one.state for one in found)
        try:
            if interrupted:
                fresh = current.candidates[:MADE_ANYWAY]
                current.add(task, (first_fit(task, one, effort) for one in fresh))
            else:
                run_stages(task, current, effort, progress)
        except KeyboardInterrupt:  # keep the plans built so far
            interrupted = True
            if not current.made:
                current.add(task, [first_fit(task, found[0], effort)])
        before, best = best, _best(task, current.plans, best)
        if interrupted:
            break
        if search.ended and best is before and effort.left > _SPARE * effort.spent:
            break
    outcome = search.found()
    if outcome.hurried and not interrupted:
        _LOG.warning(
            "warning: the search ended early, after %s: `plan` and `tune` with a higher --time-limit may "
            "find a smaller arena",
            count_text(outcome.search.candidates, "candidate"),
        )
    points = tuple({(plan.layout.arena_bytes, plan.estimate.ticks): None for plan in current.made})
    ranked = front((*current.plans, unsplit), task.board, task.ram_limit, best)
    better = tuple(takewhile(lambda plan: plan is not unsplit, ranked))
    least = sort_key(ranked[0], task.board, task.ram_limit)
    first = [
        plan
        for plan in made
        if tries and not task.keeps(plan) and sort_key(plan, task.board, task.ram_limit) < least
    ]
    return Splits((*first, *better), outcome.search, interrupted, points)


def _best(task: SearchTask, plans: Sequence[Plan], best: Plan) -> Plan:
    """Return the best plan that costs no more memory than the best so far, or the best so far.

    A plan within the RAM limit costs none.
    """
    least = placing.cost_key(best, task.board)
    others = (plan for plan in plans if task.fits(plan) or placing.cost_key(plan, task.board) <= least)
    return min((best, *others), key=lambda plan: sort_key(plan, task.board, task.ram_limit))


def _search(task: SearchTask, stored: Plan | None, report: Report) -> BestFirst:
    space = task.space
    segments = Segments(space.flow, space.order, task.lean.work)
    start = () if stored is None else (space.state(stored.splits),)
    problem = CutProblem(space, segments, task.variants, task.most_ticks, task.sufficient_bytes)
    return BestFirst(problem, start=start, report=_packing(task, report))


def _packing(task: SearchTask, report: Report) -> OnGain:
    """Return a callback that reports the smallest packed arena, since the peak may be unattainable.

    Packing takes a small share of the time.
    """
    least, packed, idle_until = None, None, 0.0

    def packed_report(search: Search, best: Candidate) -> None:
        nonlocal least, packed, idle_until
        begun = time.monotonic()
        if least is None or (best.state != packed and begun >= idle_until):
            plan, packed = first_fit(task, best, endless()), best.state
            if least is None or plan.layout.arena_bytes < least.layout.arena_bytes:
                least = plan
            idle_until = time.monotonic() + (time.monotonic() - begun) / _PACKING_SHARE
        report(search, least.layout.arena_bytes, 100 * (least.estimate.ticks / task.unsplit_ticks - 1))

    return packed_report
