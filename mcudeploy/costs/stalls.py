"""The stalls that slow memories cause: accesses by the core, copies by the core, and waits for engines.

Modelled: one tick of a step's time is one clock of the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.costs.timeline import Clock
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.plan import Plan, Run, Stalls, Wait
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
    ios, forced = _slow_ios(plan, tiled, board), 0.0
    for access in accesses(tiled, plan.schedule.steps, work, plan.layout):
        memory = memories[access.memory]
        stall = access.read_bytes * memory.read_cost + access.written_bytes * memory.write_cost
        direct[access.time] += stall
        forced += stall if access.tensor in ios else 0.0
    core, engines = Clock(), {link.engine: (link, Clock()) for link in board.links}
    ends: list[float] = []
    time, copies, waits = 0, 0.0, 0.0
    for entry in plan.tape:
        if isinstance(entry, Run):
            core.run(direct[time] + (pace.steps[time] if pace else 0.0))
            time += 1
        elif isinstance(entry, Wait):
            waits += core.wait(ends[entry.transfer])
        else:
            old, new = plan.layout.way(entry)
            source, target = memories[old.memory], memories[new.memory]
            size = tiled.block_bytes(entry.tensor, entry.block)
            if entry.engine == CPU:
                stall = size * (source.read_cost + target.write_cost)
                copies += stall
                distance = abs(new.offset - old.offset) if source == target else size
                ends.append(core.run(stall + (pace.price.ticks(size, distance) if pace else 0.0)))
            else:
                link, engine = engines[entry.engine]
                ends.append(engine.run(link.cycles(size, source, target), issued=core.now))
    return Stalls(sum(direct), copies, waits, forced)


def _slow_ios(plan: Plan, tiled: TiledGraph, board: Board) -> set[str]:
    """Return the tensors of inputs and outputs, if no fast memory may contain them."""
    if any(memory.is_fast and memory.name in board.io_memories for memory in board.memories):
        return set()
    ios = (*plan.graph.resident_inputs(), *plan.graph.own_outputs())
    return {tiled.flow.roots[io.tensor] for io in ios}
