"""A scheduling problem: steps, their precedences, and the memory they touch. Plain integers.

Operators of an unsplit graph, row blocks of a cut graph and nodes of a training graph all become steps.

Sets of steps are integers, bit s for step s. The memory between two steps depends on the set of completed
steps alone. `OrderProblem.change` is therefore the only place that counts live bytes: all orders, searches
and bounds use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)
class StepBuffer:
    """Memory that lives from the first step that touches it to the last, in any order of the steps.

    `touched_by` contains each step once. `initial`: it is live before the first step. `kept`: it is live
    until the end. Scratch is a buffer that one step touches. The state of an operator that accumulates is a
    buffer that all its steps touch.
    """

    size_bytes: int
    touched_by: tuple[int, ...]
    initial: bool = False
    kept: bool = False

    @property
    def is_scratch(self) -> bool:
        """Whether it lives for one step only."""
        return len(self.touched_by) == 1 and not (self.initial or self.kept)


@dataclass(frozen=True, slots=True)
class InPlace:
    """An in-place candidate: `step` may write buffer `output` over buffer `input`.

    It applies if the step is the first to touch the output and the last to touch the input. During that step
    the smaller of the two then costs nothing. It never applies if the output is initial or the input is kept.
    """

    step: int
    input: int
    output: int


@dataclass(frozen=True, eq=False)
class OrderProblem:
    """Steps 0, 1, ... with `before[s]`, the steps that must come before step s.

    The order of the numbers is valid. A step takes the first of its in-place candidates that applies.
    """

    before: tuple[tuple[int, ...], ...]
    buffers: tuple[StepBuffer, ...]
    in_place: tuple[InPlace, ...] = ()

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.before)

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """For each step, the steps that depend on it directly."""
        dependents: list[list[int]] = [[] for _ in self.before]
        for step, needed in enumerate(self.before):
            for other in needed:
                dependents[other].append(step)
        return tuple(map(tuple, dependents))

    @cached_property
    def needs(self) -> tuple[int, ...]:
        """For each step, the set of its direct dependences."""
        return tuple(map(mask_of, self.before))

    @cached_property
    def touches(self) -> tuple[tuple[int, ...], ...]:
        """For each step, the buffers that it touches."""
        touched: list[list[int]] = [[] for _ in self.before]
        for number, buffer in enumerate(self.buffers):
            for step in buffer.touched_by:
                touched[step].append(number)
        return tuple(map(tuple, touched))

    @cached_property
    def touching(self) -> tuple[int, ...]:
        """For each buffer, the set of steps that touch it."""
        return tuple(mask_of(buffer.touched_by) for buffer in self.buffers)

    @cached_property
    def chances(self) -> tuple[InPlace, ...]:
        """The in-place candidates that some order can use; initial and kept memory is not overwritten."""
        return tuple(
            chance
            for chance in self.in_place
            if chance.input != chance.output
            and chance.step in self.buffers[chance.input].touched_by
            and chance.step in self.buffers[chance.output].touched_by
            and not self.buffers[chance.input].kept
            and not self.buffers[chance.output].initial
        )

    @cached_property
    def chances_of(self) -> dict[int, list[InPlace]]:
        """The `chances` of each step that has any, in their order."""
        by_step: dict[int, list[InPlace]] = {}
        for chance in self.chances:
            by_step.setdefault(chance.step, []).append(chance)
        return by_step

    def saving(self, chance: InPlace) -> int:
        """Return the bytes that an in-place candidate saves."""
        return min(self.buffers[chance.input].size_bytes, self.buffers[chance.output].size_bytes)

    def most_saved(self, step: int) -> int:
        """Return the largest `saving` of a step's in-place candidates."""
        return max(map(self.saving, self.chances_of.get(step, ())), default=0)

    def is_valid(self, order: Sequence[int]) -> bool:
        """Return whether an order contains every step once, after all its predecessors."""
        if sorted(order) != list(range(self.steps)):
            return False
        places = self.places(order)
        return all(places[other] < places[step] for step in order for other in self.before[step])

    def places(self, order: Sequence[int]) -> list[int]:
        """Return the place of each step in an order."""
        places = [0] * self.steps
        for place, step in enumerate(order):
            places[step] = place
        return places

    @cached_property
    def _touched(self) -> list[list[tuple[int, int, bool, bool]]]:
        """For each step, its buffers: the set of touching steps, size, whether initial, whether kept."""
        every = [
            (steps, buffer.size_bytes, buffer.initial, buffer.kept)
            for steps, buffer in zip(self.touching, self.buffers, strict=True)
        ]
        return [[every[number] for number in touched] for touched in self.touches]

    @cached_property
    def _in_place(self) -> dict[int, list[tuple[int, int, int]]]:
        return {
            step: [(self.touching[c.input], self.touching[c.output], self.saving(c)) for c in chances]
            for step, chances in self.chances_of.items()
        }

    @cached_property
    def _first_step_bytes(self) -> int:
        """Initial bytes that no step touches and that are not kept."""
        return sum(b.size_bytes for b in self.buffers if b.initial and not b.kept and not b.touched_by)

    def live(self, done: int) -> int:
        """Return the live bytes after a set of steps and before the next."""
        total = 0
        for steps, buffer in zip(self.touching, self.buffers, strict=True):
            begun = buffer.initial or steps & done or not steps
            if begun and (buffer.kept or steps & ~done):
                total += buffer.size_bytes
        return total

    def begun_and_ended(self, step: int, done: int) -> tuple[int, int]:
        """Return the bytes of buffers that a step is the first to touch, and of those it is the last to
        touch.

        `done` are the steps before it; in-place candidates are ignored.
        """
        begun = ended = 0
        after = ~(done | 1 << step)
        for touching, size_bytes, initial, kept in self._touched[step]:
            if not initial and not touching & done:
                begun += size_bytes
            if not kept and not touching & after:
                ended += size_bytes
        return begun, ended

    def change(self, step: int, done: int) -> tuple[int, int]:
        """Return the change of live bytes during a step, and after it; `done`: the steps before it."""
        begun, ended = self.begun_and_ended(step, done)
        rise = begun if done else begun + self._first_step_bytes
        if step in self._in_place:
            last = 1 << step
            for source, target, saved in self._in_place[step]:
                if source & ~done == last and not target & done:
                    return rise - saved, begun - ended
        return rise, begun - ended

    def changed(self, step: int, done: int) -> Iterator[int]:
        """Yield the remaining steps whose `change` may differ since `step` ran; `done` includes `step`.

        These share a buffer that the step began, or are the last that will touch what it touched.
        """
        bit = 1 << step
        if done == bit and self._first_step_bytes:
            yield from range(self.steps)
        for touching, _, _, kept in self._touched[step]:
            left = touching & ~done
            if left and ((not left & (left - 1) and not kept) or touching & done == bit):
                yield from members(left)

    def loads(self, order: Iterable[int]) -> list[int]:
        """Return the live bytes during each step of an order."""
        loads, done, live = [], 0, self.live(0)
        for step in order:
            rise, net = self.change(step, done)
            loads.append(live + rise)
            live += net
            done |= 1 << step
        return loads

    def peak(self, order: Iterable[int]) -> int:
        """Return the largest of `loads`."""
        return max(self.loads(order), default=0)

    def ready(self) -> list[int]:
        """Return the steps without predecessors."""
        return [step for step, needed in enumerate(self.before) if not needed]

    def freed(self, step: int, done: int) -> list[int]:
        """Return the steps that became ready when `step` ran; `done` includes `step`."""
        return [other for other in self.after[step] if not self.needs[other] & ~done]


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """The best order, if its peak is below the one to beat. No order has a peak below `bound_bytes`."""

    order: list[int] | None
    bound_bytes: int


def mask_of(steps: Iterable[int]) -> int:
    """Return the set of some steps."""
    mask = 0
    for step in steps:
        mask |= 1 << step
    return mask


def members(mask: int) -> list[int]:
    """Return the steps in a set, ascending."""
    steps = []
    while mask:
        low = mask & -mask
        steps.append(low.bit_length() - 1)
        mask ^= low
    return steps
