"""Memory and offset for every rectangle: hot ones where a byte costs least, none beyond a memory's capacity.

The cost of an assignment is the sum over groups of bytes accessed times the cost of their memory; where that
is equal, earlier memories are better. If nothing stands in the way, each group lies in its cheapest memory.
Else memories are chosen under what is alive in each at every step, which bounds the cost from below, and
packed one by one; a memory that does not pack gets less, and the choice is made again. Small problems are
also solved with memories and offsets in one model. First fit by density of cost is the start and the last
resort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcudeploy.layout.banks import Assigned, Bank, Group, Task
from mcudeploy.layout.greedy import Units
from mcudeploy.layout.problem import Problem, align_up

_TURNS = 6
"""So often memories are chosen anew after one of them could not be packed."""

_MOST_JOINT = 150
"""So many rectangles are given to the joint model."""


def assign(
    problem: Problem,
    groups: Sequence[Group],
    banks: Sequence[Bank],
    seconds: float,
    *,
    grain: int = 1,
) -> Assigned:
    """Memory and offset of every rectangle, at the least cost that is found in `seconds`.

    Groups hold all rectangles, and stacks whole. Seconds stand for an effort, as in `place`; with 0 only the
    cheapest banks and first fit are tried. What does not fit has offsets nevertheless, beyond a capacity.
    Raises ValueError for a group that may lie nowhere, and for fixed offsets and allowed overlaps, which it
    does not know.
    """
    if problem.fixed or problem.overlaps or not all(group.banks for group in groups):
        raise ValueError("a rectangle is fixed, may overlap another or may lie in no bank")
    task = Task.of(problem, groups, banks, grain)
    cheapest = tuple(
        min(group.banks, key=lambda b: (costs[b], b)) for group, costs in zip(groups, task.costs, strict=True)
    )
    found = task.packed(cheapest, 0.0, limited=False)
    only = all(len(group.banks) == 1 for group in groups)
    beyond = bool(task.excess(found.placed.lower_bound_bytes))
    if found.placed.status != "optimal" and seconds > 0 and (only or not beyond):
        found = task.packed(cheapest, seconds, limited=False)
    if found.fits:
        return replace(found, proven=True)
    if only:
        return replace(found, proven=beyond or found.placed.status == "optimal")
    filler = _Filler(task, Units.of(problem))
    start = filler.fitting()
    if seconds == 0:
        return start or filler.overflowing()
    best, hopeless = _searched(task, filler.units, start, seconds)
    return _tightened(task, best, seconds) if best else replace(filler.overflowing(), proven=hopeless)


def _tightened(task: Task, found: Assigned, seconds: float) -> Assigned:
    """The same memories, with smaller arenas where there are any."""
    if found.placed.status == "optimal":
        return found
    packed = task.packed(found.banks, seconds)
    smaller = sum(packed.placed.used_bytes.values()) <= sum(found.placed.used_bytes.values())
    return replace(packed, proven=found.proven) if packed.fits and smaller else found


def _searched(
    task: Task, units: Units, start: Assigned | None, seconds: float
) -> tuple[Assigned | None, bool]:
    """The best assignment, no worse than `start`; where there is none, whether that is proven."""
    from mcudeploy.layout.choice import joint, least_loads  # noqa: PLC0415 - the solver's import takes long

    best, bound = start, None
    limits = [bank.capacity_bytes for bank in task.banks]
    for turn in range(_TURNS):
        chosen = least_loads(task, limits, best.banks if best else None, seconds / _TURNS)
        if turn == 0 and chosen.proven:
            if chosen.banks is None:
                return None, True
            bound = task.expense(chosen.banks)
        if chosen.banks is None or (best and task.expense(best.banks) <= task.expense(chosen.banks)):
            break  # with less room nothing costs less
        found = task.packed(chosen.banks, seconds / _TURNS, fitting=True)
        if found.fits:
            best = found
            break
        for bank, missing in task.excess(found.placed.used_bytes).items():
            limits[bank] -= missing
    if best and task.expense(best.banks) == bound:
        return replace(best, proven=True), False
    if len(task.problem.rectangles) > _MOST_JOINT:
        return best, False
    chosen = joint(task, units, best, seconds)
    if chosen.banks is None:
        return best, chosen.proven
    if best and task.expense(best.banks) <= task.expense(chosen.banks):
        return replace(best, proven=chosen.proven), False
    return replace(task.settled(chosen.banks, chosen.offsets), proven=chosen.proven), False


class _Filler:
    """First fit into the cheapest bank that has room, group by group."""

    def __init__(self, task: Task, units: Units) -> None:
        self._task, self.units = task, units
        group_of = {index: number for number, group in enumerate(task.groups) for index in group.rectangles}
        self._parts: list[list[tuple[tuple[int, int], ...]]] = [[] for _ in task.groups]
        for part in units.parts:
            self._parts[group_of[part[0][0]]].append(part)

    def fitting(self) -> Assigned | None:
        """The least that first fit costs in several orders; None where none of them fits."""
        filled = (self._fill(order, beyond=False) for order in self._orders())
        found = [one for one in filled if one is not None]
        return min(found, key=lambda one: self._task.expense(one.banks), default=None)

    def overflowing(self) -> Assigned:
        """What does not fit lies where it goes least beyond the capacity."""
        found = self._fill(self._orders()[0], beyond=True)
        assert found is not None
        return found

    def _orders(self) -> tuple[list[int], ...]:
        """Groups by what they cost elsewhere for the bytes that they take over the steps; and by size."""
        rectangles, gains, sizes = self._task.problem.rectangles, [], []
        for group, costs, ranks in zip(self._task.groups, self._task.costs, self._task.ranks, strict=True):
            items = [rectangles[index] for index in group.rectangles]
            area = max(1, sum(item.size_bytes * sum(map(len, item.lives)) for item in items))
            most, least = (pick((costs[b], ranks[b]) for b in group.banks) for pick in (max, min))
            gains.append(((most[0] - least[0]) / area, (most[1] - least[1]) / area))
            sizes.append(max((item.size_bytes for item in items), default=0))
        numbers = range(len(gains))
        return sorted(numbers, key=lambda g: gains[g], reverse=True), sorted(numbers, key=lambda g: -sizes[g])

    def _fill(self, order: Sequence[int], *, beyond: bool) -> Assigned | None:
        """Every group in the cheapest bank that has room, or `beyond`; None where one finds no room."""
        task = self._task
        banks, offsets = [-1] * len(task.groups), [-1] * len(task.problem.rectangles)
        bank_of = [-1] * len(offsets)
        for number in order:
            least: tuple[int, int, dict[int, int]] | None = None
            for bank in sorted(task.groups[number].banks, key=lambda b: (task.costs[number][b], b)):
                found, end = self._first_fit(number, bank, offsets, bank_of)
                missing = max(0, end - task.banks[bank].capacity_bytes)
                if least is None or missing < least[0]:
                    least = missing, bank, found
                if not missing:
                    break
            assert least is not None
            if least[0] and not beyond:
                return None
            banks[number] = least[1]
            for index, offset in least[2].items():
                offsets[index], bank_of[index] = offset, least[1]
        return task.settled(banks, offsets)

    def _first_fit(
        self, number: int, bank: int, placed: Sequence[int], bank_of: Sequence[int]
    ) -> tuple[dict[int, int], int]:
        """Offsets of a group's rectangles in a bank beside those that are placed, and where they end."""
        rectangles = self._task.problem.rectangles
        found: dict[int, int] = {}
        end = 0
        for part in self._parts[number]:
            taken = []
            for index, distance in part:
                above = distance + rectangles[index].size_bytes
                for other in self.units.neighbours[index]:
                    at = placed[other] if bank_of[other] == bank else found.get(other, -1)
                    if at >= 0:
                        taken.append((at - above, at + rectangles[other].size_bytes - distance))
            base, alignment = 0, self._task.alignment(part[0][0], bank)
            for below, above in sorted(taken):  # a base between these two, both excluded, would share bytes
                if base <= below:
                    break
                if base < above:
                    base = align_up(above, alignment)
            found |= {index: base + distance for index, distance in part}
            end = max(end, base + part[-1][1] + rectangles[part[-1][0]].size_bytes)
        return found, end
