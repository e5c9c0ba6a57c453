"""What is to be placed: rectangles (live ranges x bytes) in memories, and what binds or frees their offsets.

One that lives twice has the same offset in both lives:

    bytes
      ^   +-------+   +-----+
      |   +-------+   +-----+
      |       +-----------+
      |       +-----------+
      +---------------------> steps
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd

from mcudeploy.interval import Interval


def align_up(value: int, alignment: int) -> int:
    """The smallest multiple of `alignment` (bytes) that is not below `value`."""
    return -(-value // alignment) * alignment


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Bytes that are needed in `lives` (ascending, apart, in steps), always at one offset of `memory`.

    One without lives has an offset too, but nobody's way to stand in.
    """

    size_bytes: int
    lives: tuple[Interval, ...]
    alignment: int = 1
    memory: str = ""

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
class Overlap:
    """Two rectangles, by index, that may share bytes in these steps although both are alive."""

    first: int
    second: int
    steps: Interval


@dataclass(frozen=True, slots=True)
class Problem:
    """Rectangles, each in a memory. A `stack` lists rectangles that lie one behind the other, the first one
    aligned, and their common base is free. `fixed` gives offsets of rectangles by index. A memory without
    capacity (in bytes) has no limit.
    """

    rectangles: tuple[Rectangle, ...]
    capacities: Mapping[str, int] = field(default_factory=dict)
    stacks: tuple[tuple[int, ...], ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    fixed: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stacked = [index for stack in self.stacks for index in stack]
        if not all(self.stacks):
            raise ValueError("a stack is empty")
        if any(offset < 0 for offset in self.fixed.values()):
            raise ValueError("a rectangle is fixed below 0")
        if not all(self.rectangles[index].lives for index in stacked):
            raise ValueError("a rectangle of a stack never lives")
        if len(set(stacked)) < len(stacked) or any(index in self.fixed for index in stacked):
            raise ValueError("a rectangle is in two stacks, or in a stack and fixed")
        if any(len({self.rectangles[i].memory for i in stack}) > 1 for stack in self.stacks):
            raise ValueError("a stack lies in two memories")


@dataclass(frozen=True, slots=True)
class Placed:
    """Byte offsets by rectangle, and by memory its used bytes and a bound that no placement goes below.

    The status is `optimal` where every memory is at its bound.
    """

    offsets: tuple[int, ...]
    used_bytes: Mapping[str, int]
    lower_bound_bytes: Mapping[str, int]

    @property
    def status(self) -> str:
        return "optimal" if self.used_bytes == self.lower_bound_bytes else "feasible"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search for offsets within a limit ends with: offsets by rectangle, or None; then `proven` says
    that there are none. `work`: the effort that it took, in the measure of the search.
    """

    offsets: tuple[int, ...] | None
    proven: bool = False
    work: int = 0

    @property
    def decided(self) -> bool:
        """Whether nothing is left to search for."""
        return self.offsets is not None or self.proven


def lower_bound(problem: Problem) -> int:
    """The largest sum of live bytes of a problem in one memory, with what alignment adds.

    Bytes that two rectangles may share count once: a union is at least its sum minus all pairs' overlaps.
    Between two rectangles at one step lies the padding of one of them at least, the topmost has none: what
    all alignments have in common is all that is sure of it. Those of stacks and fixed ones do not count
    there, because they may lie in the padding of others.
    """
    rectangles = problem.rectangles
    tied = {index for stack in problem.stacks for index in stack} | set(problem.fixed)
    grain = gcd(*(item.alignment for item in rectangles)) or 1
    rounded = [
        0 if index in tied else align_up(item.size_bytes, grain) for index, item in enumerate(rectangles)
    ]
    plain = _largest_load(problem, [item.size_bytes for item in rectangles])
    most = max((size - item.size_bytes for size, item in zip(rounded, rectangles, strict=True)), default=0)
    ends = max((problem.fixed[i] + rectangles[i].size_bytes for i in problem.fixed), default=0)
    return max(plain, ends, _largest_load(problem, rounded) - most if not problem.overlaps else 0)


def _largest_load(problem: Problem, sizes: list[int]) -> int:
    change: dict[int, int] = {}

    def add(lives: Iterable[Interval], size: int) -> None:
        for life in lives:
            change[life.lo] = change.get(life.lo, 0) + size
            change[life.hi] = change.get(life.hi, 0) - size

    for item, size in zip(problem.rectangles, sizes, strict=True):
        add(item.lives, size)
    for overlap in problem.overlaps:
        add(shared_steps(problem, overlap), -min(sizes[overlap.first], sizes[overlap.second]))
    best = load = 0
    for time in sorted(change):
        load += change[time]
        best = max(best, load)
    return best


def shared_steps(problem: Problem, overlap: Overlap) -> list[Interval]:
    """The steps in which an overlap is used: both are alive, and it is allowed."""
    found = []
    for one in problem.rectangles[overlap.first].lives:
        for two in problem.rectangles[overlap.second].lives:
            lo, hi = max(one.lo, two.lo, overlap.steps.lo), min(one.hi, two.hi, overlap.steps.hi)
            if lo < hi:
                found.append(Interval(lo, hi))
    return found


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
    """For each rectangle those that must not share bytes with it, but for those of its own stack.

    Pairs of one memory that are both alive at a step where no overlap allows it.
    """
    rectangles = problem.rectangles
    stack_of = {index: number for number, stack in enumerate(problem.stacks) for index in stack}
    allowed = _allowed_steps(problem)
    pairs: set[tuple[int, int]] = set()
    alive: set[int] = set()
    events = sorted(
        event
        for index, item in enumerate(rectangles)
        for life in item.lives
        for event in ((life.lo, 1, index), (life.hi, 0, index))
    )
    for _, begins, index in events:
        if not begins:
            alive.discard(index)
            continue
        stack = stack_of.get(index, -1)
        for other in alive:
            if stack >= 0 and stack_of.get(other) == stack:
                continue
            pairs.add((index, other) if index < other else (other, index))
        alive.add(index)
    result: list[list[int]] = [[] for _ in rectangles]
    for one, two in sorted(pairs):
        if rectangles[one].memory != rectangles[two].memory:
            continue
        if (one, two) in allowed and _covered(rectangles[one], rectangles[two], allowed[one, two]):
            continue
        result[one].append(two)
        result[two].append(one)
    return result


def _allowed_steps(problem: Problem) -> dict[tuple[int, int], set[int]]:
    """Steps by pair; windows are a few steps long, so they are listed one by one."""
    allowed: dict[tuple[int, int], set[int]] = {}
    for overlap in problem.overlaps:
        pair = (min(overlap.first, overlap.second), max(overlap.first, overlap.second))
        for shared in shared_steps(problem, overlap):
            allowed.setdefault(pair, set()).update(range(shared.lo, shared.hi))
    return allowed


def _covered(one: Rectangle, two: Rectangle, allowed: set[int]) -> bool:
    both = (range(max(a.lo, b.lo), min(a.hi, b.hi)) for a in one.lives for b in two.lives if a.overlaps(b))
    return all(step in allowed for steps in both for step in steps)
