"""Residences and transfers of a plan, from the places that its buffers got."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import CPU, Residence, Residences, Transfer
from mcudeploy.memory.blocks import BlockId, TiledGraph
from mcudeploy.memory.live import Buffer, Lives


@dataclass(frozen=True, slots=True)
class Places:
    """Of each buffer its memory and the offset that it is born at; and moves in order: step before which,
    buffer, new offset.
    """

    memories: Sequence[str]
    offsets: Sequence[int]
    moves: Sequence[tuple[int, int, int]]

    def of(self, items: Sequence[Buffer]) -> list[list[Residence]]:
        """The life of each buffer, cut where it moves."""
        found = [
            [Residence(item.life, memory, offset)]
            for item, memory, offset in zip(items, self.memories, self.offsets, strict=True)
        ]
        for step, index, offset in self.moves:
            last = found[index].pop()
            before, after = Interval(last.life.lo, step), Interval(step, last.life.hi)
            found[index] += [
                Residence(before, last.memory, last.offset),
                Residence(after, last.memory, offset),
            ]
        return found


@dataclass(frozen=True, slots=True)
class Resided:
    """The residences of tensors and of operators' scratch, and the transfers, as a layout has them."""

    blocks: dict[str, Residences]
    scratch: dict[str, Residences]
    transfers: tuple[Transfer, ...]


def reside(tiled: TiledGraph, lives: Lives, items: Sequence[Buffer], places: Places) -> Resided:
    """What resides where. A move takes along the block that lives then in its buffer; those that take over
    later are made where it has gone.
    """
    blocks: dict[BlockId, list[Residence]] = {block_id: [] for block_id in tiled.block_ids()}
    scratch: dict[str, dict[int, list[Residence]]] = {}
    moved: list[list[Transfer]] = [[] for _ in items]
    for item, stays, transfers in zip(items, places.of(items), moved, strict=True):
        if item.scratch_of is not None:
            name, block = item.scratch_of
            scratch.setdefault(name, {}).setdefault(block, []).extend(stays)
        distance = 0
        for name, block in item.members:
            for stay, arrives in _within(lives.of(tiled.first_block[name] + block), stays):
                found = blocks[name, block]
                if arrives:
                    transfers.append(Transfer(CPU, name, block, len(found)))
                found.append(Residence(stay.life, stay.memory, stay.offset + distance))
            distance += tiled.block_bytes(name, block) if item.stack else 0
    coming = [iter(each) for each in moved]
    counts = {name: tiled.block_count(name) for name in tiled.first_block}
    return Resided(
        {name: tuple(tuple(blocks[name, at]) for at in range(count)) for name, count in counts.items()},
        {name: _by_number(by_block) for name, by_block in scratch.items()},
        tuple(next(coming[index]) for _, index, _ in places.moves),
    )


def _within(spans: Iterable[Interval], stays: Sequence[Residence]) -> Iterator[tuple[Residence, bool]]:
    """The residences of a block that lives for these spans in a buffer, and whether it is moved there."""
    for span in spans:
        for at, stay in enumerate(stays):
            arrives = at > 0 and span.lo < stay.life.lo < span.hi
            life = stay.life.clip(span.lo, span.hi)
            if arrives or len(life) or len(span) == 0:
                yield Residence(life, stay.memory, stay.offset), arrives


def _by_number(stays: dict[int, list[Residence]]) -> Residences:
    """Residences as a table by block number; blocks that no step needs have none."""
    return tuple(tuple(stays.get(block, ())) for block in range(max(stays) + 1))
