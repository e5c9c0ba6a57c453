"""Plans whose blocks reside elsewhere, or move: changed by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mcudeploy.boards.board import Board
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Layout, Plan, Residence, Residences, Schedule, Transfer
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.tiling.blocks import BlockId, TiledGraph
from mcudeploy.tiling.live import WorkBytes, lives


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
    """The schedule with steps that make these blocks once more, each before its last reader."""
    steps = schedule.steps
    for name, block in blocks:
        last = lives(tiled, steps).end[tiled.first_block[name] + block] - 1
        producers = {tiled.written(step.operator, step.block): step for step in steps}
        steps = (*steps[:last], producers[tiled.first_block[name] + block], *steps[last:])
    return Schedule(steps, "feasible")


def elsewhere(plan: Plan, name: str, block: int, life: int, offset: int, **arenas: int) -> Plan:
    """The plan with one residence of a block at another offset; `arenas`: other sizes."""
    residences = [list(each) for each in plan.layout.blocks[name]]
    residences[block][life] = replace(residences[block][life], offset=offset)
    blocks = {**plan.layout.blocks, name: tuple(map(tuple, residences))}
    return replace(plan, layout=replace(plan.layout, blocks=blocks, arenas=arenas or plan.layout.arenas))


def moving(plan: Plan, *moves: Move, **arenas: int) -> Plan:
    """The plan with these moves, by time; `arenas`: other sizes. What is dead by then lives longer."""
    blocks = {name: [list(block) for block in residences] for name, residences in plan.layout.blocks.items()}
    transfers = list(plan.layout.transfers)
    for move in moves:
        residences = blocks[move.tensor][move.block]
        at = max((at for at, each in enumerate(residences) if each.life.lo <= move.before), default=0)
        life, memory = residences[at].life, residences[at].memory
        residences[at] = replace(residences[at], life=Interval(life.lo, move.before))
        after = Interval(move.before, max(move.before, life.hi))
        residences.insert(at + 1, Residence(after, memory, move.offset))
        transfers.append(Transfer(CPU, move.tensor, move.block, at, at + 1, move.before))
    layout = replace(
        plan.layout,
        blocks={name: tuple(map(tuple, residences)) for name, residences in blocks.items()},
        transfers=tuple(transfers),
        arenas=arenas or plan.layout.arenas,
    )
    return replace(plan, layout=layout)


def with_arenas(plan: Plan, layout: Layout, work: WorkBytes, board: Board) -> Plan:
    """The plan in a layout whose arenas are as large as what lies in them."""
    tiled = TiledGraph.of(plan)
    ends: dict[str, int] = {}
    for place, size in places_of(layout, tiled, work):
        ends[place.memory] = max(ends.get(place.memory, 0), place.offset + size)
    arenas = {it.name: align_up(ends[it.name], ARENA_GRAIN_BYTES) for it in board.memories if it.name in ends}
    return replace(plan, layout=replace(layout, arenas=arenas))


def places_of(layout: Layout, tiled: TiledGraph, work: WorkBytes) -> Iterator[tuple[Residence, int]]:
    """All residences, and their bytes."""
    for name, blocks in layout.blocks.items():
        for number, block in enumerate(blocks):
            size = tiled.block_bytes(name, number)
            yield from ((place, size) for place in block)
    for name, steps in layout.scratch.items():
        yield from ((place, sum(work[name])) for step in steps for place in step)


def inserted(layout: Layout, transfer: Transfer, stay: Residence, turn: float = 1.0) -> tuple[Layout, int]:
    """The layout with one more residence of a block, filled by a transfer (its `to` is found here), and its
    number; `turn`, from 0 to 1: when among the transfers that begin with the same step.
    """
    name, number = transfer.tensor, transfer.block
    block = layout.blocks[name][number]
    to = max(sum(each.life.lo <= stay.life.lo for each in block), transfer.source + 1)
    transfers = [
        replace(each, source=each.source + (each.source >= to), to=each.to + (each.to >= to))
        if (each.tensor, each.block) == (name, number)
        else each
        for each in layout.transfers
    ]
    layout = with_block(layout, (name, number), (*block[:to], stay, *block[to:]))
    layout = replace(layout, transfers=tuple(transfers))
    before = sum(layout.begin(each) < stay.life.lo for each in transfers)
    with_it = sum(layout.begin(each) == stay.life.lo for each in transfers)
    transfers.insert(before + round(turn * with_it), replace(transfer, to=to))
    return replace(layout, transfers=tuple(transfers)), to


def with_block(layout: Layout, block_id: BlockId, residences: tuple[Residence, ...]) -> Layout:
    """The layout with these residences of a block."""
    name, number = block_id
    blocks = layout.blocks[name]
    changed = (*blocks[:number], residences, *blocks[number + 1 :])
    return replace(layout, blocks={**layout.blocks, name: changed})


def with_life(layout: Layout, block_id: BlockId, at: int, life: Interval) -> Layout:
    """The layout with another life of one residence of a block."""
    block = layout.blocks[block_id[0]][block_id[1]]
    return with_block(layout, block_id, (*block[:at], replace(block[at], life=life), *block[at + 1 :]))
