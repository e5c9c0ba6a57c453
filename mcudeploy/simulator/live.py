"""Live ranges: when each block of a tensor must be in memory, and how much that adds up to.

A block lives in [first write, last read + 1), in steps. Graph inputs are there from step 0, graph
outputs until the end. Scratch lives for its step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mcudeploy.interval import Interval
from mcudeploy.plan import Step
from mcudeploy.simulator.blocks import BlockId, TiledGraph


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes that need one place: a block, several blocks that take over from each other in place, or
    the scratch of a step. `members` are blocks; scratch has the operator's name in `scratch_of`.
    """

    members: tuple[BlockId, ...]
    size_bytes: int
    live: Interval
    scratch_of: BlockId | None = None


def live_ranges(tiled: TiledGraph, steps: tuple[Step, ...]) -> dict[BlockId, Interval]:
    """The live range of every block of every tensor that owns memory."""
    end = max(len(steps), 1)
    first: dict[BlockId, int] = {}
    last: dict[BlockId, int] = {}
    for border in tiled.graph.inputs:
        for block in range(tiled.block_count(border.tensor)):
            first[border.tensor, block] = 0
            last[border.tensor, block] = 0
    for time, step in enumerate(steps):
        operator = tiled.graph.operators[step.operator]
        written = (operator.output, step.block)
        first.setdefault(written, time)
        last[written] = max(last.get(written, time), time)
        for access in tiled.reads(operator, step.block):
            for block_id in access.blocks:
                last[block_id] = time
    for border in tiled.graph.outputs:
        root = tiled.roots[border.tensor]
        for block in range(tiled.block_count(root)):
            last[root, block] = end - 1
    return {block_id: Interval(first[block_id], last[block_id] + 1) for block_id in first}


def buffers(tiled: TiledGraph, steps: tuple[Step, ...], scratch_bytes: dict[str, int]) -> tuple[Buffer, ...]:
    """The rectangles to place: blocks, joined where an operator works in place, and scratch.

    An output block takes over an input block where the operator allows it, both have the same rows and
    size, and the input block is read for the last time by the very step that makes the output block.
    """
    live = live_ranges(tiled, steps)
    heir = _in_place(tiled, steps, live)
    inherited = set(heir.values())
    result: list[Buffer] = []
    for block_id in live:
        if block_id in inherited:
            continue
        chain = [block_id]
        while chain[-1] in heir:
            chain.append(heir[chain[-1]])
        result.append(
            Buffer(
                tuple(chain),
                tiled.block_bytes(*block_id),
                Interval(live[chain[0]].lo, live[chain[-1]].hi),
            )
        )
    for time, step in enumerate(steps):
        name = tiled.graph.operators[step.operator].name
        if scratch_bytes[name] > 0:
            result.append(Buffer((), scratch_bytes[name], Interval(time, time + 1), (name, step.block)))
    return tuple(result)


def _in_place(
    tiled: TiledGraph, steps: tuple[Step, ...], live: dict[BlockId, Interval]
) -> dict[BlockId, BlockId]:
    """For each block that is taken over in place, the block that takes it over."""
    heir: dict[BlockId, BlockId] = {}
    for time, step in enumerate(steps):
        operator = tiled.graph.operators[step.operator]
        inputs = tiled.graph.input_tensors(operator)
        accesses = tiled.reads(operator, step.block)
        written = (operator.output, step.block)
        for operand in operator.op.overwrites(inputs, tiled.graph.tensors[operator.output]):
            blocks = accesses[operand].blocks
            if len(blocks) != 1 or blocks[0] in heir:
                continue
            same_rows = tiled.block_interval(*blocks[0]) == tiled.block_interval(*written)
            same_size = tiled.block_bytes(*blocks[0]) == tiled.block_bytes(*written)
            if same_rows and same_size and live[blocks[0]].hi == time + 1 and live[written].lo == time:
                heir[blocks[0]] = written
                break
    return heir


def peak(items: Iterable[Buffer]) -> tuple[int, int]:
    """The largest sum of live bytes over all steps, and the first step where it occurs."""
    change: dict[int, int] = {}
    for item in items:
        change[item.live.lo] = change.get(item.live.lo, 0) + item.size_bytes
        change[item.live.hi] = change.get(item.live.hi, 0) - item.size_bytes
    best = load = best_step = 0
    for time in sorted(change):
        load += change[time]
        if load > best:
            best, best_step = load, time
    return best, best_step
