"""Plans whose blocks reside elsewhere, or move: changed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import CPU, Plan, Residence, Residences, Schedule, Transfer
from mcudeploy.memory.blocks import BlockId, TiledGraph
from mcudeploy.memory.live import lives


@dataclass(frozen=True, slots=True)
class Move:
    """Before a step the bytes of a block go to an offset."""

    before: int
    tensor: str
    block: int
    offset: int


def offsets_of(plan: Plan, tensor: str) -> tuple[int, ...]:
    """Where the blocks of a tensor reside at first."""
    return tuple(block[0].offset for block in plan.layout.blocks[tensor])


def at_offsets(residences: Residences, *offsets: int) -> Residences:
    """Residences at these offsets, one for each block."""
    return tuple(
        tuple(replace(each, offset=offset) for each in block)
        for block, offset in zip(residences, offsets, strict=True)
    )


def lying(plan: Plan, places: Mapping[str, tuple[int, ...]], **arenas: int) -> Plan:
    """The plan with all blocks of these tensors elsewhere; `arenas`: other sizes."""
    moved = {name: at_offsets(plan.layout.blocks[name], *offsets) for name, offsets in places.items()}
    layout = replace(plan.layout, blocks={**plan.layout.blocks, **moved})
    return replace(plan, layout=replace(layout, arenas=arenas or layout.arenas))


def repeating(tiled: TiledGraph, schedule: Schedule, *blocks: BlockId) -> Schedule:
    """The schedule with steps that make these blocks once more, each in front of its last reader."""
    steps = schedule.steps
    for name, block in blocks:
        last = lives(tiled, steps).end[tiled.first_block[name] + block] - 1
        made = {tiled.written(step.operator, step.block): step for step in steps}
        steps = (*steps[:last], made[tiled.first_block[name] + block], *steps[last:])
    return Schedule(steps, "feasible")


def elsewhere(plan: Plan, name: str, block: int, life: int, offset: int, **arenas: int) -> Plan:
    """The plan with one residence of a block at another offset; `arenas`: other sizes."""
    found = [list(each) for each in plan.layout.blocks[name]]
    found[block][life] = replace(found[block][life], offset=offset)
    blocks = {**plan.layout.blocks, name: tuple(map(tuple, found))}
    return replace(plan, layout=replace(plan.layout, blocks=blocks, arenas=arenas or plan.layout.arenas))


def moving(plan: Plan, *moves: Move, **arenas: int) -> Plan:
    """The plan with these moves, by time; `arenas`: other sizes. What is dead by then lives longer."""
    blocks = {name: [list(block) for block in found] for name, found in plan.layout.blocks.items()}
    transfers = list(plan.layout.transfers)
    for move in moves:
        found = blocks[move.tensor][move.block]
        at = max((at for at, each in enumerate(found) if each.life.lo <= move.before), default=0)
        life, memory = found[at].life, found[at].memory
        found[at] = replace(found[at], life=Interval(life.lo, move.before))
        after = Interval(move.before, max(move.before, life.hi))
        found.insert(at + 1, Residence(after, memory, move.offset))
        transfers.append(Transfer(CPU, move.tensor, move.block, at, at + 1, move.before))
    layout = replace(
        plan.layout,
        blocks={name: tuple(map(tuple, found)) for name, found in blocks.items()},
        transfers=tuple(transfers),
        arenas=arenas or plan.layout.arenas,
    )
    return replace(plan, layout=layout)
