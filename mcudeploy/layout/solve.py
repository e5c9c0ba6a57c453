"""From a schedule to offsets: buffers, their places, and the tables that the tape needs."""

from __future__ import annotations

from mcudeploy.layout.greedy import align_up, place, used_bytes
from mcudeploy.plan import Estimate, Layout, Placement, Schedule
from mcudeploy.simulator.blocks import BlockId, TiledGraph
from mcudeploy.simulator.live import Buffer, WorkBytes, buffers, peak

ARENA_GRAIN_BYTES = 8
"""An arena's size is a multiple of this, as the C array that holds it is."""


def lay_out(
    tiled: TiledGraph, schedule: Schedule, work: WorkBytes, memory: str, alignment: int
) -> tuple[Layout, Estimate]:
    """Places everything in one memory. Offsets are multiples of `alignment` bytes.

    A graph input lies in one piece, because the application fills it as an array. The lower bound is the
    largest sum of bytes alive at one step; the status is `optimal` where the layout reaches it.
    """
    items = buffers(tiled, schedule.steps, work)
    offsets = place(items, alignment, _input_offsets(tiled, items, alignment))
    arena_bytes = align_up(used_bytes(items, offsets), ARENA_GRAIN_BYTES)
    peak_bytes, peak_step = peak(items)
    layout = Layout(
        tensors=_tensor_placements(tiled, items, offsets, memory),
        scratch=_work_placements(tiled, items, offsets, memory),
        arenas={memory: arena_bytes},
        status=layout_status(arena_bytes, peak_bytes),
    )
    return layout, Estimate(peak_bytes, peak_step, peak_bytes)


def layout_status(arena_bytes: int, peak_bytes: int) -> str:
    """`optimal` where no placement has a smaller arena."""
    return "optimal" if arena_bytes <= align_up(peak_bytes, ARENA_GRAIN_BYTES) else "feasible"


def estimate(tiled: TiledGraph, schedule: Schedule, work: WorkBytes) -> Estimate:
    """What the simulator says of a schedule, wherever its buffers are placed."""
    peak_bytes, peak_step = peak(buffers(tiled, schedule.steps, work))
    return Estimate(peak_bytes, peak_step, peak_bytes)


def _input_offsets(tiled: TiledGraph, items: tuple[Buffer, ...], alignment: int) -> dict[int, int]:
    """Offsets of the blocks of graph inputs that are cut: one below the other, from the arena's start."""
    index_of = {item.members[0]: index for index, item in enumerate(items) if item.members and not item.stack}
    offsets: dict[int, int] = {}
    end = 0
    for border in tiled.graph.resident_inputs():
        if tiled.block_count(border.tensor) == 1:
            continue
        for block in range(tiled.block_count(border.tensor)):
            offsets[index_of[border.tensor, block]] = end
            end += tiled.block_bytes(border.tensor, block)
        end = align_up(end, alignment)
    return offsets


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
