"""Conversion of cut graphs to scheduling problems with the live ranges of `tiling/live.py`, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcudeploy.ir.plan import Schedule, Step
from mcudeploy.planner.order.order_problem import InPlace, OrderProblem, StepBuffer
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes, in_place_chances


def problem_of(
    tiled: TiledGraph, work: WorkBytes, in_place: bool = True, steps: Sequence[Step] | None = None
) -> OrderProblem:
    """Return the scheduling problem of a cut graph; for every order the peak equals `live_peak`.

    Steps are numbered as in `steps`, a valid order without repetitions, or by `tiled.first_step`. There is
    one buffer for every block, for every graph output that is computed in parts, for scratch and state. An
    operator that is not in `work` has neither. Without `in_place` no output takes over an input's memory.
    """
    steps = steps_of(tiled) if steps is None else steps
    touched: list[list[int]] = [[] for _ in range(tiled.blocks)]
    for number, step in enumerate(steps):
        written = tiled.written(step.operator, step.block)
        last = step.block == tiled.step_counts[step.operator] - 1
        if last or not tiled.graph.operators[step.operator].op.accumulates:
            touched[written].append(number)
        for lo, hi in tiled.reads[tiled.first_step[step.operator] + step.block]:
            for read in range(lo, hi):
                touched[read].append(number)
    buffers, buffer_of = _block_buffers(tiled, touched)
    return OrderProblem(
        _before(tiled, steps, producers_of(tiled, steps)),
        (*buffers, *_work_buffers(tiled, steps, work)),
        tuple(
            InPlace(number, buffer_of[read], buffer_of[made])
            for number, read, made in (in_place_chances(tiled, steps) if in_place else ())
        ),
    )


def schedule_of(steps: Sequence[Step], order: Sequence[int], status: str) -> Schedule:
    """Return the schedule of an order of a problem's steps; `steps` as they are numbered there."""
    return Schedule(tuple(steps[number] for number in order), status)


def steps_of(tiled: TiledGraph) -> list[Step]:
    """Return all steps by number: operators in the graph's order, blocks ascending."""
    return [
        Step(position, block) for position, count in enumerate(tiled.step_counts) for block in range(count)
    ]


def producers_of(tiled: TiledGraph, steps: Sequence[Step]) -> list[int | None]:
    """Return, for each block, the number of the step that completes it; None for a graph input."""
    producers: list[int | None] = [None] * tiled.blocks
    for number, step in enumerate(steps):
        producers[tiled.written(step.operator, step.block)] = number  # of steps that accumulate, the last
    return producers


def _before(
    tiled: TiledGraph, steps: Sequence[Step], producer: Sequence[int | None]
) -> tuple[tuple[int, ...], ...]:
    before = []
    latest: dict[int, int] = {}  # the previous step of each sequential operator
    for number, step in enumerate(steps):
        ranges = tiled.reads[tiled.first_step[step.operator] + step.block]
        needed = {producer[read] for lo, hi in ranges for read in range(lo, hi)}
        needed.update(producer[awaited] for awaited in tiled.awaited(step))
        if tiled.graph.operators[step.operator].is_sequential:
            if step.operator in latest:
                needed.add(latest[step.operator])
            latest[step.operator] = number
        before.append(tuple(sorted(other for other in needed if other is not None)))
    return tuple(before)


def _block_buffers(tiled: TiledGraph, touched: list[list[int]]) -> tuple[list[StepBuffer], list[int]]:
    """Return the buffers of all blocks, and for each block the number of its buffer."""
    kept = {tiled.flow.roots[io.tensor] for io in tiled.graph.outputs}
    resident = {io.tensor for io in tiled.graph.resident_inputs()}
    stacked = tiled.stacked_outputs()
    buffers: list[StepBuffer] = []
    buffer_of: list[int] = []
    for name, base in tiled.first_block.items():
        count = tiled.block_count(name)
        if name in stacked:
            everyone = {step for steps in touched[base : base + count] for step in steps}
            buffer_of += [len(buffers)] * count
            buffers.append(
                StepBuffer(tiled.graph.tensors[name].size_bytes, tuple(sorted(everyone)), kept=True)
            )
            continue
        for block in range(count):
            steps = tuple(sorted(set(touched[base + block])))
            buffer_of.append(len(buffers))
            buffers.append(StepBuffer(tiled.block_bytes(name, block), steps, name in resident, name in kept))
    return buffers, buffer_of


def _work_buffers(tiled: TiledGraph, steps: Sequence[Step], work: WorkBytes) -> Iterator[StepBuffer]:
    numbers: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        numbers.setdefault(step.operator, []).append(number)
    for position, its in numbers.items():
        scratch_bytes, state_bytes = work.get(tiled.graph.operators[position].name, (0, 0))
        if scratch_bytes > 0:
            yield from (StepBuffer(scratch_bytes, (number,)) for number in its)
        if state_bytes > 0:
            yield StepBuffer(state_bytes, tuple(its))
