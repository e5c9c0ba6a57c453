"""The places of blocks as the tape advances, and the row table that contains them, read from residences."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Layout, Residence, Residences, Transfer, memories_of
from mcudeploy.tiling.blocks import BlockId


class BlockTable(NamedTuple):
    """The blocks of a tensor that owns memory, or the scratch of an operator, that reside in one memory."""

    name: str
    memory: str


class Locations:
    """The places of the blocks of tensors that own memory, or of the scratch of operators.

    Version 0 of a table contains the first place of each block in its memory. Each residence at a different
    place creates another version. Times are steps of the schedule; a residence that begins with a step has
    its place before that step.
    """

    def __init__(
        self,
        residences: Mapping[str, Residences],
        transfers: Sequence[Transfer] = (),
        memories: Collection[str] = (),
    ) -> None:
        self._residences, self._memories = residences, tuple(memories)
        self._ends = {(each.tensor, each.block, each.to): each.end for each in transfers}
        self._changes: dict[BlockTable, list[tuple[int, int, int]]] = {}
        self._versions_of: dict[tuple[BlockTable, int], list[int]] = defaultdict(list)
        self._memories_of: dict[str, tuple[str, ...]] = {}
        for name, blocks in residences.items():
            self._memories_of[name] = memories_of(blocks)
            for memory in self._memories_of[name]:
                self._add_versions(BlockTable(name, memory), blocks)

    @classmethod
    def of(cls, layout: Layout) -> Locations:
        """Return the locations of the tensors of a layout."""
        return cls(layout.blocks, layout.transfers, layout.arenas)

    def _add_versions(self, table: BlockTable, blocks: Residences) -> None:
        changes: list[tuple[int, int, int, int]] = []
        for number, block in enumerate(blocks):
            stays = [each for each in block if each.memory == table.memory]
            changes += (
                (each.life.lo, number, at, each.offset)
                for at, each in enumerate(stays)
                if at and each.offset != stays[at - 1].offset
            )
        changes.sort()
        if changes:
            self._changes[table] = [(time, number, offset) for time, number, _, offset in changes]
        for version, (_, number, _, _) in enumerate(changes, 1):
            self._versions_of[table, number].append(version)

    def memories(self, name: str) -> tuple[str, ...]:
        """Return all memories in which blocks of a tensor ever reside."""
        return self._memories_of[name]

    def destination(self, block_id: BlockId, time: int) -> Residence:
        """Return the residence into which a step writes a block.

        This is the latest current residence that no transfer fills or, if there is none, the one that is
        read. Before all steps: the residence that the application writes.
        """
        name, block = block_id
        residences = self._residences[name][block]
        own = [each for at, each in enumerate(residences) if (name, block, at) not in self._ends]
        here = [each for each in own if time in each.life]
        ready = (self._readable(name, block, memory, time) for memory in self._memories)
        here += [] if here else [each for each in ready if each is not None][:1]
        return here[-1] if here else own[0] if own else residences[0]

    def read(self, name: str, blocks: Collection[int], time: int) -> str:
        """Return the memory from which a step reads blocks of a tensor: the first that contains them all.

        For no blocks it is one in which the tensor resides at some time.
        """
        if len(self._memories_of[name]) == 1 or not blocks:
            return self._memories_of[name][0]
        for memory in self._memories:
            if all(self._readable(name, block, memory, time) is not None for block in blocks):
                return memory
        return self._memories_of[name][0]  # unreachable for a plan that the checker accepts

    def _readable(self, name: str, block: int, memory: str, time: int) -> Residence | None:
        """Return the residence of a block in a memory if a step can read it there."""
        for at, each in enumerate(self._residences[name][block]):
            ready = self._ends.get((name, block, at), each.life.lo)
            if each.memory == memory and ready <= time < each.life.hi:
                return each
        return None

    def offset(self, table: BlockTable, block: int, time: int) -> int:
        """Return the offset of a block at a step: before its residences that of the first, between and after
        them that of the last one.
        """
        stays = [each for each in self._residences[table.name][block] if each.memory == table.memory]
        begun = bisect_right(stays, time, key=lambda each: each.life.lo)
        return stays[max(begun - 1, 0)].offset

    def changes(self, table: BlockTable) -> int:
        """Return the number of times that a block's place changes within the memory."""
        return len(self._changes.get(table, ()))

    def version(self, table: BlockTable, time: int) -> int:
        """Return the version of a table that is valid at a step."""
        return bisect_right(self._changes.get(table, []), time, key=lambda change: change[0])

    def unmoved(self, table: BlockTable, block: int, version: int) -> Interval:
        """Return the versions of a table, including this one, in which a block keeps its place."""
        changes = self._versions_of.get((table, block), [])
        at = bisect_right(changes, version)
        ends = [0, *changes, self.changes(table) + 1]
        return Interval(ends[at], ends[at + 1])

    def offsets(self, table: BlockTable, version: int) -> tuple[int, ...]:
        """Return the offsets of all blocks in one version of a table; 0 for a block without a place."""
        offsets = [
            next((each.offset for each in block if each.memory == table.memory), 0)
            for block in self._residences[table.name]
        ]
        for _, number, offset in self._changes.get(table, [])[:version]:
            offsets[number] = offset
        return tuple(offsets)
