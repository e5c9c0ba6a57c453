"""The bytes that the steps of a schedule read and write, by category."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import prod

import numpy as np

from mcudeploy.ir.engine import CPU
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.opdef import AnyIndex, AxisKind, Index
from mcudeploy.ir.plan import Layout, Step, memories_of
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes
from mcudeploy.tiling.locations import Locations


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes read and written in one inference: by tensors that own memory, by operators' work buffers."""

    tensors: dict[str, int]
    work: dict[str, int]


def traffic(tiled: TiledGraph, steps: tuple[Step, ...], work: WorkBytes) -> Traffic:
    """Count the bytes that the steps of a schedule read and write.

    Each block counts once for every step that reads it, even if in part or repeatedly, and once for every
    step that writes it. Scratch and state count twice per step: written and read. Accesses of the
    application before and after a run do not count.
    """
    ids = tiled.block_ids()
    sizes = [tiled.block_bytes(*block_id) for block_id in ids]
    tensors = dict.fromkeys(tiled.first_block, 0)
    scratch = {name: 0 for name, sizes_of in work.items() if sum(sizes_of)}
    for step in steps:
        operator = tiled.graph.operators[step.operator]
        touched = {
            block
            for lo, hi in tiled.reads[tiled.first_step[step.operator] + step.block]
            for block in range(lo, hi)
        }
        for block in touched:
            tensors[ids[block][0]] += sizes[block]
        if not operator.op.accumulates or step.block == tiled.step_counts[step.operator] - 1:
            tensors[operator.output] += sizes[tiled.written(step.operator, step.block)]
        if operator.name in scratch:
            scratch[operator.name] += 2 * sum(work[operator.name])
    return Traffic(tensors, scratch)


_OUTPUTS_PER_LOAD = 4
"""The number of outputs that a multiplying kernel computes per load of an input (benchmarks/loads.py)."""


def loads_per_byte(graph: Graph, operator: Operator, scratch_bytes: int) -> list[float]:
    """Return, by operand, how often a kernel loads each byte: once per window that covers it.

    If it multiplies without scratch for a copy of a window, it loads the byte again for the next outputs.
    Scratch has a copy of the first input alone: trained weights are loaded again for the next pixels.
    """
    nest = graph.loops(operator)
    sizes = {axis.name: axis.size for axis in nest.axes}
    factors = []
    for operand, (name, access) in enumerate(zip(operator.inputs, nest.reads, strict=True)):
        shape = graph.tensors[name].shape
        used = {axis for index in access for axis in _axes(index)}
        loads = 1.0
        for index, size in zip(access, shape, strict=True):
            loads *= _inside(index, size, tuple(sizes[axis] for axis in _axes(index))) / size
        window = prod(it.size for it in nest.axes if it.name in used and it.kind is AxisKind.REDUCED)
        if (
            any(sizes[axis] > 1 for axis in used)
            and nest.multiplies
            and (operand or scratch_bytes <= window * graph.tensors[name].dtype.size_bytes)
        ):
            outside = prod(size for axis, size in sizes.items() if axis not in used)
            loads *= -(-outside // _OUTPUTS_PER_LOAD)
        factors.append(loads)
    return factors


def step_loads(tiled: TiledGraph, work: WorkBytes) -> list[list[float]]:
    """Return, by operator and operand, the mean loads per byte of the blocks that a step reads.

    The loads of all steps are spread evenly over the reads of all steps.
    """
    ends = [0, *accumulate(tiled.block_bytes(*block_id) for block_id in tiled.block_ids())]
    step_bytes = []
    for at, operator in enumerate(tiled.graph.operators):
        loads = loads_per_byte(tiled.graph, operator, work.get(operator.name, (0, 0))[0])
        read = [0] * len(loads)
        for step in range(tiled.first_step[at], tiled.first_step[at] + tiled.step_counts[at]):
            for operand, (lo, hi) in enumerate(tiled.reads[step]):
                read[operand] += ends[hi] - ends[lo] if lo < hi else 0
        sizes = (tiled.graph.tensors[name].size_bytes for name in operator.inputs)
        step_bytes.append(
            [load * size / max(1, total) for load, size, total in zip(loads, sizes, read, strict=True)]
        )
    return step_bytes


def _axes(index: AnyIndex) -> tuple[str, ...]:
    return tuple(axis for axis, _ in index.steps) if isinstance(index, Index) else (index.axis,)


@lru_cache(maxsize=4096)
def _inside(index: AnyIndex, size: int, counts: tuple[int, ...]) -> int:
    """Return the number of index values that lie inside a dimension, given the size of each of its axes."""
    if not isinstance(index, Index):
        return sum(hi - lo for lo, hi in zip(index.lo, index.hi, strict=True))
    positions = np.array([index.offset])
    for (_, step), count in zip(index.steps, counts, strict=True):
        positions = np.add.outer(positions, step * np.arange(count)).ravel()
    return int(((positions >= 0) & (positions < size)).sum())


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes of a memory that a step reads and writes. `tensor`: "" for scratch and state."""

    time: int
    tensor: str
    memory: str
    read_bytes: int
    written_bytes: int


def accesses(tiled: TiledGraph, steps: tuple[Step, ...], work: WorkBytes, layout: Layout) -> Iterator[Access]:
    """Yield the accesses of a plan's steps, by the memory they use; repeated loads of a byte each count.

    See `loads_per_byte`.
    """
    where, first = Locations.of(layout), tiled.first_block
    factors = step_loads(tiled, work)
    for time, step in enumerate(steps):
        operator = tiled.graph.operators[step.operator]
        for blocks, factor in zip(tiled.blocks_read(step), factors[step.operator], strict=True):
            if blocks:
                name, numbers = blocks[0][0], [block for _, block in blocks]
                size = sum(tiled.block_bytes(name, block) for block in numbers)
                yield Access(time, name, where.read(name, numbers, time), round(size * factor), 0)
        if not operator.op.accumulates or step.block == tiled.step_counts[step.operator] - 1:
            block = tiled.written(step.operator, step.block) - first[operator.output]
            memory = where.destination((operator.output, block), time).memory
            yield Access(time, operator.output, memory, 0, tiled.block_bytes(operator.output, block))
        size = sum(work.get(operator.name, (0, 0)))
        if size:
            yield Access(time, "", memories_of(layout.scratch[operator.name])[0], size, size)


def by_core(
    tiled: TiledGraph, steps: tuple[Step, ...], work: WorkBytes, layout: Layout
) -> dict[str, tuple[int, int]]:
    """Return, by memory, the bytes that the core loads and stores: in steps, and in its own copies."""
    loaded, stored = dict.fromkeys(layout.arenas, 0), dict.fromkeys(layout.arenas, 0)
    for access in accesses(tiled, steps, work, layout):
        loaded[access.memory] += access.read_bytes
        stored[access.memory] += access.written_bytes
    for transfer in layout.transfers:
        if transfer.engine == CPU:
            old, new = layout.way(transfer)
            size = tiled.moved_bytes(layout, transfer)
            loaded[old.memory] = loaded.get(old.memory, 0) + size
            stored[new.memory] += size
    return {memory: (loaded[memory], stored[memory]) for memory in layout.arenas}
