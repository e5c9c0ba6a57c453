"""Command streams of a unit beside the core, each of consecutive entries of the tape, as C stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import ArrayPointer, CallTable, ConstantArray, KernelCall, ParamValue

CONSTANTS = "unit_constants"
"""The name of the array of all constants of streams."""
_POINTER = "constants"
"""The parameter of a unit's kernels that names its constants."""


@dataclass(frozen=True, slots=True)
class UnitStream:
    """The stream of some entries of the tape: its words, and the operations of the unit in it."""

    entries: Interval
    words: tuple[int, ...]
    operations: int


@dataclass(frozen=True, eq=False)
class UnitStreams:
    """The streams of a plan in the order of its tape.

    `constants`: those of all operations, which are region 0. `places`: the first word of the constants of an
    operator, by their content. The arena in each of `memories` is the region of `regions` in the same place.
    """

    streams: tuple[UnitStream, ...]
    constants: NDArray[np.uint32]
    places: Mapping[bytes, int]
    memories: tuple[str, ...]
    regions: tuple[int, ...]

    @cached_property
    def begins(self) -> tuple[int, ...]:
        """The word at which each stream begins in the table, and the end of the last one."""
        ends = np.cumsum([0, *(len(it.words) for it in self.streams)])
        return tuple(map(int, ends))

    @property
    def table_bytes(self) -> int:
        """The bytes of all words and of their begins."""
        return 4 * (self.begins[-1] + len(self.begins))

    @cached_property
    def entries(self) -> frozenset[int]:
        """The entries of the tape that streams compute."""
        return frozenset(at for it in self.streams for at in range(it.entries.lo, it.entries.hi))

    def items(self, count: int) -> list[int | UnitStream]:
        """Return what replaces the `count` entries of the tape: the number of an entry, or a stream."""
        firsts = {it.entries.lo: it for it in self.streams}
        return [firsts.get(at, at) for at in range(count) if at in firsts or at not in self.entries]

    def steps_of(self, count: int) -> list[int]:
        """Return which of the `items` contains each entry, and at last their number."""
        items = self.items(count)
        sizes = [1 if isinstance(it, int) else len(it.entries) for it in items]
        return [*(step for step, size in enumerate(sizes) for _ in range(size)), len(items)]

    def pointing(self, calls: Mapping[str, KernelCall]) -> dict[str, KernelCall]:
        """Return calls whose constants are a part of those of all streams, so that flash has them once."""
        return {name: self._pointing(call) for name, call in calls.items()}

    def _pointing(self, call: KernelCall) -> KernelCall:
        def changed(name: str, value: ParamValue) -> ParamValue:
            if isinstance(value, CallTable):
                return CallTable(tuple(map(self._pointing, value.calls)))
            if call.isa.unit and name == _POINTER and isinstance(value, np.ndarray):
                first = self.places.get(value.tobytes())
                return value if first is None else ArrayPointer(self.constants, first, CONSTANTS)
            return value

        return replace(call, params={name: changed(name, value) for name, value in call.params.items()})


def joined_constants(arrays: Sequence[ConstantArray]) -> tuple[NDArray[np.uint32], dict[bytes, int]]:
    """Return all arrays in one, and the first word of each by its content.

    Equal arrays are there once. Each begins at a multiple of 16 bytes.
    """
    words: list[NDArray[np.uint32]] = []
    places: dict[bytes, int] = {}
    at = 0
    for array in arrays:
        content = array.tobytes()
        if content in places:
            continue
        places[content] = at
        padded = content + bytes(-len(content) % 16)
        words.append(np.frombuffer(padded, np.uint32))
        at += len(words[-1])
    return np.concatenate(words) if words else np.zeros(4, np.uint32), places
