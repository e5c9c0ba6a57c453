"""Repeated steps: which steps may run again, at which places, and what must be repeated for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mcudeploy.ir.trace import Trace
from mcudeploy.planner.offload.lookahead import Outlook
from mcudeploy.planner.offload.trace_tables import Ints

Repeats = Mapping[int, frozenset[int]]
"""By step of the trace, the steps that run again right before it."""


@dataclass(frozen=True, slots=True)
class Producers:
    """The writers in a trace.

    By item: its only writer (-1: none or several) if that may run again, and all steps that write it. By
    step: the items it reads, and those of them that another step than their only writer writes.
    """

    producer: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]
    changing: tuple[tuple[int, ...], ...]
    writers: tuple[tuple[int, ...], ...]


def producers_of(trace: Trace) -> Producers:
    """Return the writers; a step may be repeated if it alone writes all its outputs, from other items."""
    writers: list[list[int]] = [[] for _ in trace.items]
    reads = []
    for place, step in enumerate(trace.steps):
        reads.append(tuple(dict.fromkeys(a.item for a in step.accesses if not a.writes)))
        for item in dict.fromkeys(a.item for a in step.accesses if a.writes):
            writers[item].append(place)
    producer = [-1] * len(trace.items)
    for place, step in enumerate(trace.steps):
        written = {access.item for access in step.accesses if access.writes}
        alone = all(writers[item] == [place] and not trace.items[item].fixed for item in written)
        untouched = not any(trace.items[item].given or trace.items[item].loaded for item in written)
        if step.repeatable and alone and untouched and not written & set(reads[place]):
            for item in written:
                producer[item] = place
    changing = (tuple(item for item in read if producer[item] < 0 and writers[item]) for read in reads)
    return Producers(tuple(producer), tuple(reads), tuple(changing), tuple(map(tuple, writers)))


def sequence_with(order: Sequence[int], repeats: Repeats) -> tuple[Ints, Ints]:
    """Return the steps in order, each after its repeated steps; and by place the step it belongs to."""
    steps: list[int] = []
    owner: list[int] = []
    for step in order:
        if step in repeats:
            again = sorted(repeats[step])
            steps += again
            owner += [step] * len(again)
        steps.append(step)
        owner.append(step)
    return np.array(steps, np.int64), np.array(owner, np.int64)


def with_steps(repeats: Repeats, step: int, more: frozenset[int]) -> Repeats:
    """Return the repeats with some more steps before one."""
    return {**repeats, step: repeats.get(step, frozenset()) | more}


def without_step(repeats: Repeats, step: int, one: int) -> Repeats:
    """Return the repeats without one step before another."""
    left = repeats[step] - {one}
    rest = {place: steps for place, steps in repeats.items() if place != step}
    return {**rest, step: left} if left else rest


def steps_to_recompute(
    producers: Producers, at: Sequence[int], alive: frozenset[int], target: tuple[int, int], depth: int
) -> frozenset[int] | None:
    """Return the steps that rematerialise an item before a step (the `target`); None if that is impossible.

    These are its writer and, up to a depth, the writers of that step's inputs that are not `alive` then.
    `at`: the place of each step in the order.
    """
    steps: set[int] = set()
    todo = [(target[0], depth)]
    while todo:
        wanted, left = todo.pop()
        place = producers.producer[wanted]
        if not may_repeat(producers, at, place, target[1]):
            return None
        steps.add(place)
        for source in producers.reads[place]:
            again = producers.producer[source]
            if left and source not in alive and again >= 0 and again not in steps:
                todo.append((source, left - 1))
    return frozenset(steps)


def may_repeat(producers: Producers, at: Sequence[int], one: int, step: int) -> bool:
    """Return whether a step may be repeated before another: it ran, and its inputs are unchanged since."""
    if one < 0 or at[one] >= at[step]:
        return False
    writers = (it for source in producers.changing[one] for it in producers.writers[source])
    return not any(at[one] < at[it] < at[step] for it in writers)


def alive_before(run: Outlook, step: int) -> frozenset[int]:
    """Return the items whose bytes are needed across the start of a step of the trace, in either memory.

    These are used before it, and their next access from there on reads them.
    """
    accesses, table = run.accesses, run.table
    k = int(np.flatnonzero(run.decisions.sequence == step)[0])
    back = accesses.following
    later = back[(accesses.step < k) & (back >= accesses.start[k])]
    entries = accesses.entry[later]
    return frozenset(int(item) for item in table.item[entries[table.reads[entries]]])
