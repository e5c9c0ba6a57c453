"""Where blocks lie as the tape goes on, and which table of offsets has that, read from their residences."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Layout, Residence, Residences, Transfer, memories_of
from mcudeploy.tiling.blocks import BlockId


class BlockTable(NamedTuple):
    """The blocks of a tensor that owns memory, or the scratch of an operator, as far as a memory has them."""

    name: str
    memory: str


class Locations:
    """The places of the blocks of tensors that own memory, or of the scratch of operators.

    Version 0 of a table has the first place of each block in its memory; each residence at another place than
    the one before makes another version. Times are steps of the schedule, before which all that begins with
    them has its place.
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
        self._in: dict[str, tuple[str, ...]] = {}
        for name, blocks in residences.items():
            self._in[name] = memories_of(blocks)
            for memory in self._in[name]:
                self._take_in(BlockTable(name, memory), blocks)

    @classmethod
    def of(cls, layout: Layout) -> Locations:
        """Those of the tensors of a layout."""
        return cls(layout.blocks, layout.transfers, layout.arenas)

    def _take_in(self, table: BlockTable, blocks: Residences) -> None:
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
        """Those that blocks of a tensor are in at any time."""
        return self._in[name]

    def made(self, block_id: BlockId, time: int) -> Residence:
        """Where a step makes a block: of the residences of the time that no transfer fills the latest, or
        where there is none, where the block is read. Before all steps: where the application makes it.
        """
        name, block = block_id
        found = self._residences[name][block]
        own = [each for at, each in enumerate(found) if (name, block, at) not in self._ends]
        here = [each for each in own if time in each.life]
        ready = (self._there(name, block, memory, time) for memory in self._memories)
        here += [] if here else [each for each in ready if each is not None][:1]
        return here[-1] if here else own[0] if own else found[0]

    def read(self, name: str, blocks: Collection[int], time: int) -> str:
        """The memory in which a step reads blocks of a tensor: the first one that has all of them."""
        if len(self._in[name]) == 1:
            return self._in[name][0]
        for memory in self._memories:
            if all(self._there(name, block, memory, time) is not None for block in blocks):
                return memory
        return self._in[name][0]  # in no plan that the judge lets pass

    def _there(self, name: str, block: int, memory: str, time: int) -> Residence | None:
        """The residence of a block in a memory, if it can be read there in a step."""
        for at, each in enumerate(self._residences[name][block]):
            ready = self._ends.get((name, block, at), each.life.lo)
            if each.memory == memory and ready <= time < each.life.hi:
                return each
        return None

    def offset(self, table: BlockTable, block: int, time: int) -> int:
        """The offset of a block in a step. Before its first life: the one that it will have; after a life:
        the one that it had.
        """
        stays = [each for each in self._residences[table.name][block] if each.memory == table.memory]
        begun = bisect_right(stays, time, key=lambda each: each.life.lo)
        return stays[max(begun - 1, 0)].offset

    def changes(self, table: BlockTable) -> int:
        """How often a block comes to lie elsewhere in the memory."""
        return len(self._changes.get(table, ()))

    def version(self, table: BlockTable, time: int) -> int:
        """The version of a table that holds in a step."""
        return bisect_right(self._changes.get(table, []), time, key=lambda change: change[0])

    def unmoved(self, table: BlockTable, block: int, version: int) -> Interval:
        """The versions of a table, among them this one, that have a block in one place."""
        changes = self._versions_of.get((table, block), [])
        at = bisect_right(changes, version)
        ends = [0, *changes, self.changes(table) + 1]
        return Interval(ends[at], ends[at + 1])

    def offsets(self, table: BlockTable, version: int) -> tuple[int, ...]:
        """The places of all blocks in one version of a table; 0 for a block that has none."""
        offsets = [
            next((each.offset for each in block if each.memory == table.memory), 0)
            for block in self._residences[table.name]
        ]
        for _, number, offset in self._changes.get(table, [])[:version]:
            offsets[number] = offset
        return tuple(offsets)
