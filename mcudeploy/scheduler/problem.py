"""What a scheduler sees: steps, which must come before which, and the memory they touch. Plain integers.

Operators of an unsplit graph, row blocks of a cut one and nodes of a training graph all become this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory that lives from the first step that touches it to the last, in any order of the steps.

    `touched_by` has each step once. `initial`: it is there before the first step. `kept`: it is there until
    the end. Scratch is a buffer that one step touches; the state of an operator that accumulates one that
    all its steps touch.
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

    @cached_property
    def chances_of(self) -> dict[int, list[InPlace]]:
        """The `chances` of each step that has any, in their order."""
        found: dict[int, list[InPlace]] = {}
        for chance in self.chances:
            found.setdefault(chance.step, []).append(chance)
        return found

    def saving(self, chance: InPlace) -> int:
        """Bytes that cost nothing where a chance is taken."""
        return min(self.buffers[chance.input].size_bytes, self.buffers[chance.output].size_bytes)

    def most_saved(self, step: int) -> int:
        """The largest `saving` of a step's chances."""
        return max(map(self.saving, self.chances_of.get(step, ())), default=0)

    def is_valid(self, order: Sequence[int]) -> bool:
        """Whether an order has every step once, after all that must come before it."""
        if sorted(order) != list(range(self.steps)):
            return False
        places = self.places(order)
        return all(places[other] < places[step] for step in order for other in self.before[step])

    def places(self, order: Sequence[int]) -> list[int]:
        """For each step its place in an order."""
        places = [0] * self.steps
        for place, step in enumerate(order):
            places[step] = place
        return places

    def life(self, number: int, places: Sequence[int]) -> tuple[int, int]:
        """First and last place of a buffer; one that nobody touches and nobody keeps ends before it begins.

        `places`: of the steps.
        """
        buffer = self.buffers[number]
        touched = [places[step] for step in buffer.touched_by]
        first = 0 if buffer.initial else min(touched, default=0)
        return first, self.steps - 1 if buffer.kept else max(touched, default=0 if buffer.initial else -1)

    def saved(self, step: int, place: int, lives: Sequence[tuple[int, int]]) -> int:
        """Bytes that a step takes over in place; `lives`: of the buffers."""
        for chance in self.chances_of.get(step, ()):
            if lives[chance.input][1] == place == lives[chance.output][0]:
                return self.saving(chance)
        return 0

    def loads(self, order: Sequence[int]) -> list[int]:
        """Bytes in memory during each step of an order."""
        places = self.places(order)
        lives = [self.life(number, places) for number in range(len(self.buffers))]
        change = [0] * (self.steps + 1)
        for buffer, (first, last) in zip(self.buffers, lives, strict=True):
            change[first] += buffer.size_bytes
            change[last + 1] -= buffer.size_bytes
        loads = list(accumulate(change[:-1]))
        for step in self.chances_of:
            loads[places[step]] -= self.saved(step, places[step], lives)
        return loads

    def peak(self, order: Sequence[int]) -> int:
        """The largest of `loads`."""
        return max(self.loads(order), default=0)


@dataclass(frozen=True, slots=True)
class Solution:
    """A valid order, and bytes that every order needs at its peak."""

    order: tuple[int, ...]
    lower_bound_bytes: int
