"""Offloading: if a fast memory is too small, blocks leave it between two uses and return.

`plan_residency` decides the times from the access trace of the schedule; this module assigns memories and
offsets to the stays.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import lcm

from mcudeploy.boards.board import Board
from mcudeploy.boards.facts import Link, Memory
from mcudeploy.common.errors import FitError
from mcudeploy.cost.timeline import timeline
from mcudeploy.ir import trace as over
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Estimate, Layout, Plan
from mcudeploy.planner.cores.requirements import needs
from mcudeploy.planner.offload.access_trace import Draft, IoPlacement, trace_of
from mcudeploy.planner.offload.offload import plan_residency
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES, Budget, pack
from mcudeploy.planner.place.compaction import NEVER
from mcudeploy.planner.place.placement_problem import PlacementProblem, Rectangle
from mcudeploy.planner.place.residences import BufferStay, BufferTransfer, Places, reside
from mcudeploy.planner.place.solve import estimate, pinned
from mcudeploy.tiling.blocks import BlockId, TiledGraph
from mcudeploy.tiling.live import WorkBytes, buffers, lives

_TURNS = 6
"""Maximum number of reductions of the room if its stays do not pack."""

_SHARE = 0.5
"""The fraction of the remaining effort for the residency of one plan."""

_MUCH = 8
"""The divisor of the fast memory above which graph inputs or outputs first go to the slow memory."""

_UNITS = 1200
"""Effort of a layout per step, in addition to residency and moves."""


@dataclass(frozen=True, slots=True)
class MemoryPair:
    """A fast and a slow memory, and the link between them; without a link the core copies."""

    fast: Memory
    slow: Memory
    link: Link | None

    @classmethod
    def of(cls, board: Board) -> MemoryPair | None:
        """Return the board's first memory without waits that may contain inputs, and the best one with waits.

        None if the board does not have both.
        """
        fast = next((it for it in board.memories if it.is_fast and it.name in board.border_memories), None)
        slow = [it for it in board.memories if not it.is_fast and board.room(it)]
        if fast is None or not slow:
            return None
        best = min(slow, key=lambda it: it.read_cost + it.write_cost)
        joined = (it for it in board.links if {fast.name, best.name} <= set(it.memories))
        return cls(fast, best, next(joined, None))

    @classmethod
    def serving(cls, plan: Plan, board: Board) -> MemoryPair | None:
        """Return the pair of a board if everything of a plan may lie in either memory; else None."""
        pair, wanted = cls.of(board), needs(plan.graph, board, plan.functions)
        every = (*wanted.tensors.values(), *wanted.work.values())
        if pair is None or not all({pair.fast.name, pair.slow.name} <= set(need.memories) for need in every):
            return None
        return pair

    def engine(self, relocation: Budget) -> over.MemoryLink:
        """Return the times of transfers."""
        if self.link is not None:
            own = 1 / self.link.bytes_per_cycle if self.link.bytes_per_cycle else 0.0
            rates = [1 / max(own, cost) for cost in (self.slow.read_cost, self.slow.write_cost)]
            return over.MemoryLink(rates[0], rates[1], self.link.setup_cycles + self.slow.latency_cycles)
        price = relocation.price
        rates = [1 / (cost + price.byte) for cost in (self.slow.read_cost, self.slow.write_cost)]
        return over.MemoryLink(rates[0], rates[1], price.move + price.piece, overlapped=False)


def over_time(  # noqa: PLR0917
    tiled: TiledGraph,
    plan: Plan,
    work: WorkBytes,
    board: Board,
    relocation: Budget,
    cycles: Sequence[float],
) -> Iterator[tuple[Layout, Estimate]]:
    """Yield layouts of a plan in which blocks leave the fast memory and return.

    The steps take `cycles` each. There is at most one layout for each way to place graph inputs and outputs.
    Tensors that several units access stay in the fast memory. There is no layout if a unit does not reach
    both memories.
    """
    pair = MemoryPair.serving(plan, board)
    if pair is None:
        return
    scene, still = scene_of(tiled, plan, work, board)
    fast_bytes = sum(board.room(memory) for memory in board.memories if memory.is_fast)
    room = board.room(pair.fast) // ARENA_GRAIN_BYTES * ARENA_GRAIN_BYTES
    for homes in homes_tried(scene, still, fast_bytes):
        layout = _spread(scene, homes, pair, room, relocation, cycles)
        if layout is not None:
            yield layout, estimate(tiled, plan.schedule, work, layout)


def scene_of(tiled: TiledGraph, plan: Plan, work: WorkBytes, board: Board) -> tuple[Draft, list[int]]:
    """Return the schedule of a plan with its buffers, and the buffers, by index, that do not move."""
    wanted = needs(tiled.graph, board, plan.functions)
    items = buffers(tiled, plan.schedule.steps, work)
    alignment = lcm(*(need.alignment for need in (*wanted.tensors.values(), *wanted.work.values())))
    alignment = lcm(alignment, *(it.alignment for it in board.memories))
    scene = Draft(tiled, plan.schedule.steps, items, work, alignment)
    return scene, pinned(tiled, items, wanted, board, plan.functions)


def _spread(  # noqa: PLR0917
    scene: Draft, homes: IoPlacement, pair: MemoryPair, room: int, relocation: Budget, cycles: Sequence[float]
) -> Layout | None:
    """Return a layout in which buffers leave the fast memory and return; None if there is none.

    The fast memory has `room` bytes. The steps take `cycles` each, and exposed time is minimised. Scratch is
    in the fast memory.
    """
    (trace, buffer_of), link = trace_of(scene, homes, cycles), pair.engine(relocation)

    def laid_out(capacity: int) -> tuple[over.Residency, Layout] | None:
        relocation.effort.spend(_UNITS * len(scene.steps))
        effort = relocation.effort.part(_SHARE)
        found = plan_residency(trace, capacity, link, recompute=False, effort=effort)
        if found is None:
            return None
        found = prompt(found, link)
        return found, lay_out(scene, homes, pair, found, buffer_of, relocation, room)

    made = packed(laid_out, pair.fast.name, room)
    return made[1] if made else None


def packed(
    laid_out: Callable[[int], tuple[over.Residency, Layout] | None], fast: str, room: int
) -> tuple[over.Residency, Layout] | None:
    """Return a residency within a capacity, and its layout within the room of the fast memory.

    If that does not pack, the capacity is reduced. None if nothing is found.
    """
    capacity = room
    for _ in range(_TURNS):
        try:
            made = laid_out(capacity)
        except FitError:  # a single step
            return None
        if made is None:
            return None
        missing = made[1].arenas.get(fast, 0) - room
        if missing <= 0:
            return made
        capacity -= missing
    return None


def prompt(found: over.Residency, link: over.MemoryLink, slack: float = 0.0) -> over.Residency:
    """Return the residency with a wait for each transfer as soon as it should have ended.

    `slack` cycles are added to each end. Afterwards blocks may move again.
    """
    run = timeline(found, link)
    ends = (bisect_left(run.starts, end + slack) for _, end in run.served)
    passages = tuple(
        replace(one, end=max(one.start, min(one.end, end)))
        for one, end in zip(found.passages, ends, strict=True)
    )
    return replace(found, passages=passages)


def lay_out(  # noqa: PLR0917
    scene: Draft,
    homes: IoPlacement,
    pair: MemoryPair,
    found: over.Residency,
    buffer_of: Sequence[int],
    relocation: Budget,
    room: int,
) -> Layout:
    """Return stays with offsets in both memories; they may move in the fast one, the slow one has room."""
    stays, passages = _stays(scene, pair, found, buffer_of)
    taken = {stay.buffer for stay in stays}
    for at, item in enumerate(scene.items):
        if at not in taken:
            memory = pair.slow if at in homes.away else pair.fast
            stays.append(BufferStay(at, item.life, memory.name, 0))
    still, offsets = _still(scene, homes, stays, passages), [0] * len(stays)
    moves: list[tuple[int, int, int]] = []
    arenas = {}
    for memory in (pair.fast, pair.slow):
        there = [at for at, stay in enumerate(stays) if stay.memory == memory.name]
        problem = _problem(scene, [stays[at] for at in there])
        fast = memory is pair.fast
        pinned = {at: when for at, index in enumerate(there) if (when := still.get(index)) is not None}
        packed = pack(problem, pinned, relocation if fast else None, room if fast else None)
        if there:
            arenas[memory.name] = packed.used_bytes
        for at, offset in zip(there, packed.offsets, strict=True):
            offsets[at] = offset
        moves += [(step, there[at], offset) for step, at, offset in packed.moves]
    placed = [replace(stay, offset=offset) for stay, offset in zip(stays, offsets, strict=True)]
    made = reside(scene.tiled, lives(scene.tiled, scene.steps), scene.items, Places(placed, moves, passages))
    return Layout(made.blocks, made.scratch, arenas, "feasible", made.transfers)


def _still(
    scene: Draft, homes: IoPlacement, stays: Sequence[BufferStay], passages: Sequence[BufferTransfer]
) -> dict[int, Interval]:
    """Return the stays that may not always move, and the steps during which they may.

    Graph inputs, outputs and states never move; what an engine copies moves in the longest time without a
    transfer.
    """
    still = {
        at: NEVER
        for at, stay in enumerate(stays)
        if stay.buffer in homes.fixed or not scene.items[stay.buffer].members
    }
    flights: dict[int, list[tuple[int, int]]] = {}
    for one in passages:
        start = stays[one.to].life.lo
        for at in (one.source, one.to):
            if one.end > start:
                flights.setdefault(at, []).append((start, one.end))
    for at, flown in flights.items():
        life = stays[at].life
        ends = [life.lo, *(time for flight in sorted(flown) for time in flight), life.hi]
        free, held = max(zip(ends[::2], ends[1::2], strict=True), key=lambda span: span[1] - span[0])
        still.setdefault(at, Interval(free, max(free, held + (held < life.hi))))
    return still


def _stays(
    scene: Draft, pair: MemoryPair, found: over.Residency, buffer_of: Sequence[int]
) -> tuple[list[BufferStay], list[BufferTransfer]]:
    """Return the stays of a residency by buffer, in the order of time, and the transfers between them."""
    stays: list[BufferStay] = []
    numbers: dict[tuple[int, bool, int], int] = {}
    begins: dict[tuple[int, bool], list[int]] = defaultdict(list)
    back = {(one.item, one.end) for one in found.passages if one.direction == "in"}
    for item, mine in enumerate(found.stays):
        at_once = [over.ItemStay(False, 0, 0)] * ((item, 0) in back and not any(not it.fast for it in mine))
        parts = [part for stay in (*mine, *at_once) for part in _renewed(stay, item, found.passages)]
        for stay in sorted(parts, key=lambda one: (one.lo, one.fast)):
            memory = pair.fast if stay.fast else pair.slow
            numbers[item, stay.fast, stay.lo] = len(stays)
            begins[item, stay.fast].append(stay.lo)
            # Incoming bytes are still present when others leave before the step.
            renewed = any(not one.fast and one.lo == stay.hi > stay.lo for one in parts)
            hi = stay.hi + (not stay.fast and (item, stay.hi) in back and not renewed)
            life = scene.items[buffer_of[item]].life
            stays.append(BufferStay(buffer_of[item], Interval(stay.lo, min(hi, life.hi)), memory.name, 0))
    passages = []
    for one in found.passages:
        comes_in = one.direction == "in"
        begun = begins[one.item, not comes_in]
        source = begun[bisect_right(begun, one.start) - 1]
        passages.append(
            BufferTransfer(
                pair.link.engine if pair.link else CPU,
                numbers[one.item, not comes_in, source],
                numbers[one.item, comes_in, one.start],
                one.end,
            )
        )
    return stays, passages


def _renewed(stay: over.ItemStay, item: int, passages: Sequence[over.ItemTransfer]) -> list[over.ItemStay]:
    """Split a stay at a transfer that enters it later, with a value that was written elsewhere."""
    starts = (one.start for one in passages if one.item == item and (one.direction == "in") == stay.fast)
    times = [stay.lo, *sorted({start for start in starts if stay.lo < start < stay.hi}), stay.hi]
    return [replace(stay, lo=lo, hi=hi) for lo, hi in pairwise(times)]


def _problem(scene: Draft, stays: Sequence[BufferStay]) -> PlacementProblem:
    """Return the rectangles of stays in one memory; rows of a graph input that begin there are a stack."""
    index_of: dict[BlockId, int] = {}
    rectangles = []
    for at, stay in enumerate(stays):
        item = scene.items[stay.buffer]
        rectangles.append(Rectangle(item.size_bytes, stay.life, scene.alignment))
        if item.members and stay.life.lo == 0:
            index_of.setdefault(item.members[0], at)
    stacks = []
    for border in scene.tiled.graph.resident_inputs():
        rows = [
            index_of.get((border.tensor, block)) for block in range(scene.tiled.block_count(border.tensor))
        ]
        if len(rows) > 1 and all(row is not None for row in rows):
            stacks.append(tuple(row for row in rows if row is not None))
    return PlacementProblem(tuple(rectangles), tuple(stacks))


def homes_tried(scene: Draft, fixed: Sequence[int], room: int) -> Iterator[IoPlacement]:
    """Yield each placement of graph inputs and outputs in the fast or the slow memory.

    The first has no large one in the fast memory of `room` bytes. Rows of an input that break the alignment
    stay.
    """
    graph, roots = scene.tiled.graph, scene.tiled.flow.roots
    inputs = {border.tensor for border in graph.resident_inputs()}
    outputs = {roots[border.tensor] for border in graph.outputs}

    def of(names: set[str]) -> list[int]:
        return [at for at, item in enumerate(scene.items) if any(name in names for name, _ in item.members)]

    def large(names: set[str]) -> bool:
        return _MUCH * sum(graph.tensors[name].size_bytes for name in names) > room

    given_all, mine, theirs = of(inputs), of(inputs - outputs), of(outputs)
    bound = of({
        name
        for name in inputs
        if scene.tiled.block_count(name) > 1 and graph.tensors[name].row_bytes % scene.alignment
    } - outputs)  # fmt: skip
    stay = sorted(set(fixed) - set(mine) - set(theirs))
    ways = [(bool(mine) and large(inputs), bool(theirs) and large(outputs))]
    ways += [(not ways[0][0], ways[0][1])] * bool(mine)
    ways += [(given, not away) for given, away in ways] * (bool(theirs) and ways[0][1])
    for given, away in ways:
        yield IoPlacement(
            fixed=[*stay, *([] if given else mine), *([] if away else theirs)],
            away=[*(theirs if away else []), *(bound if given else [])],
            given=given_all,
        )
