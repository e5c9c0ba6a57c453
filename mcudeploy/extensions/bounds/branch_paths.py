"""Branches inside a loop whose paths have separate copies of the loop's end.

Compilers copy the end of a loop into each path of a branch. Then no join is before the next round. The paths
still agree if each ends with the same decision between the next round and the way out of the loop, on values
that each computes in the same way. Only values that the paths compute differently depend on the branch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mcudeploy.extensions.bounds.effects import CALLER_SAVED, Effects, MemoryAccess
from mcudeploy.toolchain.disassembly import Instruction

_MOST_PATHS = 256
_SLOTS = 64
"""The key of the frame's first word in the state of a path; locations have smaller keys."""
_INVERSE = {
    "eq": "ne", "cs": "cc", "hs": "lo", "mi": "pl", "vs": "vc", "hi": "ls", "ge": "lt", "gt": "le",
}  # fmt: skip
_BRANCH = re.compile(r"(?:b|cb)(\w\w|n?z)")
_LIST = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class LoopDecision:
    """The end of a path: a condition, the number of the tested value, and the next instruction either way."""

    condition: str
    value: int
    if_true: int
    if_false: int


@dataclass(frozen=True, slots=True)
class Differing:
    """Sets of locations, and of words above the stack pointer, that depend on the path, as bits."""

    locations: int
    slots: int


@dataclass(frozen=True, slots=True)
class LoopTails:
    """The paths of a branch up to the next round of its loop, or out of it.

    `again`: the first instruction of the next round; `out`: that after the loop.
    """

    again: int
    out: int
    differing: Differing


class Values:
    """Numbers for values of locations: two paths that compute a value in the same way have one number."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}

    def number(self, key: object) -> int:
        """Return the number of a value that is described by a key."""
        return self._numbers.setdefault(key, len(self._numbers))

    def unknown(self) -> int:
        """Return the number of a value that equals no other, such as one from memory."""
        return self.number(object())


def loop_tails(
    starts: tuple[int, ...],
    out: int,
    body: Mapping[int, tuple[Instruction, Effects | None]],
    following: Mapping[int, tuple[int, ...]],
) -> LoopTails | None:
    """Return how the paths from `starts` end, if all end with one decision; None if they do not."""
    for again in dict.fromkeys(_candidates(starts, out, following)):
        paths = _paths(starts, {again, out}, following)
        if not paths:
            continue
        values = Values()
        ends = [_follow(path, body, following, values) for path in paths]
        decisions = {decision for decision, _ in ends}
        if len(decisions) != 1 or None in decisions:
            continue
        (decision,) = decisions
        if decision is not None and {decision.if_true, decision.if_false} == {again, out}:
            return LoopTails(again, out, _differing([state for _, state in ends], values))
    return None


def differing_at(
    join: int,
    starts: tuple[int, ...],
    body: Mapping[int, tuple[Instruction, Effects | None]],
    following: Mapping[int, tuple[int, ...]],
) -> Differing | None:
    """Return what depends on the path from `starts` to a join; None if there are too many paths."""
    paths = _paths(starts, {join}, following)
    if not paths or any(body[address][1] is None for path in paths for address in path):
        return None
    values = Values()
    return _differing([_follow(path, body, following, values)[1] for path in paths], values)


def _candidates(starts: tuple[int, ...], out: int, following: Mapping[int, tuple[int, ...]]) -> Iterator[int]:
    """Yield the instructions that may follow the decisions before `out`."""
    seen, rest = {out}, list(starts)
    while rest:
        address = rest.pop()
        if address in seen or address not in following:
            continue
        seen.add(address)
        rest += following[address]
        if out in following[address] and len(following[address]) == 2:
            yield from (it for it in following[address] if it != out)


def _paths(
    starts: tuple[int, ...], ends: set[int], following: Mapping[int, tuple[int, ...]]
) -> list[list[int]] | None:
    """Return the paths up to `ends`, exclusive; None if there are too many, or one ends elsewhere."""
    paths: list[list[int]] = [[] for start in starts if start in ends]
    rest = [[start] for start in starts if start not in ends]
    while rest and len(paths) + len(rest) <= _MOST_PATHS:
        path = rest.pop()
        nexts = set(following.get(path[-1], ()))
        if nexts and nexts <= ends:
            paths.append(path)
        elif not nexts or path[-1] in path[:-1]:
            return None
        else:
            paths += [path] if nexts & ends else []
            rest += [[*path, it] for it in nexts - ends]
    return None if rest else paths


def _follow(
    path: list[int],
    body: Mapping[int, tuple[Instruction, Effects | None]],
    following: Mapping[int, tuple[int, ...]],
    values: Values,
) -> tuple[LoopDecision | None, dict[int, int]]:
    """Return the decision at the end of a path, and the numbers of the values that it has written."""
    state: dict[int, int] = {}
    for address in path:
        it, effects = body[address]
        if effects is None:
            return None, {}
        if it.mnemonic in ("bl", "blx"):
            state |= {location: values.unknown() for location in _bits(CALLER_SAVED)}
            continue
        read = effects.reads | effects.address | effects.partial
        key = (it.mnemonic, it.operands, _numbers(read, state, values))
        state |= _written(effects, key, state, values) | _updated(it, effects, state, values)
    if not path:
        return None, state
    last, effects = body[path[-1]]
    return _decision(last, effects, following[path[-1]], (state, values)), state


def _written(
    effects: Effects, key: tuple[object, ...], state: dict[int, int], values: Values
) -> dict[int, int]:
    """Return the values that an instruction writes: to registers, or to words of its function's frame."""
    written = _bits(effects.writes | effects.partial)
    slots = [_SLOTS + it for it in _bits(effects.stack.slots or 0)]
    words = len(slots) == len(effects.moved) and not effects.partial
    if effects.access is MemoryAccess.LOAD:
        if words and slots and effects.whole_words:
            return {to: _value(slot, state, values) for to, slot in zip(effects.moved, slots, strict=True)}
        return {location: values.unknown() for location in written}
    if effects.access is MemoryAccess.STORE:
        if words and effects.whole_words:
            return {slot: _value(it, state, values) for slot, it in zip(slots, effects.moved, strict=True)}
        return {slot: values.unknown() for slot in slots}
    return {location: values.number((*key, location)) for location in written}


def _updated(it: Instruction, effects: Effects, state: dict[int, int], values: Values) -> dict[int, int]:
    """Return the value of a base that an access writes back; the moved registers do not matter."""
    if not effects.updates:
        return {}
    listed = _LIST.search(it.operands)
    how = effects.bytes_listed if listed else it.operands.partition("[")[2]
    key = ("update", it.mnemonic[:4], how, _numbers(effects.address, state, values))
    return {location: values.number((*key, location)) for location in _bits(effects.updates)}


def _decision(
    last: Instruction,
    effects: Effects | None,
    nexts: tuple[int, ...],
    known: tuple[dict[int, int], Values],
) -> LoopDecision | None:
    """Return the decision of a conditional branch, in a form that is the same for the inverse condition."""
    branch = _BRANCH.fullmatch(last.mnemonic)
    if branch is None or effects is None or not effects.control or len(nexts) != 2:
        return None
    state, values = known
    tested = values.number(("test", _numbers(effects.control, state, values)))
    condition, (target, after) = branch[1], nexts
    if condition == "nz":
        return LoopDecision("z", tested, after, target)
    inverse_of = next((name for name, inverse in _INVERSE.items() if inverse == condition), None)
    if inverse_of is not None:
        return LoopDecision(inverse_of, tested, after, target)
    return LoopDecision(condition, tested, target, after)


def _numbers(locations: int, state: dict[int, int], values: Values) -> tuple[int, ...]:
    return tuple(_value(it, state, values) for it in _bits(locations))


def _value(location: int, state: dict[int, int], values: Values) -> int:
    return state.get(location, values.number(("before", location)))


def _differing(states: list[dict[int, int]], values: Values) -> Differing:
    """Return the locations and words of the frame that have several values after the paths."""
    locations = {location for state in states for location in state}
    several = [it for it in locations if len({_value(it, state, values) for state in states}) > 1]
    return Differing(
        sum(1 << it for it in several if it < _SLOTS),
        sum(1 << (it - _SLOTS) for it in several if it >= _SLOTS),
    )


def _bits(locations: int) -> list[int]:
    return [number for number in range(64) if locations >> number & 1]
