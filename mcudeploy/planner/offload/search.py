"""Local search for the look-ahead plan's decisions: it changes one at a time and keeps improvements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcudeploy.common.effort import Effort
from mcudeploy.ir.trace import MemoryLink, Trace
from mcudeploy.planner.offload import list_loops as loops
from mcudeploy.planner.offload.list_loops import Decisions
from mcudeploy.planner.offload.lookahead import Outlook, run
from mcudeploy.planner.offload.passive import passive_plan, touches_of
from mcudeploy.planner.offload.policy import free_time_policy
from mcudeploy.planner.offload.precedence import may_repeat_all, moved, needs_of
from mcudeploy.planner.offload.repeats import (
    Repeats,
    alive_before,
    producers_of,
    sequence_with,
    steps_to_recompute,
    with_steps,
    without_step,
)
from mcudeploy.planner.offload.trace_tables import Flags, Ints, TraceTable

_SLACKS = (0.0, 0.05, 0.1, 0.2, 0.3)
"""Fractions of the fast memory that are kept free for transfers if that costs nothing."""

_RUN_UNITS, _PLACE_UNITS = 200, 0.35
"""Effort of a run, and of each of its accesses."""

_AHEAD = 8  # steps before a waiting step that are moved

_DEAREST = 1e12  # cycles for a byte without room

_DEPTHS = (0, 1, 2, 3, 5, 8)
"""The maximum number of generations of missing items that are repeated too."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A state of the search: the steps in order, repeats, and the resulting run.

    `owner`: by place of the sequence, the step of `order` that runs there or needs the repeated step there.
    """

    order: tuple[int, ...]
    repeats: Repeats
    owner: Ints
    run: Outlook


class OffloadSearch:
    """Try decisions and keep the best. A byte without room in a step costs `price` cycles."""

    def __init__(self, trace: Trace, table: TraceTable, capacity: int, effort: Effort) -> None:
        self._trace, self._table, self._capacity, self.effort = trace, table, capacity, effort
        self._producers, self._needs = producers_of(trace), needs_of(trace)
        self.price = np.inf
        count = len(table.item)
        order = tuple(range(len(trace.steps)))
        sequence = np.arange(len(order), dtype=np.int64)
        start = Decisions(sequence, np.zeros(count, np.int64), np.zeros(count, np.bool_))
        first = self._run(with_room(table, capacity, start))
        self.best = Point(order, {}, first.decisions.sequence, first)

    def cost(self, each: Outlook) -> float:
        """Return the cycles, plus the price of bytes without room."""
        if each.served is not None:
            return each.served.cycles
        return float(each.accesses.clock[-1]) + self.price * each.choice.overflow

    def _run(self, decisions: Decisions) -> Outlook:
        self.effort.spend(_RUN_UNITS + _PLACE_UNITS * len(self._table.item))
        return run(self._table, decisions, self._capacity)

    def attempt(self, decisions: Decisions) -> bool:
        """Accept other decisions for the same sequence if they are better; return whether they are."""
        outlook = self._run(decisions)
        better = self.cost(outlook) < self.cost(self.best.run) - 1e-6
        if better:
            self.best = replace(self.best, run=outlook)
        return better

    def attempt_sequence(self, order: tuple[int, ...], repeats: Repeats, **others: Any) -> bool:
        """Accept an order, repeats and `others` of the decisions if better; return whether they are."""
        sequence, owner = sequence_with(order, repeats)
        better = self.attempt(self.best.run.decisions._replace(sequence=sequence, **others))
        if better:
            self.best = Point(order, repeats, owner, self.best.run)
        return better

    def direct_operands(self) -> tuple[frozenset[int], ...]:
        """Return, by step of the trace, the operands that are accessed directly for lack of room."""
        direct, table = self.best.run.decisions.direct, self._table
        operands = []
        for place, step in enumerate(self._trace.steps):
            entries = np.arange(table.first[place], table.first[place + 1])
            items = set(table.item[entries[direct[entries]]].tolist())
            operands.append(frozenset(access.operand for access in step.accesses if access.item in items))
        return tuple(operands)

    def try_rules(self) -> None:
        """Try the bytes kept free, the eviction order, and whether transfers out go first."""
        for slack in _SLACKS:
            for rule in (loops.LATEST, loops.LONGEST, loops.WORTH):
                for outs_first in (False, True):
                    if self.effort.is_spent():
                        return
                    now = self.best.run.decisions
                    other = now._replace(slack=int(slack * self._capacity), rule=rule, outs_first=outs_first)
                    self.attempt(other)

    def add_repeats(self) -> int:
        """Rematerialise missing items at their use, the cheapest per byte first; return the improvements."""
        gained = 0
        for item, step in self._missing():
            alive = alive_before(self.best.run, step)
            at = np.argsort(np.array(self.best.order)).tolist()
            tried: set[frozenset[int]] = set()
            for depth in _DEPTHS:
                if self.effort.is_spent():
                    return gained
                more = steps_to_recompute(self._producers, at, alive, (item, step), depth)
                if more is None or more in tried:
                    break
                tried.add(more)
                repeats = with_steps(self.best.repeats, step, more)
                gained += self.attempt_sequence(self.best.order, repeats)
        return gained

    def _missing(self) -> list[tuple[int, int]]:
        """Return items with the steps before which they could be rematerialised."""
        now, table = self.best.run, self._table
        costs: dict[tuple[int, int], float] = {}
        tight = now.choice.load > self._capacity
        next_tight = np.flatnonzero(tight)
        for place in range(int(now.accesses.start[-1])):
            item, before = int(table.item[now.accesses.entry[place]]), int(now.accesses.before[place])
            if not table.reads[now.accesses.entry[place]] or self._producers.producer[item] < 0:
                continue
            missing = bool(now.choice.missing[place] or now.choice.direct[place])
            if len(next_tight):
                lo, hi = now.accesses.step[before], now.accesses.step[place]
                at = int(np.searchsorted(next_tight, lo, side="right"))
                missing = at < len(next_tight) and next_tight[at] < hi
            if missing:
                step = int(self.best.owner[now.accesses.step[place]])
                cycles = float(table.cycles[self._producers.producer[item]])
                costs[item, step] = cycles / max(1, int(table.size[item]))
        return sorted(costs, key=lambda each: (costs[each], each))

    def drop_repeats(self) -> int:
        """Drop unnecessary repeats; return the number of improvements."""
        gained = 0
        for step, steps in sorted(self.best.repeats.items()):
            for one in sorted(steps):
                if self.effort.is_spent():
                    return gained
                if one in self.best.repeats.get(step, frozenset()):
                    repeats = without_step(self.best.repeats, step, one)
                    gained += self.attempt_sequence(self.best.order, repeats)
        return gained

    def try_gaps(self) -> int:
        """Let an item that leaves stay, or lift the decision for its gap; return the improvements."""
        gained = 0
        now, table = self.best.run, self._table
        tried: set[int] = set()
        for place in range(int(now.accesses.start[-1])):
            entry, before = int(now.accesses.entry[place]), int(now.accesses.before[place])
            if not table.reads[entry] or now.accesses.step[place] <= now.accesses.step[before] + 1:
                continue
            if now.choice.leaves[before] < 0 or entry in tried:
                continue
            if self.effort.is_spent():
                return gained
            tried.add(entry)
            force = self.best.run.decisions.force.copy()
            force[entry] = loops.FREE if force[entry] else loops.STAY
            gained += self.attempt(self.best.run.decisions._replace(force=force))
        return gained

    def try_orders(self) -> int:
        """Move steps around those that wait; return the number of improvements."""
        gained = 0
        for step in self._around_waits():
            order = self.best.order
            for other in dict.fromkeys(moved(order, self._needs, order.index(step))):
                if self.effort.is_spent():
                    return gained
                fits = other != order and may_repeat_all(self._producers, other, self.best.repeats)
                if fits and self.attempt_sequence(other, self.best.repeats):
                    gained += 1
                    break
        return gained

    def _around_waits(self) -> list[int]:
        """Return steps of the trace near those that wait or have no room, the worst first."""
        now = self.best.run
        bad = now.choice.load - self._capacity if now.served is None else now.served.waits
        steps: dict[int, None] = {}
        for k in np.argsort(-bad, kind="stable"):
            if bad[k] <= 0:
                break
            steps.update(dict.fromkeys(self.best.owner[max(0, k - _AHEAD) : k + 3].tolist()))
        return list(steps)

    def try_direct_access(self) -> int:
        """Toggle direct access of operands; return the number of improvements."""
        gained = 0
        table = self._table
        for operand in np.unique(table.operand[np.isfinite(table.direct)]):
            if self.effort.is_spent():
                return gained
            group = table.operand == operand
            direct = self.best.run.decisions.direct.copy()
            direct[group] = ~direct[group]
            gained += self.attempt(self.best.run.decisions._replace(direct=direct))
        return gained


@dataclass(frozen=True, slots=True)
class OffloadTask:
    """The problem: the trace, its arrays, the bytes of the fast memory, and the allowed means."""

    trace: Trace
    table: TraceTable
    capacity: int
    link: MemoryLink
    recompute: bool
    reorder: bool


def best_run(task: OffloadTask, effort: Effort) -> tuple[Outlook, str]:
    """Return the best run found, and the name of its starting point.

    That is `look-ahead`, `free time` (the gaps and repeats of Capuchin's policy), or `repeats first` (repeats
    until little has to leave).
    """
    own = effort.part(1 / 3) if task.recompute else effort
    first = OffloadSearch(task.trace, task.table, task.capacity, own)
    first.try_rules()
    method = "look-ahead"
    if task.table.linked and _by_policy(first, task):
        method = "free time"
    if first.best.run.served is not None:
        _improve(first, task)
    if not task.recompute or first.best.run.added_cycles <= 0:
        return first.best.run, method
    second = OffloadSearch(task.trace, task.table, task.capacity, effort)
    by_repeats = OffloadSearch(
        task.trace,
        task.table._replace(linked=False),
        task.capacity,
        effort.part(0.5 if task.table.linked else 0.9),
    )
    for price in _prices(by_repeats):
        by_repeats.price = price
        by_repeats.add_repeats()
        by_repeats.drop_repeats()
        second.attempt_sequence(by_repeats.best.order, by_repeats.best.repeats)
    second.try_rules()
    _improve(second, task)
    if second.cost(second.best.run) < first.cost(first.best.run):
        return second.best.run, "repeats first"
    return first.best.run, method


def _by_policy(search: OffloadSearch, task: OffloadTask) -> bool:
    """Return whether Capuchin's policy, from the access trace of the passive iteration, is better."""
    passive = passive_plan(task.trace, task.capacity, task.link, search.direct_operands())
    if passive is None:
        return False
    touches = touches_of(passive, task.link)
    policy = free_time_policy(task.trace, touches, task.capacity, task.link, recompute=task.recompute)
    leaving = {(gap.item, gap.hi) for gap in policy.away}
    force = search.best.run.decisions.force.copy()
    for step in range(len(task.table.cycles)):
        for entry in range(task.table.first[step], task.table.first[step + 1]):
            if (int(task.table.item[entry]), step) in leaving:
                force[entry] = loops.LEAVE
    order = search.best.order
    return search.attempt_sequence(order, policy.repeats, force=force, slack=0, rule=loops.LONGEST)


def _improve(search: OffloadSearch, task: OffloadTask) -> None:
    gained = 1
    while gained and not search.effort.is_spent():
        gained = search.try_gaps()
        if task.reorder:
            gained += search.try_orders()
        gained += search.try_direct_access()
        if task.recompute:
            gained += search.add_repeats() + search.drop_repeats()
        search.try_rules()


def _prices(search: OffloadSearch) -> Iterator[float]:
    """Yield increasing prices of bytes without room, until there are none."""
    now = search.best.run
    price = float(now.accesses.clock[-1]) / max(1.0, now.choice.overflow) / 100
    while search.best.run.choice.overflow and not search.effort.is_spent() and price < _DEAREST:
        yield price
        price *= 3
    search.price = np.inf


def with_room(table: TraceTable, capacity: int, start: Decisions) -> Decisions:
    """Add direct accesses, the cheapest per byte first, if a step has no room for all its items."""
    direct: Flags = start.direct.copy()
    held = int(table.size[table.fixed].sum())
    for s in range(len(table.cycles)):
        entries = np.arange(table.first[s], table.first[s + 1])
        entries = entries[~table.fixed[table.item[entries]]]
        need = table.size[table.item[entries]].sum() + table.work[s] + held
        groups = []
        for operand in np.unique(table.operand[entries]):
            group = entries[table.operand[entries] == operand]
            size = int(table.size[table.item[group]].sum())
            groups.append((float(table.direct[group[0]]) / max(1, size), int(operand), size, group))
        for cost, _, size, group in sorted(groups, key=lambda each: each[:2]):
            if need <= capacity or not np.isfinite(cost):
                break
            direct[group] = True
            need -= size
    return start._replace(direct=direct)
