"""Other orders of the steps of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcudeploy.residency.repeats import Makers, Repeats, may_repeat
from mcudeploy.residency.trace import Trace


@dataclass(frozen=True, slots=True)
class Needs:
    """By step the steps that must come before it, and those that must come after it, directly."""

    before: tuple[frozenset[int], ...]
    after: tuple[frozenset[int], ...]


def needs_of(trace: Trace) -> Needs:
    """A reader comes after the writer whose bytes it reads, and before the next one."""
    before: list[set[int]] = [set() for _ in trace.steps]
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for place, step in enumerate(trace.steps):
        for access in step.accesses:
            if access.item in writer:
                before[place].add(writer[access.item])
        for access in step.accesses:
            if access.writes:
                before[place].update(readers.pop(access.item, ()))
                writer[access.item] = place
        for access in step.accesses:
            if not access.writes:
                readers.setdefault(access.item, []).append(place)
        before[place].discard(place)
    after: list[set[int]] = [set() for _ in trace.steps]
    for place, others in enumerate(before):
        for other in others:
            after[other].add(place)
    return Needs(tuple(map(frozenset, before)), tuple(map(frozenset, after)))


def moved(order: Sequence[int], needs: Needs, lo: int, reach: int) -> Iterator[tuple[int, ...]]:
    """Orders in which the step at place `lo` comes up to `reach` places earlier or later, the nearest first."""
    step = order[lo]
    up = down = lo
    for _ in range(reach):
        if up > 0 and order[up - 1] not in needs.before[step]:
            up -= 1
            yield (*order[:up], step, *order[up:lo], *order[lo + 1 :])
        else:
            up = 0
        if down + 1 < len(order) and order[down + 1] not in needs.after[step]:
            down += 1
            yield (*order[:lo], *order[lo + 1 : down + 1], step, *order[down + 1 :])
        else:
            down = len(order)


def stands(makers: Makers, order: Sequence[int], repeats: Repeats) -> bool:
    """Whether all repeated steps find what they need in an order."""
    at = [0] * len(order)
    for place, step in enumerate(order):
        at[step] = place
    return all(may_repeat(makers, at, one, step) for step, steps in repeats.items() for one in steps)
