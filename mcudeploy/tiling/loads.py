"""The bytes that a plan uses in each memory at every step, read from its residences."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Layout, Residence
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes


def live_in(layout: Layout, tiled: TiledGraph, steps: int, work: WorkBytes) -> dict[str, tuple[int, ...]]:
    """Return the bytes in use at each of some steps, by memory; an in-place pair of blocks counts once."""
    steps = max(steps, 1)
    spans: dict[tuple[str, int, int], list[Interval]] = {}
    for place, size in _used(layout, tiled, work):
        spans.setdefault((place.memory, place.offset, size), []).append(place.life)
    changes = {memory: [0] * (steps + 1) for memory in layout.arenas}
    for (memory, _, size), lives in spans.items():
        change, last = changes[memory], 0
        for life in sorted(lives, key=lambda one: one.lo):
            lo = max(life.lo, last)
            if lo < life.hi:
                change[lo] += size
                change[life.hi] -= size
                last = life.hi
    return {memory: tuple(accumulate(change[:-1])) for memory, change in changes.items()}


def _used(layout: Layout, tiled: TiledGraph, work: WorkBytes) -> Iterator[tuple[Residence, int]]:
    """Yield every residence with its bytes."""
    for name, blocks in layout.blocks.items():
        for number, block in enumerate(blocks):
            yield from ((each, tiled.block_bytes(name, number)) for each in block)
    for name, steps in layout.scratch.items():
        for step in steps:
            yield from ((each, sum(work[name])) for each in step)
