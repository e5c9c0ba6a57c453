"""The stalls that slow memories cause: accesses by the core, copies by the core, and waits for engines.

Modelled: one tick of a step's time is one clock of the core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.boards.facts import Memory
from mcudeploy.cost.tiles import CopyCost
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.plan import Plan, Run, Stalls, Transfer
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes
from mcudeploy.tiling.traffic import accesses


@dataclass(frozen=True, slots=True)
class Pace:
    """The ticks of every step of a schedule, and the cost of copies."""

    steps: Sequence[float]
    price: CopyCost


def stalls(plan: Plan, tiled: TiledGraph, board: Board, work: WorkBytes, pace: Pace | None = None) -> Stalls:
    """Return the stalls of a plan on a board.

    Without a pace, engines work only while the core waits for them.
    """
    memories = {memory.name: memory for memory in board.memories}
    slow = [name for name in plan.layout.arenas if not memories[name].is_fast]
    if not slow:
        return Stalls()
    direct = [0.0] * max(len(plan.schedule.steps), 1)
    for access in accesses(tiled, plan.schedule.steps, work, plan.layout):
        memory = memories[access.memory]
        direct[access.time] += access.read_bytes * memory.read_cost
        direct[access.time] += access.written_bytes * memory.write_cost
    return _TapeClock(plan, tiled, board, memories).run(direct, pace)


class _TapeClock:
    """A simulation of the tape on the core and its engines."""

    def __init__(self, plan: Plan, tiled: TiledGraph, board: Board, memories: Mapping[str, Memory]) -> None:
        self._plan, self._tiled, self._memories = plan, tiled, memories
        self._links = {link.engine: link for link in board.links}
        self._now = self._copies = self._waits = 0.0
        self._done: list[float] = []
        self._free = dict.fromkeys(self._links, 0.0)

    def run(self, direct: Sequence[float], pace: Pace | None) -> Stalls:
        """Return the stalls of the tape, given each step's stalls for its direct accesses."""
        time = 0
        for entry in self._plan.tape:
            if isinstance(entry, Run):
                self._now += direct[time] + (pace.steps[time] if pace else 0.0)
                time += 1
            elif isinstance(entry, Transfer):
                self._transfer(entry, pace)
            else:
                late = max(0.0, self._done[entry.transfer] - self._now)
                self._waits += late
                self._now += late
        return Stalls(sum(direct), self._copies, self._waits)

    def _transfer(self, transfer: Transfer, pace: Pace | None) -> None:
        old, new = self._plan.layout.way(transfer)
        origin, to = self._memories[old.memory], self._memories[new.memory]
        size = self._tiled.block_bytes(transfer.tensor, transfer.block)
        if transfer.engine == CPU:
            stall = size * (origin.read_cost + to.write_cost)
            self._copies += stall
            distance = abs(new.offset - old.offset) if origin == to else size
            self._now += stall + (pace.price.ticks(size, distance) if pace else 0.0)
            self._done.append(self._now)
        else:
            begin = max(self._now, self._free[transfer.engine])
            end = begin + self._links[transfer.engine].cycles(size, origin, to)
            self._free[transfer.engine] = end
            self._done.append(end)
