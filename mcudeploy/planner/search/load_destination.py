"""The memory that takes constants from flash, the engine between them, and the bytes that it has for them."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from mcudeploy.boards.board import Board
from mcudeploy.boards.facts import Link, Memory
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.ir.engine import CPU, FLASH
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES


@dataclass(frozen=True, slots=True)
class Destination:
    """The memory whose arena takes constants, flash, and the engine between them; None: the core copies."""

    memory: Memory
    flash: Memory
    link: Link | None
    alignment: int

    @property
    def engine(self) -> str:
        return CPU if self.link is None else self.link.engine

    def copy_ticks(self, size_bytes: int, price: CopyCost) -> float:
        """Return the time of a transfer on its engine."""
        if self.link is None:
            return size_bytes * (self.flash.read_cost + self.memory.write_cost) + price.ticks(
                size_bytes, size_bytes
            )
        return self.link.cycles(size_bytes, self.flash, self.memory)


def destination(plan: Plan, board: Board, *, by_core: bool) -> Destination | None:
    """Return the fastest memory with an arena that an engine joins to flash.

    `by_core`: if no engine does, the core copies, to the fastest memory of all. None if no such memory is
    faster than flash.
    """
    arenas = [board.memory(name) for name, size in plan.layout.arenas.items() if size]
    ranked = sorted((it for it in arenas if it.read_cost < board.flash.read_cost), key=lambda it: it.cost)
    links = {
        it.name: link
        for link in board.links
        if FLASH in link.memories
        for it in ranked
        if it.name in link.memories
    }
    joined = next((it for it in ranked if it.name in links), None)
    memory = joined or (next(iter(ranked), None) if by_core else None)
    if memory is None:
        return None
    link = links.get(memory.name)
    line = 1 if link is None else board.cache_line_of(memory.name)
    return Destination(memory, board.flash_memory, link, lcm(memory.alignment, ARENA_GRAIN_BYTES, line))


def capacity(plan: Plan, board: Board, target: Destination, ram_limit: int | None) -> int:
    """Return the bytes that the arena may have."""
    own = plan.layout.arenas[target.memory.name]
    if ram_limit is None:
        return own
    free = board.reserving(plan.parameters.ram_bytes).room(target.memory)
    return max(
        own, min(free, ram_limit - plan.layout.arena_bytes + own) // ARENA_GRAIN_BYTES * ARENA_GRAIN_BYTES
    )
