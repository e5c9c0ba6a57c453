"""The fast and the slow memory of a board between which blocks move."""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.boards.facts import Link, Memory
from mcudeploy.ir.plan import Plan
from mcudeploy.ir.trace import MemoryLink
from mcudeploy.planner.cores.requirements import needs
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES, Budget
from mcudeploy.tiling.dataflow import Dataflow


@dataclass(frozen=True, slots=True)
class MemoryPair:
    """A fast and a slow memory, and the link between them; without a link the core copies.

    `room`: the bytes for an arena in the fast memory. `fast_bytes`: in all fast memories of the board.
    `takes_io`: inputs and outputs may lie in the fast memory.
    """

    fast: Memory
    slow: Memory
    link: Link | None
    room: int
    fast_bytes: int
    takes_io: bool = True

    @classmethod
    def of(cls, board: Board) -> MemoryPair | None:
        """Return the board's first memory without waits, and the best one with waits.

        The first one is for inputs and outputs if possible, else the second one is. None if the board does
        not have both.
        """
        ios = board.io_memories
        fast = [it for it in board.memories if it.is_fast]
        first = next((it for it in fast if it.name in ios), next(iter(fast), None))
        slow = [it for it in board.memories if not it.is_fast and board.room(it)]
        if first is not None and first.name not in ios:
            slow = [it for it in slow if it.name in ios]
        if first is None or not slow:
            return None
        best = min(slow, key=lambda it: it.read_cost + it.write_cost)
        link = next((it for it in board.links if {first.name, best.name} <= set(it.memories)), None)
        room = board.room(first) // ARENA_GRAIN_BYTES * ARENA_GRAIN_BYTES
        return cls(first, best, link, room, sum(map(board.room, fast)), first.name in ios)

    @classmethod
    def serving(cls, plan: Plan, board: Board) -> MemoryPair | None:
        """Return the pair of a board if everything of a plan may lie in either memory; else None.

        Only inputs and outputs may be restricted to the slow one.
        """
        pair, wanted = cls.of(board), needs(plan.graph, board, plan.functions)
        if pair is None:
            return None
        roots = Dataflow.of(plan.graph).roots
        ios = (*plan.graph.resident_inputs(), *plan.graph.own_outputs())
        slow_alone = set[str]() if pair.takes_io else {roots[it.tensor] for it in ios}
        either = {pair.fast.name, pair.slow.name}
        needed = [
            ({pair.slow.name} if name in slow_alone else either, it) for name, it in wanted.tensors.items()
        ]
        needed += [(either, it) for it in wanted.work.values()]
        return pair if all(names <= set(need.memories) for names, need in needed) else None

    def engine(self, budget: Budget) -> MemoryLink:
        """Return the times of transfers."""
        if self.link is not None:
            own = 1 / self.link.bytes_per_cycle if self.link.bytes_per_cycle else 0.0
            rates = [1 / max(own, cost) for cost in (self.slow.read_cost, self.slow.write_cost)]
            return MemoryLink(rates[0], rates[1], self.link.setup_cycles + self.slow.latency_cycles)
        price = budget.price
        rates = [1 / (cost + price.byte) for cost in (self.slow.read_cost, self.slow.write_cost)]
        return MemoryLink(rates[0], rates[1], price.move + price.piece, overlapped=False)
