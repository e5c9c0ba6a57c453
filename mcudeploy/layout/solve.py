"""From a schedule to offsets: buffers, their places, and the tables that the tape needs."""

from __future__ import annotations

from collections.abc import Mapping

from mcudeploy.layout.greedy import align_up, place, used_bytes
from mcudeploy.plan import Estimate, Layout, Placement, Schedule
from mcudeploy.simulator.blocks import BlockId, TiledGraph
from mcudeploy.simulator.live import Buffer, buffers, peak

ARENA_GRAIN_BYTES = 8
"""An arena's size is a multiple of this, as the C array that holds it is."""


def lay_out(
    tiled: TiledGraph, schedule: Schedule, scratch_bytes: Mapping[str, int], memory: str, alignment: int
) -> tuple[Layout, Estimate]:
    """Places everything in one memory. Offsets are multiples of `alignment` bytes.

    The lower bound is the largest sum of bytes alive at one step; the status is `optimal` where the
    layout reaches it.
    """
    items = buffers(tiled, schedule.steps, dict(scratch_bytes))
    offsets = place(items, alignment)
    peak_bytes, peak_step = peak(items)
    arena_bytes = align_up(used_bytes(items, offsets), ARENA_GRAIN_BYTES)
    reached = arena_bytes <= align_up(peak_bytes, ARENA_GRAIN_BYTES)
    layout = Layout(
        tensors=_tensor_placements(tiled, items, offsets, memory),
        scratch=_scratch_placements(tiled, items, offsets, memory),
        arenas={memory: arena_bytes},
        status="optimal" if reached else "feasible",
    )
    return layout, Estimate(peak_bytes, peak_step, peak_bytes)


def _tensor_placements(
    tiled: TiledGraph, items: tuple[Buffer, ...], offsets: tuple[int, ...], memory: str
) -> dict[str, Placement]:
    where: dict[BlockId, int] = {}
    for item, offset in zip(items, offsets, strict=True):
        where.update((member, offset) for member in item.members)
    placements: dict[str, Placement] = {}
    for name, tensor in tiled.graph.tensors.items():
        root = tiled.roots[name]
        count = tiled.block_count(root)
        rows = tiled.tensor_block_rows(root) if root == name else tensor.shape[0]
        placements[name] = Placement(memory, rows, tuple(where[root, block] for block in range(count)))
    return placements


def _scratch_placements(
    tiled: TiledGraph, items: tuple[Buffer, ...], offsets: tuple[int, ...], memory: str
) -> dict[str, Placement]:
    found: dict[str, dict[int, int]] = {}
    for item, offset in zip(items, offsets, strict=True):
        if item.scratch_of is not None:
            name, block = item.scratch_of
            found.setdefault(name, {})[block] = offset
    return {
        name: Placement(memory, tiled.block_rows[name], tuple(by_block[b] for b in sorted(by_block)))
        for name, by_block in found.items()
    }
