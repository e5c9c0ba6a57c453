"""Alternative orders of the steps of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcudeploy.ir.trace import Trace
from mcudeploy.planner.offload.repeats import Producers, Repeats, may_repeat

REACHES = (1, 2, 3, 5, 8, 13, 21, 34, 55)
"""The maximum number of places by which a step is moved."""


@dataclass(frozen=True, slots=True)
class Precedence:
    """By step, the steps that must come directly before it, and those that must come directly after it."""

    before: tuple[frozenset[int], ...]
    after: tuple[frozenset[int], ...]


def needs_of(trace: Trace) -> Precedence:
    """Return the precedences: a reader comes after the writer of its bytes, and before the next writer."""
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
    return Precedence(tuple(map(frozenset, before)), tuple(map(frozenset, after)))


def moved(order: Sequence[int], needs: Precedence, at: int) -> Iterator[tuple[int, ...]]:
    """Yield orders in which the step at a place moves some places earlier or later.

    Earlier, it takes along its dependences in between; later, its dependents.
    """
    for reach in REACHES:
        lo, hi = max(0, at - reach), min(len(order), at + reach + 1)
        with_it = {order[at]}
        for step in reversed(order[lo:at]):
            if needs.after[step] & with_it:
                with_it.add(step)
        yield _parted(order, lo, at + 1, with_it)
        with_it = {order[at]}
        for step in order[at + 1 : hi]:
            if needs.before[step] & with_it:
                with_it.add(step)
        others = set(order[at:hi]) - with_it
        yield _parted(order, at, hi, others)


def _parted(order: Sequence[int], lo: int, hi: int, first: set[int]) -> tuple[int, ...]:
    """Return an order whose places [lo, hi) have some steps before the others."""
    inside = order[lo:hi]
    front = [step for step in inside if step in first]
    return (*order[:lo], *front, *(step for step in inside if step not in first), *order[hi:])


def may_repeat_all(producers: Producers, order: Sequence[int], repeats: Repeats) -> bool:
    """Return whether all repeated steps find their inputs in an order."""
    at = [0] * len(order)
    for place, step in enumerate(order):
        at[step] = place
    return all(may_repeat(producers, at, one, step) for step, steps in repeats.items() for one in steps)
