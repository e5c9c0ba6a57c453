"""The way from a schedule to a layout: buffers, the memory and offset of each, residences and transfers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import lcm

from mcudeploy.boards.board import Board
from mcudeploy.costs.stalls import Pace, stalls
from mcudeploy.ir.opdef import UNIT_ALIGNMENT
from mcudeploy.ir.plan import Estimate, Function, Layout, Plan, Residence, Schedule, Step, memories_of
from mcudeploy.ir.rectangles import PlacementProblem, Rectangle
from mcudeploy.planner.cores.requirements import Need, Requirements, needs
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES, Budget
from mcudeploy.planner.place.assign import assign
from mcudeploy.planner.place.memory_assignment import ArenaMemory, MemoryAssignment, RectangleGroup
from mcudeploy.planner.place.residences import Draft, input_stacks, reside
from mcudeploy.planner.place.tagged import Tags, share
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import Buffer, WorkBytes, buffers, in_place_chances, peak
from mcudeploy.tiling.traffic import Traffic, accesses, traffic

Indices = tuple[int, ...]

Owner = tuple[str, bool]
"""A tensor that owns memory, or (True) an operator with scratch or state."""


def spread(  # noqa: PLR0917
    tiled: TiledGraph,
    schedule: Schedule,
    work: WorkBytes,
    board: Board,
    functions: Sequence[Function] = (),
    budget: Budget | None = None,
    tags: Tags | None = None,
) -> Layout:
    """Place everything in the memories of a board at the least access cost.

    If the cheapest memory has room for everything, all lies there, in the smallest arena found. The status is
    `optimal` if the arena equals the peak. Without a budget every block stays where it is written. All blocks
    of a tensor, and tensors that share a buffer, lie in one memory; so does the scratch of an operator. A
    graph input is contiguous, because the application fills it as an array. Blocks that do not fit get places
    too: an arena is then larger than the board's room. The status of a layout over several memories is
    `optimal` if no layout of this schedule costs less. With `tags`, tensors of one tag lie at one offset.
    Raises FitError if units reach no memory in common.
    """
    wanted = needs(tiled.graph, board, functions)
    items = buffers(tiled, schedule.steps, work, _apart(tiled, schedule.steps, wanted, tags))
    in_turn = _again(items) if tags is None else share(items, tags)
    problem = _problem(tiled, items, _alignments(items, wanted, in_turn), in_turn)
    groups = _groups(items, in_turn, wanted, traffic(tiled, schedule.steps, work))
    fixed = pinned(tiled, items, wanted, board, functions)
    assigned = assign(MemoryAssignment.of(problem, groups, _memories(board), fixed), budget)
    memories = [""] * len(items)
    for group, number in zip(groups, assigned.memories, strict=True):
        for index in group.rectangles:
            memories[index] = board.memories[number].name
    used = assigned.used_bytes
    arenas = {it.name: used[it.name] for it in board.memories if it.name in used} or {
        board.memories[0].name: 0
    }
    residences = [
        [Residence(item.life, memory, offset)]
        for item, memory, offset in zip(items, memories, assigned.offsets, strict=True)
    ]
    moves = [(step, (index, 0), offset) for step, index, offset in assigned.moves]
    layout = reside(Draft(tiled, schedule.steps, items, work), residences, arenas, moves)
    if used == assigned.bound_bytes if len(arenas) == 1 else assigned.fits and assigned.proven:
        layout = replace(layout, status="optimal")
    return layout


def placement_of(plan: Plan, work: WorkBytes, board: Board) -> tuple[tuple[Buffer, ...], PlacementProblem]:
    """Return the buffers of a plan, and their rectangles: those of `spread` for its steps and memories."""
    tiled, wanted = TiledGraph.of(plan), needs(plan.graph, board, plan.functions)
    items = laid_out_buffers(tiled, plan.schedule.steps, work, plan.layout)
    memory = lcm(*(board.memory(name).alignment for name in plan.layout.arenas))
    alignments = [lcm(memory, own) for own in _alignments(items, wanted, ())]
    return items, _problem(tiled, items, alignments, ())


def pinned(
    tiled: TiledGraph,
    items: Sequence[Buffer],
    wanted: Requirements,
    board: Board,
    functions: Sequence[Function],
) -> list[int]:
    """Return the buffers that do not move.

    These are scratch and state, buffers whose place the application knows, and some that other units access.
    The first unit moves blocks, so it must reach such a buffer and must not cache it.
    """
    ios = (*tiled.graph.resident_inputs(), *tiled.graph.outputs)
    stay = {tiled.flow.roots[io.tensor] for io in ios}
    first, reached = board.units[0], set(board.reach(board.units[0]))
    used = {first.name, *(function.unit for function in functions)}
    cached = any(board.unit(name).cached for name in used)
    for name, units in wanted.users.items():
        if set(units) != {first.name} and (cached or not reached.issuperset(wanted.tensors[name].memories)):
            stay.add(name)
    return [
        at for at, item in enumerate(items) if not item.members or any(it in stay for it, _ in item.members)
    ]


def base_alignments(plan: Plan, board: Board) -> dict[str, int]:
    """Return the alignment of each arena's address, so that aligned offsets imply aligned addresses.

    On a board with an NPU, arenas also have the alignment of its regions.
    """
    wanted = needs(plan.graph, board, plan.functions)
    grain = ARENA_GRAIN_BYTES if board.npu is None else UNIT_ALIGNMENT
    alignments = dict.fromkeys(plan.layout.arenas, grain)
    placed = ((plan.layout.blocks, wanted.tensors), (plan.layout.scratch, wanted.work))
    for residences, of in placed:
        for name, need in of.items():
            for memory in memories_of(residences.get(name, ())):
                memory_alignment = board.memory(memory).alignment
                alignments[memory] = lcm(alignments[memory], need.alignment, need.start, memory_alignment)
    return alignments


def laid_out_buffers(
    tiled: TiledGraph, steps: tuple[Step, ...], work: WorkBytes, layout: Layout
) -> tuple[Buffer, ...]:
    """Return the buffers of a layout: tensors in different memories do not take over from each other."""
    ids = tiled.block_ids()
    chances = {(ids[read][0], ids[written][0]) for _, read, written in in_place_chances(tiled, steps)}
    apart = {pair for pair in chances if len({memories_of(layout.blocks[name]) for name in pair}) > 1}
    return buffers(tiled, steps, work, apart)


def estimate(
    tiled: TiledGraph, steps: tuple[Step, ...], work: WorkBytes, layout: Layout, pace: Pace | None = None
) -> Estimate:
    """Return the figures of steps whose buffers lie in these memories; without `pace`, none of time."""
    peak_bytes, peak_step = peak(laid_out_buffers(tiled, steps, work, layout))
    by_memory = dict.fromkeys(layout.arenas, 0)
    used = list(accesses(tiled, steps, work, layout))
    for access in used:
        by_memory[access.memory] = by_memory.get(access.memory, 0) + access.read_bytes + access.written_bytes
    for transfer in layout.transfers:
        for place in layout.way(transfer):
            by_memory[place.memory] = by_memory.get(place.memory, 0) + tiled.moved_bytes(layout, transfer)
    times = (pace.ticks, stalls(tiled, steps, layout, used, pace)) if pace else ()
    return Estimate(peak_bytes, peak_step, by_memory, *times)


def _owners(item: Buffer) -> list[Owner]:
    if item.scratch_of is not None:
        return [(item.scratch_of[0], True)]
    return [(name, False) for name in dict.fromkeys(name for name, _ in item.members)]


def _need(wanted: Requirements, owner: Owner) -> Need:
    name, works = owner
    return wanted.work[name] if works else wanted.tensors[name]


def _memories(board: Board) -> list[ArenaMemory]:
    grain = ARENA_GRAIN_BYTES
    return [
        ArenaMemory(it.name, board.room(it) // grain * grain, it.cost, it.alignment) for it in board.memories
    ]


def _alignments(items: Sequence[Buffer], wanted: Requirements, in_turn: Sequence[Indices]) -> list[int]:
    """Return the alignment of each buffer's offset, in addition to that of its memory."""
    each = ([_need(wanted, owner).alignment for owner in _owners(item)] for item in items)
    starts = start_alignments(items, wanted)
    alignments = [lcm(*needed, starts.get(at, 1)) for at, needed in enumerate(each)]
    for group in in_turn:
        joint = lcm(*(alignments[at] for at in group))
        for at in group:
            alignments[at] = joint
    return alignments


def start_alignments(items: Sequence[Buffer], wanted: Requirements) -> dict[int, int]:
    """Return the alignment of buffers, by index, with the first block of an input, an output or a state."""
    starts = {name: need.start for name, need in wanted.tensors.items() if need.start > 1}
    return {
        at: lcm(*(starts[name] for name, block in item.members if block == 0 and name in starts))
        for at, item in enumerate(items)
        if any(block == 0 and name in starts for name, block in item.members)
    }


class _UnionFind:
    """Sets of owners that must lie in one memory, and the memories, by index, allowed for a whole set."""

    def __init__(self, wanted: Requirements) -> None:
        self._wanted, self._parent = wanted, dict[Owner, Owner]()
        self._memories: dict[Owner, tuple[int, ...]] = {}

    def find(self, owner: Owner) -> Owner:
        """Return the representative of an owner's set."""
        if owner not in self._parent:
            names = _need(self._wanted, owner).memories
            self._parent[owner] = owner
            self._memories[owner] = tuple(at for at, it in enumerate(self._wanted.memories) if it in names)
        while self._parent[owner] != owner:
            owner = self._parent[owner]
        return owner

    def memories(self, owner: Owner) -> tuple[int, ...]:
        """Return the memories allowed for an owner's set; never none."""
        return self._memories[self.find(owner)]

    def union(self, one: Owner, other: Owner) -> bool:
        """Unite two sets if a memory remains for both; return whether they are united."""
        first, second = self.find(one), self.find(other)
        common = tuple(it for it in self._memories[first] if it in self._memories[second])
        if common:
            self._parent[second], self._memories[first] = first, common
        return bool(common)


def _apart(
    tiled: TiledGraph, steps: tuple[Step, ...], wanted: Requirements, tags: Tags | None
) -> frozenset[tuple[str, str]]:
    """Return pairs of tensors that no operator may join in place.

    Their sets need different memories, or they have different tags.
    """
    if tags is None and all(need.memories == wanted.memories for need in wanted.tensors.values()):
        return frozenset()
    ids, sets = tiled.block_ids(), _UnionFind(wanted)
    chances = dict.fromkeys(
        (ids[read][0], ids[written][0]) for _, read, written in in_place_chances(tiled, steps)
    )
    return frozenset(
        (one, other)
        for one, other in chances
        if (tags is not None and tags[one] != tags[other]) or not sets.union((one, False), (other, False))
    )


def _groups(
    items: Sequence[Buffer], in_turn: Sequence[Indices], wanted: Requirements, accessed: Traffic
) -> list[RectangleGroup]:
    """Return groups of buffers that lie in one memory.

    A group contains the buffers of a tensor and of tensors that share a buffer or place, or scratch of an
    operator.
    """
    sets = _UnionFind(wanted)
    indices: dict[Owner, list[int]] = {}
    for joint in ([items[index] for index in group] for group in in_turn):
        if not all(sets.union(_owners(joint[0])[0], _owners(item)[0]) for item in joint):
            raise ValueError(f"no memory for what shares a place with {_owners(joint[0])[0][0]}")
    for item in items:
        first, *others = _owners(item)
        if not all(sets.union(first, other) for other in others):
            raise ValueError(f"no memory for a buffer of {first[0]}, {', '.join(name for name, _ in others)}")
    counts: dict[Owner, int] = {}
    for owner in dict.fromkeys(owner for item in items for owner in _owners(item)):
        name, works = owner
        leader = sets.find(owner)
        counts[leader] = counts.get(leader, 0) + (accessed.work if works else accessed.tensors)[name]
    for index, item in enumerate(items):
        indices.setdefault(sets.find(_owners(item)[0]), []).append(index)
    return [RectangleGroup(tuple(of), sets.memories(one), counts[one]) for one, of in indices.items()]


def _again(items: Sequence[Buffer]) -> list[Indices]:
    """Return the buffers of each rematerialised block, by index."""
    indices: dict[object, list[int]] = {}
    for index, item in enumerate(items):
        indices.setdefault(item.key, []).append(index)
    return [tuple(lives) for lives in indices.values() if len(lives) > 1]


def _problem(
    tiled: TiledGraph, items: tuple[Buffer, ...], alignments: Sequence[int], in_turn: Sequence[Indices]
) -> PlacementProblem:
    """Return the rectangles of a plan, those of a group of `in_turn` at one offset.

    The rows of a graph input that is cut are a stack and die one by one.
    """
    rectangles = tuple(
        Rectangle(item.size_bytes, item.life, alignment)
        for item, alignment in zip(items, alignments, strict=True)
    )
    index_of = {item.members[0]: index for index, item in enumerate(items) if item.members and not item.stack}
    return PlacementProblem(rectangles, input_stacks(tiled, index_of), tuple(in_turn))
