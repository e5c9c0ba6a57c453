"""The fast and the slow memory of a board between which blocks move."""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.boards.facts import Link, Memory
from mcudeploy.ir.plan import Plan
from mcudeploy.ir.trace import MemoryLink
from mcudeploy.planner.cores.requirements import needs
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES, Budget


@dataclass(frozen=True, slots=True)
class MemoryPair:
    """A fast and a slow memory, and the link between them; without a link the core copies.

    `room`: the bytes for an arena in the fast memory. `fast_bytes`: in all fast memories of the board.
    """

    fast: Memory
    slow: Memory
    link: Link | None
    room: int
    fast_bytes: int

    @classmethod
    def of(cls, board: Board) -> MemoryPair | None:
        """Return the board's first memory without waits that may contain inputs, and the best one with waits.

        None if the board does not have both.
        """
        fast = [it for it in board.memories if it.is_fast]
        first = next((it for it in fast if it.name in board.border_memories), None)
        slow = [it for it in board.memories if not it.is_fast and board.room(it)]
        if first is None or not slow:
            return None
        best = min(slow, key=lambda it: it.read_cost + it.write_cost)
        link = next((it for it in board.links if {first.name, best.name} <= set(it.memories)), None)
        room = board.room(first) // ARENA_GRAIN_BYTES * ARENA_GRAIN_BYTES
        return cls(first, best, link, room, sum(map(board.room, fast)))

    @classmethod
    def serving(cls, plan: Plan, board: Board) -> MemoryPair | None:
        """Return the pair of a board if everything of a plan may lie in either memory; else None."""
        pair, wanted = cls.of(board), needs(plan.graph, board, plan.functions)
        every = (*wanted.tensors.values(), *wanted.work.values())
        if pair is None or not all({pair.fast.name, pair.slow.name} <= set(need.memories) for need in every):
            return None
        return pair

    def engine(self, budget: Budget) -> MemoryLink:
        """Return the times of transfers."""
        if self.link is not None:
            own = 1 / self.link.bytes_per_cycle if self.link.bytes_per_cycle else 0.0
            rates = [1 / max(own, cost) for cost in (self.slow.read_cost, self.slow.write_cost)]
            return MemoryLink(rates[0], rates[1], self.link.setup_cycles + self.slow.latency_cycles)
        price = budget.price
        rates = [1 / (cost + price.byte) for cost in (self.slow.read_cost, self.slow.write_cost)]
        return MemoryLink(rates[0], rates[1], price.move + price.piece, overlapped=False)
