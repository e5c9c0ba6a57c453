"""What is to be placed: rectangles (live ranges x bytes) in a memory, and what binds their offsets.

One that lives twice has the same offset in both lives:

    bytes
      ^   +-------+   +-----+
      |   +-------+   +-----+
      |       +-----------+
      |       +-----------+
      +---------------------> steps
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from mcudeploy.interval import Interval


def align_up(value: int, alignment: int) -> int:
    """The smallest multiple of `alignment` (bytes) that is not below `value`."""
    return -(-value // alignment) * alignment


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Bytes that are needed in `lives` (ascending, apart, in steps), always at one offset.

    One without lives has an offset too, but is in nobody's way.
    """

    size_bytes: int
    lives: tuple[Interval, ...]
    alignment: int = 1

    def __post_init__(self) -> None:
        if self.size_bytes <= 0 or self.alignment <= 0:
            raise ValueError(f"a rectangle has {self.size_bytes} bytes and alignment {self.alignment}")
        if any(len(life) == 0 for life in self.lives):
            raise ValueError("a rectangle has a life that is empty")
        if any(one.hi > other.lo for one, other in zip(self.lives, self.lives[1:], strict=False)):
            raise ValueError("the lives of a rectangle are ascending and apart")

    def meets(self, other: Rectangle) -> bool:
        """True where both are alive at one step."""
        return any(one.overlaps(two) for one in self.lives for two in other.lives)


@dataclass(frozen=True, slots=True)
class Problem:
    """Rectangles in one memory. A `stack` lists rectangles that lie one behind the other, the first one
    aligned, and their common base is free.
    """

    rectangles: tuple[Rectangle, ...]
    stacks: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        stacked = [index for stack in self.stacks for index in stack]
        if not all(self.stacks):
            raise ValueError("a stack is empty")
        if not all(self.rectangles[index].lives for index in stacked):
            raise ValueError("a rectangle of a stack never lives")
        if len(set(stacked)) < len(stacked):
            raise ValueError("a rectangle is in two stacks")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search for offsets within a limit ends with: offsets by rectangle, or None; then `proven` says
    that there are none. `work`: the effort that it took, in the measure of the search.
    """

    offsets: tuple[int, ...] | None
    proven: bool = False
    work: int = 0


def lower_bound(problem: Problem) -> int:
    """The largest sum of live bytes, with what alignment adds.

    Between two rectangles at one step lies the padding of one of them at least, the topmost has none: what
    all alignments have in common is all that is sure of it. Those of stacks do not count there, because they
    may lie in the padding of others.
    """
    rectangles = problem.rectangles
    stacked = {index for stack in problem.stacks for index in stack}
    grain = gcd(*(item.alignment for item in rectangles)) or 1
    sizes = [item.size_bytes for item in rectangles]
    rounded = [0 if index in stacked else align_up(size, grain) for index, size in enumerate(sizes)]
    most = max((padded - size for padded, size in zip(rounded, sizes, strict=True)), default=0)
    return max(_largest_load(problem, sizes), _largest_load(problem, rounded) - most)


def _largest_load(problem: Problem, sizes: list[int]) -> int:
    change: dict[int, int] = {}
    for item, size in zip(problem.rectangles, sizes, strict=True):
        for life in item.lives:
            change[life.lo] = change.get(life.lo, 0) + size
            change[life.hi] = change.get(life.hi, 0) - size
    best = load = 0
    for time in sorted(change):
        load += change[time]
        best = max(best, load)
    return best


def stacks_at_the_top(problem: Problem, top: int) -> dict[int, int]:
    """Offsets of stacked rectangles, by index: each stack below the one before, the first ends at `top`."""
    offsets: dict[int, int] = {}
    for stack in problem.stacks:
        alignment = problem.rectangles[stack[0]].alignment
        top = (top - sum(problem.rectangles[i].size_bytes for i in stack)) // alignment * alignment
        at = top
        for index in stack:
            offsets[index] = at
            at += problem.rectangles[index].size_bytes
    return offsets


def conflicts(problem: Problem) -> list[list[int]]:
    """For each rectangle those that are alive at a step with it, without those of its own stack."""
    stack_of = {index: number for number, stack in enumerate(problem.stacks) for index in stack}
    found: list[set[int]] = [set() for _ in problem.rectangles]
    alive: set[int] = set()
    events = sorted(
        event
        for index, item in enumerate(problem.rectangles)
        for life in item.lives
        for event in ((life.lo, 1, index), (life.hi, 0, index))
    )
    for _, begins, index in events:
        if not begins:
            alive.discard(index)
            continue
        stack = stack_of.get(index, -1)
        for other in alive:
            if stack < 0 or stack_of.get(other) != stack:
                found[index].add(other)
                found[other].add(index)
        alive.add(index)
    return [sorted(others) for others in found]
