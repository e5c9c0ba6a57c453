"""Live ranges of blocks, and their sum at each step.

A block lives in [first write, last read + 1), in steps. A repeated step rematerialises its block: between the
last read before that and the repetition, the block need not be in memory. Graph inputs live from step 0,
graph outputs until the end. Scratch lives for its step. The state of an operator that accumulates lives from
its first step to its last, which writes the output. An output block may take over an input block in place.
The operator must allow it, both must have the same rows and size, and the step that writes the output must be
the last reader of the input block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Step
from mcudeploy.tiling.blocks import BlockId, TiledGraph

ANY_ALIGNMENT = 64
"""A multiple of every alignment that a memory may require, in bytes."""

WorkBytes = Mapping[str, tuple[int, int]]
"""The scratch and state of each operator, in bytes, by operator name."""


_CORE_GRAIN = 8
"""The alignment of each core's scratch if several cores run, in bytes."""


def core_scratch(size_bytes: int) -> int:
    """Return the distance in bytes between two cores' scratch within the scratch of a step."""
    return -(-size_bytes // _CORE_GRAIN) * _CORE_GRAIN


def scratch_bytes(call: KernelCall, cores: int) -> int:
    """Return the scratch of a step by this call, summed over all cores, in bytes."""
    return cores * core_scratch(call.scratch_bytes) if cores > 1 else call.scratch_bytes


def work_bytes(calls: Mapping[str, KernelCall], cores: int = 1) -> dict[str, tuple[int, int]]:
    """Return scratch and state in bytes of every operator with a kernel; each core has its own scratch."""
    return {name: (scratch_bytes(call, cores), call.state_bytes) for name, call in calls.items()}


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes that need a place during one live range.

    A buffer is a block, several blocks that take over from each other in place, or the scratch of a step
    (`scratch_of`). The state of an operator belongs to all its steps, as block 0. A rematerialised block has
    one buffer per live range, all with the same members; not every member lives in each. A `stack` is a whole
    graph output that is computed in parts: its members lie in sequence.
    """

    members: tuple[BlockId, ...]
    size_bytes: int
    life: Interval
    scratch_of: BlockId | None = None
    stack: bool = False

    @property
    def key(self) -> tuple[bool, BlockId]:
        """The identity shared by all buffers of one block, or of one step's scratch."""
        return (False, self.members[0]) if self.scratch_of is None else (True, self.scratch_of)


@dataclass(frozen=True, slots=True)
class Lives:
    """Live ranges by block number: first step, last step + 1, and the block that takes over (-1: none).

    `gaps`: the steps between live ranges of rematerialised blocks, during which they need no memory,
    ascending.
    """

    first: list[int]
    end: list[int]
    successors: list[int]
    gaps: dict[int, list[Interval]] = field(default_factory=dict)

    def of(self, block: int) -> tuple[Interval, ...]:
        """Return the live ranges of a block."""
        starts, ends = [self.first[block]], []
        for gap in self.gaps.get(block, ()):
            ends.append(gap.lo)
            starts.append(gap.hi)
        return tuple(Interval(lo, hi) for lo, hi in zip(starts, [*ends, self.end[block]], strict=True))


def lives(tiled: TiledGraph, steps: tuple[Step, ...], separate: Collection[tuple[str, str]] = ()) -> Lives:
    """Return the live range of every block of every tensor that owns memory.

    `separate`: pairs of tensors, input and output of one operator, that must not take over from each other.
    """
    total = max(len(steps), 1)
    first, end = [0] * tiled.blocks, [0] * tiled.blocks
    written = [False] * tiled.blocks
    gaps: dict[int, list[Interval]] = {}
    for io in tiled.graph.resident_inputs():
        base = tiled.first_block[io.tensor]
        for block in range(base, base + tiled.block_count(io.tensor)):
            end[block] = 1
            written[block] = True
    for time, step in enumerate(steps):
        block = tiled.written(step.operator, step.block)
        if not written[block] or tiled.graph.operators[step.operator].op.accumulates:  # its last step writes
            written[block] = True
            first[block] = time
        elif end[block] < time:
            gaps.setdefault(block, []).append(Interval(end[block], time))
        end[block] = time + 1
        for lo, hi in tiled.reads[tiled.first_step[step.operator] + step.block]:
            for read in range(lo, hi):
                end[read] = time + 1
    for io in tiled.graph.outputs:
        root = tiled.flow.roots[io.tensor]
        base = tiled.first_block[root]
        count = tiled.block_count(root)
        end[base : base + count] = [total] * count
        first[base : base + count] = [min(first[base : base + count])] * count  # contiguous, live as a whole
        for block in range(base, base + count):
            gaps.pop(block, None)
    return Lives(first, end, _successors(tiled, steps, (first, end), separate), gaps)


def _successors(
    tiled: TiledGraph,
    steps: tuple[Step, ...],
    spans: tuple[list[int], list[int]],
    separate: Collection[tuple[str, str]],
) -> list[int]:
    """Return, for each block, the block that takes over its memory; -1 for none."""
    first, end = spans
    ids = tiled.block_ids() if separate else []
    successors = [-1] * tiled.blocks
    is_overwritten = [False] * tiled.blocks
    for time, read, written in in_place_chances(tiled, steps):
        if separate and (ids[read][0], ids[written][0]) in separate:
            continue
        if (
            successors[read] < 0
            and not is_overwritten[written]
            and end[read] == time + 1
            and first[written] == time
        ):
            successors[read] = written
            is_overwritten[written] = True
    return successors


def in_place_chances(tiled: TiledGraph, steps: Sequence[Step]) -> Iterator[tuple[int, int, int]]:
    """Yield the in-place candidates: step index, block read, block written; the best of a step first.

    A step may overwrite what it reads if no later step reads it and the step writes its output for the first
    time.
    """
    stacked = tiled.stacked_outputs()
    stays = {tiled.flow.roots[io.tensor] for io in tiled.graph.outputs}  # read after the run
    stays |= {  # or its rows must lie in the application's array
        io.tensor
        for io in tiled.graph.resident_inputs()
        if tiled.block_count(io.tensor) > 1 and tiled.graph.tensors[io.tensor].row_bytes % ANY_ALIGNMENT
    }
    tensors = tiled.graph.tensors
    for time, step in enumerate(steps):
        operator = tiled.graph.operators[step.operator]
        block = step.block
        if operator.op.accumulates:  # its last step writes the only block
            if step.block < tiled.step_counts[step.operator] - 1:
                continue
            block = 0
        for operand in tiled.flow.overwrites[step.operator]:
            root = tiled.flow.readings[step.operator][operand].root
            lo, hi = tiled.reads[tiled.first_step[step.operator] + step.block][operand]
            if hi - lo != 1 or root in stays or operator.output in stacked:
                continue
            rows = tiled.block_interval(root, lo - tiled.first_block[root])
            same_rows = rows == tiled.block_interval(operator.output, block)
            same_rows &= tiled.tensor_block_rows(root).lead == tiled.tensor_block_rows(operator.output).lead
            if same_rows and tensors[root].row_bytes == tensors[operator.output].row_bytes:
                yield time, lo, tiled.written(step.operator, step.block)


def buffers(
    tiled: TiledGraph, steps: tuple[Step, ...], work: WorkBytes, separate: Collection[tuple[str, str]] = ()
) -> tuple[Buffer, ...]:
    """Return the buffers to place: blocks, joined if an operator works in place, scratch and state.

    `separate`: as in `lives`.
    """
    live = lives(tiled, steps, separate)
    ids = tiled.block_ids()
    inherited = set(live.successors)
    stacked = tiled.stacked_outputs()
    result = [_stack(tiled, name, live) for name in stacked]
    for number, block_id in enumerate(ids):
        if number in inherited or block_id[0] in stacked:
            continue
        chain = [number]
        while live.successors[chain[-1]] >= 0:
            chain.append(live.successors[chain[-1]])
        members, size = tuple(ids[i] for i in chain), tiled.block_bytes(*block_id)
        spans = joined(span for link in chain for span in live.of(link))
        result += [Buffer(members, size, span) for span in spans]
    return (*result, *_work_buffers(tiled, steps, work))


def joined(spans: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return the union of intervals as the fewest disjoint intervals."""
    result: list[Interval] = []
    for span in sorted(spans, key=lambda one: one.lo):
        if result and span.lo <= result[-1].hi:
            result[-1] = result[-1].hull(span)
        else:
            result.append(span)
    return tuple(result)


def _stack(tiled: TiledGraph, name: str, live: Lives) -> Buffer:
    base, count = tiled.first_block[name], tiled.block_count(name)
    members = tuple((name, block) for block in range(count))
    span = Interval(live.first[base], live.end[base])
    return Buffer(members, tiled.graph.tensors[name].size_bytes, span, stack=True)


def _work_buffers(tiled: TiledGraph, steps: tuple[Step, ...], work: WorkBytes) -> list[Buffer]:
    result: list[Buffer] = []
    states: dict[str, Interval] = {}
    for time, step in enumerate(steps):
        name = tiled.graph.operators[step.operator].name
        scratch_bytes, state_bytes = work[name]
        if scratch_bytes > 0:
            result.append(Buffer((), scratch_bytes, Interval(time, time + 1), (name, step.block)))
        if state_bytes > 0:
            states[name] = states.get(name, Interval(time, time)).hull(Interval(time, time + 1))
    return result + [Buffer((), work[name][1], span, (name, 0)) for name, span in states.items()]


def peak(items: Iterable[Buffer]) -> tuple[int, int]:
    """Return the largest sum of live bytes over all steps, and the first step at which it occurs."""
    change: dict[int, int] = {}
    for item in items:
        change[item.life.lo] = change.get(item.life.lo, 0) + item.size_bytes
        change[item.life.hi] = change.get(item.life.hi, 0) - item.size_bytes
    best = load = best_step = 0
    for time in sorted(change):
        load += change[time]
        if load > best:
            best, best_step = load, time
    return best, best_step


def live_peak(tiled: TiledGraph, steps: tuple[Step, ...], work: WorkBytes) -> tuple[int, int]:
    """Return the peak of `buffers` without creating them, for the search."""
    best = best_step = 0
    for time, load in enumerate(live_loads(tiled, steps, work)):
        if load > best:
            best, best_step = load, time
    return best, best_step


def live_loads(tiled: TiledGraph, steps: tuple[Step, ...], work: WorkBytes) -> Iterator[int]:
    """Yield the live bytes of every step in order, then those at the end of the run, then 0."""
    live = lives(tiled, steps)
    change = [0] * (len(steps) + 2)
    for name, base in tiled.first_block.items():
        (rows, lead), row_bytes = tiled.tensor_block_rows(name), tiled.graph.tensors[name].row_bytes
        left = tiled.graph.tensors[name].shape[0] + lead
        for number in range(base, base + tiled.block_count(name)):
            size = min(rows, left) * row_bytes
            left -= rows
            change[live.first[number]] += size
            change[live.end[number]] -= size
            for gap in live.gaps.get(number, ()):
                change[gap.lo] -= size
                change[gap.hi] += size
            if live.successors[number] >= 0:  # its last step is its successor's first: they share memory
                change[live.first[live.successors[number]]] -= size
                change[live.first[live.successors[number]] + 1] += size
    for item in _work_buffers(tiled, steps, work):
        change[item.life.lo] += item.size_bytes
        change[item.life.hi] -= item.size_bytes
    return accumulate(change)
