"""The checker of residencies: it replays transfers and steps on memories that record each item's version."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcudeploy.ir.plan import Residence
from mcudeploy.ir.trace import FAST, SLOW, Item, ItemAccess, ItemTransfer, Residency, Trace

_ROTTEN = -2
"""The version of bytes that nothing may read."""
_BEFORE = -1
"""The version of what is valid before the first step."""


class ResidencyError(AssertionError):
    """A residency that cannot be executed as it is."""


def check(plan: Residency, trace: Trace, capacity_bytes: int) -> None:
    """Raise ResidencyError if a residency of a trace is wrong, naming step and item.

    A correct residency runs every step of the trace at least once, in an order in which each reads what it
    read in the trace. The fast memory never exceeds its capacity.
    """
    _check_steps(plan, trace)
    if len(plan.residences) != len(trace.items) or plan.trace.items != trace.items:
        raise ResidencyError("the items are not those of the trace")
    _check_shapes(plan)
    judge = _Judge(plan, trace, capacity_bytes)
    for place in range(len(plan.trace.steps) + 1):
        judge.between(place)
        if place < len(plan.trace.steps):
            judge.run(place)
    judge.end()


def _check_steps(plan: Residency, trace: Trace) -> None:
    ran = [0] * len(trace.steps)
    for place, step in enumerate(plan.trace.steps):
        if not 0 <= step.origin < len(trace.steps):
            raise ResidencyError(f"step {place} has no origin")
        source = trace.steps[step.origin]
        same = (step.accesses, step.work_bytes, step.cycles) == (
            source.accesses,
            source.work_bytes,
            source.cycles,
        )
        if not same:
            raise ResidencyError(f"step {place} is not what its origin {step.origin} is")
        ran[step.origin] += 1
        if ran[step.origin] > 1 and not source.repeatable:
            raise ResidencyError(f"step {place} runs again and must not")
    if 0 in ran:
        raise ResidencyError(f"step {ran.index(0)} of the trace never runs")


def _check_shapes(plan: Residency) -> None:
    end = len(plan.trace.steps)
    for residences in plan.residences:
        for memory in (FAST, SLOW):
            last = 0
            for each in (it for it in residences if it.memory == memory):
                if not last <= each.life.lo < each.life.hi <= end:
                    raise ResidencyError(f"{each} overlaps another, is empty or lies outside")
                last = each.life.hi
    last = 0
    for passage in plan.passages:
        if not last <= passage.start <= passage.end <= end:
            raise ResidencyError(f"{passage} is out of order")
        last = passage.start


def _versions(trace: Trace) -> list[dict[int, int]]:
    """Return, by step of the trace, the version of each item that it reads: the step that wrote it."""
    holds: dict[int, int] = {}
    found = []
    for place, step in enumerate(trace.steps):
        found.append({a.item: holds.get(a.item, _BEFORE) for a in step.accesses if not a.writes})
        holds.update({a.item: place for a in step.accesses if a.writes})
    found.append({number: holds.get(number, _BEFORE) for number, item in enumerate(trace.items) if item.kept})
    return found


@dataclass(slots=True)
class _Contents:
    """The version that each item contains in one of the memories, while it has bytes there."""

    holds: dict[int, int] = field(default_factory=dict)


class _Judge:
    def __init__(self, plan: Residency, trace: Trace, capacity_bytes: int) -> None:
        self._plan, self._capacity = plan, capacity_bytes
        self._items: tuple[Item, ...] = trace.items
        self._wanted = _versions(trace)
        self._memory = {True: _Contents(), False: _Contents()}
        self._flying: list[ItemTransfer] = []
        self._load = 0
        edges = range(len(plan.trace.steps) + 1)
        self._opening: list[list[tuple[int, Residence]]] = [[] for _ in edges]
        self._closing: list[list[tuple[int, Residence]]] = [[] for _ in edges]
        self._starting: list[list[ItemTransfer]] = [[] for _ in edges]
        for number, residences in enumerate(plan.residences):
            for each in residences:
                self._opening[each.life.lo].append((number, each))
                self._closing[each.life.hi].append((number, each))
        for passage in plan.passages:
            self._starting[passage.start].append(passage)

    def _fail(self, place: int, item: int, what: str) -> None:
        raise ResidencyError(f"before or at step {place}, item {item} ({self._items[item].name}): {what}")

    def between(self, place: int) -> None:
        """Before a step: transfers end, stays end and begin, transfers begin."""
        for passage in [one for one in self._flying if one.end == place]:
            self._arrive(passage, place)
        instant = {p.item for p in self._starting[place] if p.end == place and p.direction == "out"}
        late = [
            (item, stay) for item, stay in self._closing[place] if stay.memory == FAST and item in instant
        ]
        opened = {(item, stay.memory == FAST) for item, stay in self._opening[place]}
        after = [(item, stay) for item, stay in self._closing[place] if stay.memory == SLOW]
        after = [(item, stay) for item, stay in after if (item, False) not in opened]
        for item, stay in self._closing[place]:
            if (item, stay) not in (*late, *after):
                self._close(item, stay, place)
        # What is written out at this point makes room only then; a step's output takes room after all
        # transfers.
        coming = {p.item for p in self._starting[place] if p.direction == "in"}
        if place == 0:
            coming |= {
                item for item, stay in self._opening[0] if stay.memory == FAST and self._is_there(item)
            }
        for item, stay in self._opening[place]:
            if stay.memory == SLOW or (place == 0 and self._is_there(item)):
                self._open(item, stay, place)
        for passage in self._starting[place]:
            if passage.direction == "in":
                for item, stay in self._opening[place]:
                    if item == passage.item and stay.memory == FAST and item not in self._memory[True].holds:
                        self._open(item, stay, place)
            self._issue(passage, place)
            if passage.end == place:
                self._arrive(passage, place)
                for item, stay in late:
                    if item == passage.item and passage.direction == "out":
                        self._close(item, stay, place)
        for item, stay in self._opening[place]:
            if stay.memory == FAST and item not in coming:
                self._open(item, stay, place)
        for item, stay in after:
            self._close(item, stay, place)

    def _open(self, item: int, stay: Residence, place: int) -> None:
        holds = self._memory[stay.memory == FAST].holds
        valid = place == 0 and (self._is_there(item) if stay.memory == FAST else self._items[item].given)
        holds[item] = _BEFORE if valid else _ROTTEN
        if stay.memory == FAST:
            self._load += self._items[item].size_bytes

    def _is_there(self, item: int) -> bool:
        """Return whether an item is in the fast memory before the first step."""
        return self._items[item].loaded or (self._items[item].given and self._items[item].fixed)

    def _close(self, item: int, stay: Residence, place: int) -> None:
        if any(one.item == item for one in self._flying):
            self._fail(place, item, "its bytes are left while a passage uses them")
        if place < len(self._plan.trace.steps):
            del self._memory[stay.memory == FAST].holds[item]
            if stay.memory == FAST:
                self._load -= self._items[item].size_bytes

    def _issue(self, passage: ItemTransfer, place: int) -> None:
        inwards = passage.direction == "in"
        if any(one.item == passage.item for one in self._flying):
            self._fail(place, passage.item, "two passages at a time")
        source, target = self._memory[not inwards].holds, self._memory[inwards].holds
        if source.get(passage.item, _ROTTEN) == _ROTTEN:
            self._fail(place, passage.item, f"its passage {passage.direction} finds nothing valid")
        if passage.item not in target:
            self._fail(place, passage.item, f"its passage {passage.direction} has no target")
        target[passage.item] = _ROTTEN
        self._flying.append(passage)
        if self._load > self._capacity:
            self._fail(place, passage.item, f"{self._load} B in the fast memory at its passage")

    def _arrive(self, passage: ItemTransfer, place: int) -> None:
        inwards = passage.direction == "in"
        self._flying.remove(passage)
        source, target = self._memory[not inwards].holds, self._memory[inwards].holds
        if passage.item not in source or passage.item not in target:
            self._fail(place, passage.item, "source or target is gone before its passage ends")
        target[passage.item] = source[passage.item]

    def run(self, place: int) -> None:
        """Run a step: check all reads, then write."""
        step = self._plan.trace.steps[place]
        load = self._load + step.work_bytes
        if load > self._capacity:
            raise ResidencyError(f"step {place} ({step.name}) has {load} B in the fast memory")
        direct = {one.operand for one in step.accesses if not self._is_fast(one)}
        wanted = self._wanted[step.origin]
        for access in step.accesses:
            if access.operand in direct and access.direct_bytes is None:
                self._fail(place, access.item, "it is not in the fast memory and cannot be accessed directly")
            holds = self._memory[access.operand not in direct].holds
            if access.item not in holds:
                self._fail(place, access.item, "it has no bytes where it is accessed")
            if not access.writes and holds[access.item] != wanted[access.item]:
                self._fail(place, access.item, f"version {holds[access.item]} where it is read")
        for access in step.accesses:
            if access.writes:
                self._write(place, access, fast=access.operand not in direct)

    def _is_fast(self, access: ItemAccess) -> bool:
        holds = self._memory[True].holds
        if access.writes:
            return access.item in holds
        return holds.get(access.item, _ROTTEN) != _ROTTEN

    def _write(self, place: int, access: ItemAccess, *, fast: bool) -> None:
        if any(one.item == access.item for one in self._flying):
            self._fail(place, access.item, "it is written while a passage uses it")
        self._memory[fast].holds[access.item] = self._plan.trace.steps[place].origin
        if access.item in self._memory[not fast].holds:
            self._memory[not fast].holds[access.item] = _ROTTEN

    def end(self) -> None:
        """Check that kept items are valid, and that fixed items never left."""
        end = len(self._plan.trace.steps)
        for item, version in self._wanted[-1].items():
            if all(memory.holds.get(item, _ROTTEN) != version for memory in self._memory.values()):
                self._fail(end, item, "it is not valid at the end")
        touched: dict[int, list[int]] = {}
        for place, step in enumerate(self._plan.trace.steps):
            for access in step.accesses:
                touched.setdefault(access.item, []).append(place)
        for number, one in enumerate(self._items):
            if one.fixed and number in touched:
                lo = 0 if one.given or one.loaded else touched[number][0]
                hi = end if one.kept else touched[number][-1] + 1
                if not any(
                    s.memory == FAST and s.life.lo <= lo and hi <= s.life.hi
                    for s in self._plan.residences[number]
                ):
                    self._fail(lo, number, "it is fixed, but away at times")
