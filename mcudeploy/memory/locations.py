"""Where blocks lie as the tape goes on, and which table of offsets has that, read from their residences."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Residences
from mcudeploy.memory.blocks import BlockId


class Locations:
    """The places of the blocks of tensors that own memory, or of the scratch of operators.

    Version 0 of a tensor has the first place of each of its blocks; each residence at another place than the
    one before makes another version. Times are steps of the schedule, before which all that begins with them
    has its place.
    """

    def __init__(self, residences: Mapping[str, Residences]) -> None:
        self._residences = residences
        self._changes: dict[str, list[tuple[int, int, int]]] = {}
        self._versions_of: dict[BlockId, list[int]] = {}
        for name, blocks in residences.items():
            changes = sorted(
                (each.life.lo, number, at, each.offset)
                for number, block in enumerate(blocks)
                for at, each in enumerate(block)
                if at and each.offset != block[at - 1].offset
            )
            if changes:
                self._changes[name] = [(time, number, offset) for time, number, _, offset in changes]
            for version, (_, number, _, _) in enumerate(changes, 1):
                self._versions_of.setdefault((name, number), []).append(version)

    def changes(self, name: str) -> int:
        """How often a block of a tensor comes to lie elsewhere."""
        return len(self._changes.get(name, ()))

    def offset(self, block_id: BlockId, time: int) -> int:
        """The offset of a block in a step. Before its first life: the one that it will have; after a life:
        the one that it had.
        """
        name, block = block_id
        begun = bisect_right(self._residences[name][block], time, key=lambda each: each.life.lo)
        return self._residences[name][block][max(begun - 1, 0)].offset

    def version(self, name: str, time: int) -> int:
        """The version of a tensor that holds in a step."""
        return bisect_right(self._changes.get(name, []), time, key=lambda change: change[0])

    def unmoved(self, block_id: BlockId, version: int) -> Interval:
        """The versions of its tensor, among them this one, that have a block in one place."""
        changes = self._versions_of.get(block_id, [])
        at = bisect_right(changes, version)
        ends = [0, *changes, self.changes(block_id[0]) + 1]
        return Interval(ends[at], ends[at + 1])

    def offsets(self, name: str, version: int) -> tuple[int, ...]:
        """The places of all blocks of a tensor in one of its versions; 0 for a block that has none."""
        offsets = [block[0].offset if block else 0 for block in self._residences[name]]
        for _, number, offset in self._changes.get(name, [])[:version]:
            offsets[number] = offset
        return tuple(offsets)
