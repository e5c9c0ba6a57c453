"""Which steps may run again, where, and what else must run again for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcudeploy.residency.lookahead import Run
from mcudeploy.residency.tables import Ints
from mcudeploy.residency.trace import Trace

Repeats = Mapping[int, frozenset[int]]
"""By step of the trace the steps that run again right before it."""


@dataclass(frozen=True, slots=True)
class Makers:
    """Who makes what in a trace: by item its only writer (-1: none or several) if that may run again; by step
    what it reads; by item the steps that write it.
    """

    maker: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]
    writers: tuple[tuple[int, ...], ...]


def makers_of(trace: Trace) -> Makers:
    """A step may run again if all that it writes is made by it alone, of other items."""
    writers: list[list[int]] = [[] for _ in trace.items]
    reads = []
    for place, step in enumerate(trace.steps):
        reads.append(tuple(dict.fromkeys(a.item for a in step.accesses if not a.writes)))
        for item in dict.fromkeys(a.item for a in step.accesses if a.writes):
            writers[item].append(place)
    maker = [-1] * len(trace.items)
    for place, step in enumerate(trace.steps):
        written = {access.item for access in step.accesses if access.writes}
        alone = all(writers[item] == [place] and not trace.items[item].fixed for item in written)
        untouched = not any(trace.items[item].given or trace.items[item].loaded for item in written)
        if step.repeatable and alone and untouched and not written & set(reads[place]):
            for item in written:
                maker[item] = place
    return Makers(tuple(maker), tuple(reads), tuple(map(tuple, writers)))


def sequence_with(steps: int, repeats: Repeats) -> Ints:
    """The steps in their order, each after those that run again before it."""
    if not repeats:
        return np.arange(steps, dtype=np.int64)
    found: list[int] = []
    for step in range(steps):
        if step in repeats:
            found += sorted(repeats[step])
        found.append(step)
    return np.array(found, np.int64)


def with_steps(repeats: Repeats, step: int, more: frozenset[int]) -> Repeats:
    """Some more steps run again before one."""
    return {**repeats, step: repeats.get(step, frozenset()) | more}


def without_step(repeats: Repeats, step: int, one: int) -> Repeats:
    """A step no longer runs again before another."""
    left = repeats[step] - {one}
    rest = {place: steps for place, steps in repeats.items() if place != step}
    return {**rest, step: left} if left else rest


def chain(makers: Makers, alive: frozenset[int], item: int, step: int, depth: int) -> frozenset[int] | None:
    """The steps that make an item again before a step: its maker, and up to a depth the makers of what that
    reads and is not `alive` then. None where it cannot be.
    """
    found: set[int] = set()
    todo = [(item, depth)]
    while todo:
        wanted, left = todo.pop()
        place = makers.maker[wanted]
        if not 0 <= place < step:
            return None
        found.add(place)
        for source in makers.reads[place]:
            if any(place < writer < step for writer in makers.writers[source]):
                return None
            again = makers.maker[source]
            if left and source not in alive and 0 <= again and again not in found:
                todo.append((source, left - 1))
    return frozenset(found)


def alive_before(run: Run, step: int) -> frozenset[int]:
    """Items whose bytes are needed across the start of a step of the trace, wherever they are: those used
    before it whose next access, from there on, reads them.
    """
    k = int(np.flatnonzero(run.decisions.sequence == step)[-1])
    seen = run.seen
    return frozenset(_reading_across(run, k, int(seen.start[k])))


def _reading_across(run: Run, k: int, first: int) -> list[int]:
    seen, table = run.seen, run.table
    places = np.arange(len(seen.step))
    back = seen.behind
    across = (seen.step < k) & (back >= first)
    found = places[across]
    reading = table.reads[seen.entry[back[found]]]
    return [int(item) for item in table.item[seen.entry[back[found]]][reading]]
