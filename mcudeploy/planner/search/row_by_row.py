"""Operators one by one, a few rows at a time: cuts for fast memories that nothing else fits into.

Every tensor goes through the slow memory. The engine brings rows of the next step while the core computes the
current one: tiling with double buffers, as in DORY (IEEE TC 2021).
"""

from __future__ import annotations

from collections.abc import Iterator

from mcudeploy.ir.plan import Schedule
from mcudeploy.planner.search.best_first import Candidate
from mcudeploy.planner.search.cuts import ROWS_TRIED, Cut, Space, State
from mcudeploy.planner.search.segments import Segments
from mcudeploy.planner.search.task import SearchTask
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import WorkBytes, live_peak

_SHARES = (0.9, 0.5, 0.3)
"""Fractions of the fast memory that a step may take; the rest is for transfers in the meantime."""


def row_by_row(task: SearchTask) -> Iterator[Candidate]:
    """Yield candidates that cut each operator separately, within the latency limit with stalls."""
    space, work = task.space, task.min_scratch.work
    segments = Segments(space.flow, space.order, work)
    room = sum(task.board.room(memory) for memory in task.board.memories if memory.is_fast)
    for state in _states(space, work, room):
        if task.variants.ticks(space.step_rows(state)) <= task.most_latency:
            yield candidate_of(task, segments, state)


def candidate_of(task: SearchTask, segments: Segments, state: State) -> Candidate:
    """Return the candidate with these cuts, in the order of the simulated segments."""
    space = task.space
    tiled, steps = space.tiled(state), segments.steps(space.cut_segments(state))
    peak_bytes, peak_step = live_peak(tiled, steps, task.min_scratch.work)
    schedule, level_bytes = Schedule(steps, "feasible"), max(peak_bytes, task.sufficient_bytes)
    ticks = task.variants.ticks(space.step_rows(state))
    return Candidate(state, tiled, schedule, peak_bytes, peak_step, ticks, level_bytes)


def _states(space: Space, work: WorkBytes, room_bytes: int) -> Iterator[State]:
    """Yield states in which each operator is cut separately, into the most rows that fit."""
    seen: set[State] = set()
    for share in _SHARES:
        block_rows: dict[str, int] = {}
        cuts = []
        for place, position in enumerate(space.order):
            rows = _rows(space, work, position, block_rows, share * room_bytes)
            block_rows[space.flow.graph.operators[position].output] = rows
            if rows < space.most_rows[position]:
                cuts.append(Cut(place, place, rows, apart=True))
        if cuts and tuple(cuts) not in seen:
            seen.add(tuple(cuts))
            yield tuple(cuts)


def _rows(space: Space, work: WorkBytes, position: int, block_rows: dict[str, int], most_bytes: float) -> int:
    """Return the maximum rows of an operator's step, of those that are tried."""
    total = space.flow.iteration_rows[position]
    if space.most_rows[position] <= 1:
        return total
    tried = [rows for rows in (*ROWS_TRIED, total) if rows <= total]
    fitting = [
        rows for rows in tried if _step_bytes(space.flow, work, position, rows, block_rows) <= most_bytes
    ]
    return max(fitting, default=tried[0])


def _step_bytes(flow: Dataflow, work: WorkBytes, position: int, rows: int, block_rows: dict[str, int]) -> int:
    """Return the bytes that a step in the middle of an operator accesses: inputs, output, scratch."""
    operator = flow.graph.operators[position]
    output = flow.graph.tensors[operator.output]
    size = sum(work[operator.name]) + (
        output.size_bytes if operator.op.accumulates else rows * output.row_bytes
    )
    first = (flow.iteration_rows[position] - rows) // 2
    for reading in dict.fromkeys(flow.readings[position]):
        tensor = flow.graph.tensors[reading.root]
        lo, hi = (0, tensor.shape[0]) if reading.whole else reading.reach(first, first + rows)
        block = block_rows.get(reading.root, 1)
        size += min(-(-(hi - lo) // block) * block + block - 1, tensor.shape[0]) * tensor.row_bytes
    return size
