"""What a scheduler sees: steps, which must come before which, and the memory they touch. Plain integers.

Operators of an unsplit graph, row blocks of a cut one and nodes of a training graph all become this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory that lives from the first step that touches it to the last, in any order of the steps.

    `initial`: it is there before the first step. `kept`: it is there until the end. Scratch is a buffer that
    one step touches; the state of an operator that accumulates one that all its steps touch.
    """

    size_bytes: int
    touched_by: tuple[int, ...]
    initial: bool = False
    kept: bool = False


@dataclass(frozen=True, slots=True)
class InPlace:
    """`step` may write buffer `output` over buffer `input`, where it is the first to touch the one and the
    last to touch the other: during that step the smaller of the two then costs nothing. Never where the
    output is there before, or the input has to stay.
    """

    step: int
    input: int
    output: int


@dataclass(frozen=True, eq=False)
class Problem:
    """Steps 0, 1, ... with `before[s]` the steps that must come before step s; the order given by the
    numbers themselves is valid. Of the in-place chances of one step the first that applies is taken.
    """

    before: tuple[tuple[int, ...], ...]
    buffers: tuple[Buffer, ...]
    in_place: tuple[InPlace, ...] = ()

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self.before)

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """For each step the steps that wait for it directly."""
        found: list[list[int]] = [[] for _ in self.before]
        for step, needed in enumerate(self.before):
            for other in needed:
                found[other].append(step)
        return tuple(map(tuple, found))

    @cached_property
    def touches(self) -> tuple[tuple[int, ...], ...]:
        """For each step the buffers it touches."""
        found: list[list[int]] = [[] for _ in self.before]
        for number, buffer in enumerate(self.buffers):
            for step in buffer.touched_by:
                found[step].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def chances(self) -> tuple[InPlace, ...]:
        """The in-place chances that some order can take: memory that is kept, or was there before, is not
        written over.
        """
        return tuple(
            chance
            for chance in self.in_place
            if chance.input != chance.output
            and chance.step in self.buffers[chance.input].touched_by
            and chance.step in self.buffers[chance.output].touched_by
            and not self.buffers[chance.input].kept
            and not self.buffers[chance.output].initial
        )

    def is_valid(self, order: Sequence[int]) -> bool:
        """Whether an order has every step once, after all that must come before it."""
        time = {step: place for place, step in enumerate(order)}
        complete = len(time) == len(order) == self.steps and all(step in time for step in range(self.steps))
        return complete and all(
            time[needed] < time[step] for step in range(self.steps) for needed in self.before[step]
        )

    def loads(self, order: Sequence[int]) -> list[int]:
        """Bytes in memory during each step of an order."""
        first, last = self._lives(order)
        change = [0] * (len(order) + 1)
        for number, buffer in enumerate(self.buffers):
            if first[number] <= last[number]:
                change[first[number]] += buffer.size_bytes
                change[last[number] + 1] -= buffer.size_bytes
        loads, load = [], 0
        for delta in change[:-1]:
            load += delta
            loads.append(load)
        time = {step: place for place, step in enumerate(order)}
        taken: set[int] = set()
        for chance in self.chances:
            at = time[chance.step]
            if chance.step in taken or last[chance.input] != at or first[chance.output] != at:
                continue
            taken.add(chance.step)
            loads[at] -= min(self.buffers[chance.input].size_bytes, self.buffers[chance.output].size_bytes)
        return loads

    def peak(self, order: Sequence[int]) -> int:
        """The largest of `loads`."""
        return max(self.loads(order), default=0)

    def _lives(self, order: Sequence[int]) -> tuple[list[int], list[int]]:
        """First and last place of each buffer; a buffer that nobody touches and nobody keeps has none."""
        time = {step: place for place, step in enumerate(order)}
        first, last = [], []
        for buffer in self.buffers:
            places = [time[step] for step in buffer.touched_by]
            first.append(0 if buffer.initial else min(places, default=0))
            last.append(len(order) - 1 if buffer.kept else max(places, default=0 if buffer.initial else -1))
        return first, last
