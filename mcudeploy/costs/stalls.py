"""The stalls that slow memories cause: accesses by the core, copies by the core, and waits for engines.

Modelled: one tick of a step's time is one clock of the core.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.boards.facts import Link, Memory
from mcudeploy.costs.tiles import FREE, CopyCost
from mcudeploy.costs.timeline import Clock
from mcudeploy.ir.engine import CPU, FLASH
from mcudeploy.ir.plan import Layout, Pieces, Stalls, Step, Wait, sequence
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.traffic import Access


@dataclass(frozen=True, slots=True)
class Pace:
    """The basis of a latency: a board, the `ticks` of a plan and of its `steps` without stalls, and the
    `price` of copies.

    Without `steps`, engines work only while the core waits for them.
    """

    board: Board
    ticks: float = 0.0
    steps: Sequence[float] = ()
    price: CopyCost = FREE


def stalls(
    tiled: TiledGraph, steps: Sequence[Step], layout: Layout, used: Iterable[Access], pace: Pace
) -> Stalls:
    """Return the stalls of steps with these accesses, in a layout."""
    memories = {memory.name: memory for memory in (*pace.board.memories, pace.board.flash_memory)}
    if all(memories[name].is_fast for name in layout.arenas) and not layout.constants:
        return Stalls()
    direct = [0.0] * max(len(steps), 1)
    ios, forced = _slow_ios(tiled, pace.board), 0.0
    for access in used:
        memory = memories[access.memory]
        stall = access.read_bytes * memory.read_cost + access.written_bytes * memory.write_cost
        direct[access.time] += stall
        forced += stall if access.tensor in ios else 0.0
    core, engines = Clock(), {link.engine: (link, Clock()) for link in pace.board.links}
    ends: list[float] = []
    time, copies, waits = 0, 0.0, 0.0
    for entry in sequence(steps, layout):
        if isinstance(entry, Step):
            ticks = direct[time] + (pace.steps[time] if pace.steps else 0.0)
            loaded = layout.constants.get(tiled.graph.operators[entry.operator].name)
            if loaded is not None and loaded.pieces is not None:
                link, engine = engines[loaded.pieces.engine]
                load = piece_ticks(loaded.pieces, link, memories[FLASH], memories[loaded.place.memory])
                waits += run_in_pieces(core, engine, loaded.pieces.count, load, ticks)
            else:
                core.run(ticks)
            time += 1
        elif isinstance(entry, Wait):
            waits += core.wait(ends[entry.transfer])
        else:
            old, new = layout.way(entry)
            source, target = memories[old.memory], memories[new.memory]
            size = tiled.moved_bytes(layout, entry)
            if entry.engine == CPU:
                stall = size * (source.read_cost + target.write_cost)
                copies += stall
                distance = abs(new.offset - old.offset) if source == target else size
                ends.append(core.run(stall + pace.price.ticks(size, distance)))
            else:
                link, engine = engines[entry.engine]
                ends.append(engine.run(link.cycles(size, source, target), issued=core.now))
    return Stalls(sum(direct), copies, waits, forced)


def piece_ticks(pieces: Pieces, link: Link, flash: Memory, arena: Memory) -> float:
    """Return the ticks of the engine for a piece of average size."""
    starts = (pieces.arrays - 1) * link.cycles(0, flash, arena)
    return starts + link.cycles(-(-pieces.total_bytes // pieces.count), flash, arena)


def run_in_pieces(core: Clock, engine: Clock, pieces: int, load: float, ticks: float) -> float:
    """Advance both clocks by a step whose constants come in pieces; return the ticks that the core waits.

    `load`: ticks of the engine for a piece; `ticks`: those of the core for the step.
    """
    waits, end = 0.0, engine.run(load, issued=core.now)
    for piece in range(pieces):
        following = engine.run(load, issued=core.now) if piece + 1 < pieces else end
        waits += core.wait(end)
        core.run(ticks / pieces)
        end = following
    return waits


def _slow_ios(tiled: TiledGraph, board: Board) -> set[str]:
    """Return the tensors of inputs and outputs, if no fast memory may contain them."""
    fast = any(memory.is_fast and memory.name in board.io_memories for memory in board.memories)
    ios = () if fast else (*tiled.graph.resident_inputs(), *tiled.graph.own_outputs())
    return {tiled.flow.roots[io.tensor] for io in ios}
