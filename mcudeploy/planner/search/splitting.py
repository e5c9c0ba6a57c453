"""Split plans of a model: a search in rounds, and the best plans of each round's stages."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from mcudeploy.boards.board import Board
from mcudeploy.common.effort import UNITS_PER_SECOND, Effort, endless
from mcudeploy.common.progress import SILENT, Progress, Report, no_report
from mcudeploy.common.text import count_text
from mcudeploy.ir.plan import Plan, Rewrites, Search
from mcudeploy.planner.search import placing
from mcudeploy.planner.search.best_first import FOLLOWED_WITHIN, BestFirst, Candidate, OnGain
from mcudeploy.planner.search.cuts import State
from mcudeploy.planner.search.form_tasks import FormTasks
from mcudeploy.planner.search.fusing import WORTH, FusedCuts, FusedSeeds, families
from mcudeploy.planner.search.ranking import front, sort_key
from mcudeploy.planner.search.seeds import Chains, CutProblem, Seeds
from mcudeploy.planner.search.segments import Segments
from mcudeploy.planner.search.squeeze import squeeze
from mcudeploy.planner.search.stages import BUILT_ANYWAY, Round, first_fit, run_stages
from mcudeploy.planner.search.task import SearchTask

_LOG = logging.getLogger(__name__)

_SEARCH_SHARE = 0.5
"""Share of the effort of a round for the search; the later stages share the rest."""

_FIRST_SHARE = 0.75
"""Share of the search's effort before it goes through worse states (`squeeze`)."""

_SPARE = 0.1
"""A round without a gain is the last if it leaves more than this fraction of its spent effort."""

_PLAIN_SHARE = 0.3
"""Share of a round's effort for the graph without fused chains, if fused chains lead or promise a gain.

The forms with fused chains have the rest if they lead. If they only promise a gain, they have as much effort
as the round, in addition.
"""
_MORE_SHARE = 0.6
"""Effort of these forms before they promise a gain, as a part of the round's, in addition."""
_CHAINS_SHARE = 0.3
"""Share of the effort of these forms for their seeds."""

_ACROSS_SHARE, _LONELY_SHARE, _STARTS = 0.2, 0.6, 3
"""Shares of the effort left after the seeds: for the search across forms, and for more of it if no chain is
worth it. It starts from this number of the best states of each form.
"""

_FORMS, _BEST_SHARE = 2, 0.85
"""The number of forms with fused chains that a round searches, and the share of the effort for the first."""

_CHAIN_UNITS, _OPERATOR_UNITS = 10_000, 500
"""Effort of a form for each fused chain, and for each operator: kernels and their times."""

_TIGHTER_LIMITS = (5.0, 10.0, 25.0, 60.0)
"""Limits of the latency, in percent; a search with a looser limit is followed by searches with these."""

_LEAST_LEFT = 0.1
"""The part of the time limit that must be left for such a search."""

_PACKING_SHARE = 0.05
"""Share of the time for packing the arenas that progress shows during the search."""


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Plans that keep the limits, the best first, the search for them, and whether Ctrl-C stopped it.

    `points`: arena (bytes) and latency of every plan built, including those over a limit. `spent_s`: the
    effort of all rounds.
    """

    plans: tuple[Plan, ...]
    search: Search
    interrupted: bool
    points: tuple[tuple[int, float], ...] = ()
    spent_s: float = 0.0

    def joined(self, other: Splits, unsplit: Plan, board: Board) -> Splits:
        """Return these plans with those of a tighter limit; of the two best, the smaller comes first."""
        best = min(
            self.plans[:1] + other.plans[:1], key=lambda plan: placing.cost_key(plan, board), default=unsplit
        )
        ranked = front((*self.plans, *other.plans, unsplit), board, best=best)
        return replace(
            self,
            plans=tuple(takewhile(lambda plan: plan is not unsplit, ranked)),
            interrupted=other.interrupted,
            points=tuple(dict.fromkeys((*self.points, *other.points))),
            spent_s=self.spent_s + other.spent_s,
        )


class _FormSearch:
    """The search for the cuts of one form of the graph, round by round, and the plans built."""

    def __init__(
        self, task: SearchTask, unsplit: Plan, plans: Sequence[Plan], start: Iterable[State], report: Report
    ) -> None:
        self.task, self.best = task, unsplit
        self.current = Round([], [plan for plan in plans if task.keeps(plan)])
        space = task.space
        segments = Segments(space.flow, space.order, task.min_scratch.work)
        self.problem = CutProblem(space, segments, task.variants, task.most_ticks, task.sufficient_bytes)
        self.search = BestFirst(self.problem, start=start, report=_packing(task, report))
        self.interrupted = self.settled = self.gained = False
        self._known = set[State]()

    def explore(self, effort: Effort, progress: Progress) -> None:
        """Search for a round, and build plans from its candidates.

        The form has `gained` if the round is its first, or lowered the peak enough to be worth a plan. It is
        `settled` if the search has ended, and the round found no better plan and left effort.
        """
        lowest = self.search.best[0].peak_bytes
        part = effort.part(_SEARCH_SHARE)
        try:
            self.search.explore(part.part(_FIRST_SHARE))
            squeeze(self.search, part)
        except KeyboardInterrupt:  # between two searches
            self.search.interrupted = True
        task, current = self.task, self.current
        self.interrupted, best = self.search.interrupted, self.search.found().best
        current.number += 1
        current.candidates = [one for one in best if one.state not in self._known]
        self._known.update(one.state for one in best)
        try:
            if self.interrupted:
                fresh = current.candidates[:BUILT_ANYWAY]
                current.add(task, (first_fit(task, one, effort) for one in fresh))
            else:
                run_stages(task, current, effort, progress)
        except KeyboardInterrupt:  # keep the plans built so far
            self.interrupted = True
            if not current.built:
                current.add(task, [first_fit(task, best[0], effort)])
        former, self.best = self.best, _best(task, current.plans, self.best)
        self.gained = current.number == 1 or self.search.best[0].peak_bytes < WORTH * lowest
        is_left = effort.left > _SPARE * effort.spent
        self.settled = self.search.ended and self.best is former and is_left


class _FusedSearch:
    """The search for the chains to fuse, and for the cuts of the graphs that have them as one operator."""

    def __init__(self, plain: _FormSearch, tasks: FormTasks) -> None:
        self._plain, self._every, self._task_of = plain, tasks.fusible, tasks.of
        self._states: Iterator[FusedCuts | None] | None = None
        self._effort = Effort(0)
        self._charged = 0
        self._segments: tuple[Segments, ...] = ()
        self._latest: list[FusedCuts] = []
        self._problems: dict[Chains, CutProblem] = {}
        self._across: BestFirst | None = None
        self._seeding = True
        self.interrupted = self.settled = False
        self.forms: dict[Chains, _FormSearch] = {}

    def explore(self, effort: Effort, progress: Progress) -> None:
        """Look for chains that lower the peak, then search the cuts of the most promising forms.

        Ctrl-C ends it, and the plans built so far stay.
        """
        try:
            self._explore(effort, progress)
        except KeyboardInterrupt:
            self.interrupted = True
        self.interrupted |= any(each.interrupted for each in self.forms.values())

    def resume(self, stored: Plan) -> Plan:
        """Add the form of a stored plan, to search from its cuts; return the plan with its times."""
        fused = stored.form.fused
        task = self._task(fused)
        plan, state = _resumed(task, stored)
        self.forms[fused] = _FormSearch(task, self._plain.best, [plan], [state], no_report)
        return plan

    def _explore(self, effort: Effort, progress: Progress) -> None:
        self._effort = effort.part(_CHAINS_SHARE)
        self._charged = sum(each.effort_units for each in self._segments)
        states = self._states = self._states or self._seeds()
        is_first, self._seeding = self._across is None, False
        for cuts in states:
            if cuts is None:
                self._seeding = True
                break
            self._latest.append(cuts)
        best = self._best_chains(effort.part(_ACROSS_SHARE))
        forms = self._promising(best)
        if not forms and (is_first or self._seeding or self._gains()):
            best = self._best_chains(effort.part(_LONELY_SHARE))
            forms = self._promising(best)
        for number, form in enumerate(forms):
            starts = [cuts.splits for cuts in self._latest if cuts.chains == form]
            self._effort = effort
            if form and form not in self.forms:
                self.forms[form] = _FormSearch(self._task(form), self._plain.best, (), (), no_report)
            search = self.forms[form] if form else self._plain
            problem = search.problem
            search.search.add((problem, problem.space.state(splits)) for splits in starts)
            search.explore(effort.part(_BEST_SHARE if number + 1 < len(forms) else 1.0), progress)
            if search.interrupted:
                return
        is_done = not self._seeding and self._across is not None and self._across.ended
        self.settled = is_done and all(self.forms[form].settled for form in forms if form)

    def _promising(self, best: Chains) -> list[Chains]:
        """Return the forms to search next: that of the best cuts if it is worth it, then by their plans.

        That without fused chains is among them if the search across forms has found much better cuts of it.
        """
        self._latest = sorted(dict.fromkeys(self._latest), key=lambda cuts: cuts.bound)
        lowest = self._plain.search.best[0].peak_bytes
        better = (cuts.chains for cuts in self._latest if cuts.bound < WORTH * lowest)
        untried = [form for form in dict.fromkeys(filter(None, better)) if form not in self.forms]
        board = self._plain.task.board
        tried = sorted(self.forms, key=lambda form: placing.cost_key(self.forms[form].best, board))
        first = [best] if (not best and self._gains(WORTH)) or best in self.forms or best in untried else []
        return [*dict.fromkeys([*first, *tried[:1], *untried, *tried[1:]])][:_FORMS]

    def leads(self) -> bool:
        """Return whether a plan with fused chains is the best so far."""
        task, best = self._plain.task, self._plain.best
        return _best(task, self.best_plans(), best) is not best

    def promises(self) -> bool:
        """Return whether cuts with fused chains are worth a plan, or may be while the others gain little."""
        may_be = self._across is not None and self._seeding and not self._plain.gained
        return may_be or self._gains(WORTH)

    def _gains(self, worth: float = 1.0) -> bool:
        """Return whether the search across forms has found a peak below `worth` times that without chains."""
        lowest = worth * self._plain.search.best[0].peak_bytes
        return self._across is not None and self._across.best[0].peak_bytes < lowest

    def best_plans(self) -> list[Plan]:
        """Return the best plan of each form searched so far."""
        return [each.best for each in self.forms.values()]

    def _seeds(self) -> Iterator[FusedCuts | None]:
        plain = self._plain
        problems = [plain.problem]
        for fused in families(self._every):
            problems.append(self._problem(fused))
        self._segments = tuple(problem.segments for problem in problems)
        self._charged = sum(each.effort_units for each in self._segments)
        seeds = FusedSeeds([Seeds(each, self._stopped) for each in problems], self._every, self._spend)
        yield from seeds.states(plain.search.best[0].peak_bytes)

    def _task(self, chains: Chains) -> SearchTask:
        operators = len(self._plain.task.model.graph.operators)
        self._spend(_CHAIN_UNITS * len(chains) + _OPERATOR_UNITS * operators)
        return self._task_of(chains)

    def _problem(self, chains: Chains) -> CutProblem:
        """Return the problem of a form, made once."""
        if chains not in self._problems:
            task = self._task(chains) if chains else self._plain.task
            segments = Segments(task.space.flow, task.space.order, task.min_scratch.work)
            self._problems[chains] = replace(
                self._plain.problem,
                space=task.space,
                segments=segments,
                variants=task.variants,
                chains=chains,
            )
        return self._problems[chains]

    def _best_chains(self, effort: Effort) -> Chains:
        """Change the best cuts of all forms in one search; return the chains of the best."""
        self._effort = effort
        search = self._across = self._across or BestFirst(self._problem(()), seeded=False)
        for chains, each in [((), self._plain), *self.forms.items()]:
            if set(chains) <= set(self._every):
                search.add((self._problem(chains), one.state) for one in each.search.best[:_STARTS])
        for cuts in self._latest:
            if cuts.bound <= FOLLOWED_WITHIN * search.best[0].peak_bytes:
                problem = self._problem(cuts.chains)
                search.add([(problem, problem.space.state(cuts.splits))])
        search.explore(effort.part(_FIRST_SHARE))
        squeeze(search, effort)
        if search.interrupted:
            raise KeyboardInterrupt
        self._latest += [FusedCuts.of(one.peak_bytes, one.problem, one.state) for one in search.best]
        return search.best[0].problem.chains

    def _spend(self, units: float) -> None:
        self._effort.spend(units)

    def _stopped(self) -> bool:
        units = sum(each.effort_units for each in self._segments)
        self._effort.spend(units - self._charged)
        self._charged = units
        return self._effort.is_spent()


class _Searches:
    """The searches for cuts without and with fused chains, and the plans of both."""

    def __init__(self, tasks: FormTasks, task: SearchTask, stored: Plan | None, report: Report) -> None:
        """Begin at a stored plan if that has the model's form, with or without fused chains.

        A stored plan of other operators has nothing in common with the cuts of this task.
        """
        self._task, self._tasks = task, tasks
        self._resumed: list[Plan] = []
        self._spent = 0.0
        states: tuple[State, ...] = ()
        if stored is not None and stored.form == task.model.form:
            plan, state = _resumed(task, stored)
            self._resumed, states = [plan], (state,)
        self._plain = _FormSearch(task, tasks.unsplit, self._resumed, states, report)
        self._fused = _FusedSearch(self._plain, tasks) if tasks.fusible else None
        if self._fused is not None and stored is not None and _adds_chains(stored.form, task.model.form):
            self._resumed = [self._fused.resume(stored)]

    @property
    def interrupted(self) -> bool:
        return self._plain.interrupted or (self._fused is not None and self._fused.interrupted)

    @property
    def settled(self) -> bool:
        """Whether more effort finds nothing."""
        return self._plain.settled and (self._fused is None or self._fused.settled)

    def explore(self, effort: Effort, progress: Progress) -> None:
        """Search for a round: the graph as it is, then the forms with fused chains."""
        plain, fused = self._plain, self._fused
        leads = fused is not None and fused.leads()
        promises = fused is not None and fused.promises()
        if not plain.settled:
            plain.explore(effort.part(_PLAIN_SHARE) if leads or promises else effort, progress)
        if fused is not None and not plain.interrupted:
            again = effort.again().part(1.0 if promises else _MORE_SHARE)
            fused.explore(effort if leads else again, progress)
            self._spent += again.spent
        self._spent += effort.spent

    def best_plans(self) -> list[Plan]:
        """Return the best plan of each form searched so far."""
        return [self._plain.best, *(self._fused.best_plans() if self._fused else ())]

    def splits(self, best: Plan) -> Splits:
        """Return the plans found, of which `best` is the first."""
        task, outcome = self._task, self._plain.search.found()
        if outcome.hurried and not self.interrupted:
            _LOG.warning(
                "warning: the search ended early, after %s: `plan` and `tune` with a higher --time-limit may "
                "find a smaller arena",
                count_text(outcome.search.candidates, "candidate"),
            )
        rounds = [it.current for it in (self._plain, *(self._fused.forms.values() if self._fused else ()))]
        built = [plan for each in rounds for plan in each.built]
        points = tuple({(plan.layout.arena_bytes, plan.estimate.ticks): None for plan in built})
        plans = [plan for each in rounds for plan in each.plans]
        unsplit = self._tasks.unsplit
        ranked = front((*plans, unsplit), task.board, task.ram_limit, best)
        better = takewhile(lambda plan: plan is not unsplit, ranked)
        least = sort_key(ranked[0], task.board, task.ram_limit)
        first = [
            plan
            for plan in self._resumed
            if self._tasks.runs_plans and not task.keeps(plan)
            if sort_key(plan, task.board, task.ram_limit) < least
        ]
        spent_s = self._spent / UNITS_PER_SECOND
        return Splits((*first, *better), outcome.search, self.interrupted, points, spent_s)


def split_plans(
    tasks: FormTasks,
    budgets: Iterable[Effort],
    stored: Plan | None = None,
    *,
    report: Report = no_report,
    progress: Progress = SILENT,
) -> Splits:
    """Search in rounds and build plans from the candidates of each.

    The search starts from a stored plan if that has the model's form, with or without fused chains. If a
    device runs the plans, a better stored plan comes first, even if the sum of its tiles' times exceeds the
    latency limit. `budgets`: the effort of each round. A round continues the previous search, and depends
    only on the efforts up to its own. More rounds therefore find every plan that fewer rounds find. A later
    round replaces the best plan only by one that costs no more memory.
    """
    task, best = tasks.of(()), tasks.unsplit
    if task.fits(best) and not best.estimate.avoidable_ticks:
        return Splits((), Search(), interrupted=False)  # no plan is faster
    searches = _Searches(tasks, task, stored, report)
    for effort in budgets:
        searches.explore(effort, progress)
        best = _best(task, searches.best_plans(), best)
        if searches.interrupted or searches.settled:
            break
    return searches.splits(best)


def with_tighter(split: Splits, tasks: FormTasks, effort: Effort, progress: Progress) -> Splits:
    """Return the plans with smaller ones of tighter limits, as long as effort is left.

    A search may end before the least arena, and a tighter limit leads it elsewhere. Each limit is searched
    as if it were the user's, so a looser limit has its plans.
    """
    options = tasks.options
    if options.ram_limit is not None or not split.spent_s:
        return split
    for limit in _TIGHTER_LIMITS:
        left_s = options.time_limit - split.spent_s
        is_tighter, is_left = limit < options.overhead_limit, left_s > _LEAST_LEFT * options.time_limit
        if is_tighter and is_left and not split.interrupted:
            progress.stage(f"searching again, for at most {limit:g} %")
            tighter = replace(tasks, options=replace(options, max_overhead=limit))
            try:
                smaller = split_plans(tighter, effort.rounds(options.time_limit, left_s), progress=progress)
            except KeyboardInterrupt:
                return replace(split, interrupted=True)
            split = split.joined(smaller, tasks.unsplit, tasks.board)
    return split


def _adds_chains(form: Rewrites, plain: Rewrites) -> bool:
    """Return whether a form differs from another only in its fused chains."""
    return bool(form.fused) and replace(form, fused=()) == plain


def _resumed(task: SearchTask, stored: Plan) -> tuple[Plan, State]:
    """Return a stored plan of a task's form with its times, and its cuts; the final plan loads constants."""
    kernels = task.model.with_kernels(stored.kernels)
    plan = replace(stored, layout=stored.layout.without_loads())
    plan = placing.timed(plan, kernels, task.board, task.tiles, task.price)
    return plan, task.space.state(stored.splits)


def _best(task: SearchTask, plans: Sequence[Plan], best: Plan) -> Plan:
    """Return the best plan that costs no more memory than the best so far, or the best so far.

    A plan within the RAM limit costs none.
    """
    least = placing.cost_key(best, task.board)
    others = (plan for plan in plans if task.fits(plan) or placing.cost_key(plan, task.board) <= least)
    return min((best, *others), key=lambda plan: sort_key(plan, task.board, task.ram_limit))


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
