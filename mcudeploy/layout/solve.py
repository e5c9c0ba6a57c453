"""From a schedule to offsets: buffers, their places, and the tables that the tape needs."""

from __future__ import annotations

from mcudeploy.layout.place import place
from mcudeploy.layout.problem import Problem, Rectangle, align_up
from mcudeploy.plan import Estimate, Layout, Placement, Schedule
from mcudeploy.simulator.blocks import BlockId, TiledGraph
from mcudeploy.simulator.live import Buffer, WorkBytes, buffers, peak

ARENA_GRAIN_BYTES = 8
"""An arena's size is a multiple of this, as the C array that holds it is."""


def lay_out(
    tiled: TiledGraph,
    schedule: Schedule,
    work: WorkBytes,
    memory: str,
    alignment: int,
    *,
    seconds: float = 2.0,
    seed: int = 0,
) -> tuple[Layout, Estimate]:
    """Places everything in one memory. Offsets are multiples of `alignment` bytes.

    A graph input lies in one piece, because the application fills it as an array. The lower bound is the
    largest sum of bytes alive at one step; where first fit does not reach it, `seconds` are spent on better
    offsets. The status is `optimal` where none has a smaller arena.
    """
    items = buffers(tiled, schedule.steps, work)
    problem = _problem(tiled, items, memory, alignment)
    placed = place(problem, seconds, grain=ARENA_GRAIN_BYTES, seed=seed)
    peak_bytes, peak_step = peak(items)
    layout = Layout(
        tensors=_tensor_placements(tiled, items, placed.offsets, memory),
        scratch=_work_placements(tiled, items, placed.offsets, memory),
        arenas={memory: placed.used_bytes.get(memory, 0)},
        status=placed.status,
    )
    return layout, Estimate(peak_bytes, peak_step, peak_bytes)


def _problem(tiled: TiledGraph, items: tuple[Buffer, ...], memory: str, alignment: int) -> Problem:
    """The rectangles of a plan; the rows of a graph input that is cut are a stack and die one by one."""
    rectangles = tuple(
        Rectangle(item.size_bytes, tuple(life for life in item.lives if len(life)), alignment, memory)
        for item in items
    )
    index_of = {item.members[0]: index for index, item in enumerate(items) if item.members and not item.stack}
    stacks = tuple(
        tuple(index_of[border.tensor, block] for block in range(tiled.block_count(border.tensor)))
        for border in tiled.graph.resident_inputs()
        if tiled.block_count(border.tensor) > 1
    )
    return Problem(rectangles, {}, stacks)


def layout_status(arena_bytes: int, peak_bytes: int) -> str:
    """`optimal` where no placement has a smaller arena."""
    return "optimal" if arena_bytes <= align_up(peak_bytes, ARENA_GRAIN_BYTES) else "feasible"


def estimate(tiled: TiledGraph, schedule: Schedule, work: WorkBytes) -> Estimate:
    """What the simulator says of a schedule, wherever its buffers are placed."""
    peak_bytes, peak_step = peak(buffers(tiled, schedule.steps, work))
    return Estimate(peak_bytes, peak_step, peak_bytes)


def _tensor_placements(
    tiled: TiledGraph, items: tuple[Buffer, ...], offsets: tuple[int, ...], memory: str
) -> dict[str, Placement]:
    where: dict[BlockId, int] = {}
    for item, offset in zip(items, offsets, strict=True):
        at = offset
        for member in item.members:
            where[member] = at
            at += tiled.block_bytes(*member) if item.stack else 0
    placements: dict[str, Placement] = {}
    for name, tensor in tiled.graph.tensors.items():
        root = tiled.flow.roots[name]
        rows = tiled.tensor_block_rows(root) if root == name else tensor.shape[0]
        blocks = tuple(where[root, block] for block in range(tiled.block_count(root)))
        placements[name] = Placement(memory, rows, blocks)
    return placements


def _work_placements(
    tiled: TiledGraph, items: tuple[Buffer, ...], offsets: tuple[int, ...], memory: str
) -> dict[str, Placement]:
    found: dict[str, dict[int, int]] = {}
    for item, offset in zip(items, offsets, strict=True):
        if item.scratch_of is not None:
            name, block = item.scratch_of
            found.setdefault(name, {})[block] = offset
    return {
        name: Placement(memory, tiled.block_rows[name], _by_number(by_block))
        for name, by_block in found.items()
    }


def _by_number(offsets: dict[int, int]) -> tuple[int, ...]:
    """Offsets as a table by block number; blocks that no step needs have no offset of their own."""
    return tuple(offsets.get(block, 0) for block in range(max(offsets) + 1))
