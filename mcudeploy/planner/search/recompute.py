"""Recompute: drop the blocks of a tensor while an operator that does not read them runs, then rematerialise.

A split shares the halo between its parts, so the halo is live while everything after it runs. If that is at
the peak and time is left, the halo is recomputed instead: its steps run a second time. Method: recompute as a
realisation of a split in Peking University's published patent. The candidates are ranked as in Capuchin
(ASPLOS'20), by bytes freed at the peak.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from mcudeploy.common.effort import Effort
from mcudeploy.costs.tiles import BlockTimes, schedule_ticks
from mcudeploy.ir.plan import Schedule, Step
from mcudeploy.planner.search.best_first import Candidate
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes, live_peak, lives

Drops = Mapping[int, frozenset[str]]
"""By position of an operator, the tensors whose blocks are dropped while it runs, unless it accesses them."""

_MOST_ROUNDS = 24

_STEP_UNITS, _PEAK_UNITS = 2, 4
"""Effort of a try, for each step of the schedule: to repeat steps, and to find the peak."""


@dataclass(frozen=True, slots=True, eq=False)
class Recomputed:
    """A candidate with repeated steps, the candidate without them, and the tensors that are dropped.

    `is_final`: no further drop lowers the peak.
    """

    base: Candidate
    candidate: Candidate
    drops: Drops
    is_final: bool = False

    @classmethod
    def of(cls, base: Candidate) -> Recomputed:
        """Return a candidate that repeats no step yet."""
        return cls(base, base, {})


def recompute(
    state: Recomputed,
    costs: BlockTimes,
    work: WorkBytes,
    most_ticks: float,
    effort: Effort,
) -> Recomputed:
    """Return the candidate with more repeated steps, if these lower its peak within a latency."""
    base = state.base
    tiled, once = base.tiled, base.schedule.steps
    producers, once_ticks = _producers(tiled), schedule_ticks(tiled, once, costs)

    def tried(drops: Drops) -> Iterator[Recomputed]:
        """Yield the state with these drops if it keeps the latency."""
        effort.spend(_STEP_UNITS * len(once))
        steps = _repeated(tiled, once, drops, producers)
        ticks = base.ticks + schedule_ticks(tiled, steps, costs) - once_ticks
        if ticks <= most_ticks:
            effort.spend(_PEAK_UNITS * len(steps))
            peak_bytes, peak_step = live_peak(tiled, steps, work)
            schedule = Schedule(steps, "feasible")
            better = replace(base, schedule=schedule, peak_bytes=peak_bytes, peak_step=peak_step, ticks=ticks)
            yield Recomputed(base, better, drops)

    for _ in range(_MOST_ROUNDS):
        drops_tried = takewhile(lambda _: not effort.is_spent(), _wider(state))
        within = [one for drops in drops_tried for one in tried(drops)]
        best = min(within, key=lambda one: (one.candidate.peak_bytes, one.candidate.ticks), default=state)
        if best.candidate.peak_bytes >= state.candidate.peak_bytes:
            return replace(state, is_final=not effort.is_spent())
        state = best
    return state


def _wider(state: Recomputed) -> Iterator[Drops]:
    """Yield drops with one more tensor, or one and its inputs, while the operator at the peak runs."""
    candidate = state.candidate
    tiled, steps = candidate.tiled, candidate.schedule.steps
    peak_operator = candidate.peak_operator
    before = state.drops.get(peak_operator, frozenset())
    idle = _idle_at(tiled, steps, candidate.peak_step)
    for name in idle:
        group = {name}
        for operator in reversed(tiled.graph.operators):
            if operator.output in group:
                group |= {tiled.flow.roots[read] for read in operator.inputs} & set(idle)
        for added in ({name}, group):
            yield {**state.drops, peak_operator: before | added}


def _idle_at(tiled: TiledGraph, steps: tuple[Step, ...], time: int) -> list[str]:
    """Return idle tensors at a step: one of their blocks is live, not accessed, and can be rematerialised."""
    all_lives = lives(tiled, steps)
    touched = set(_read(tiled, steps[time])) | {tiled.written(steps[time].operator, steps[time].block)}
    names = []
    for name in repeatable(tiled):
        base = tiled.first_block[name]
        if any(
            block not in touched and any(time in life for life in all_lives.of(block))
            for block in range(base, base + tiled.block_count(name))
        ):
            names.append(name)
    return names


def repeatable(tiled: TiledGraph) -> list[str]:
    """Return tensors that steps can compute twice.

    The application does not access them, they are not running sums, and no update of a state reads them.
    """
    outputs = {tiled.flow.roots[io.tensor] for io in tiled.graph.outputs}
    states = {name for state in tiled.graph.states for name in (state.tensor, *state.through)}
    return [
        one.output
        for one in tiled.graph.operators
        if one.inputs
        and not one.op.is_view
        and not one.op.accumulates
        and one.output not in outputs
        and states.isdisjoint(one.inputs)
    ]


def _read(tiled: TiledGraph, step: Step) -> Iterator[int]:
    for lo, hi in tiled.reads[tiled.first_step[step.operator] + step.block]:
        yield from range(lo, hi)


def _producers(tiled: TiledGraph) -> dict[int, Step]:
    """Return the step that writes each block."""
    return {
        tiled.written(position, block): Step(position, block)
        for position, count in enumerate(tiled.step_counts)
        for block in range(count)
    }


def _repeated(
    tiled: TiledGraph, steps: tuple[Step, ...], drops: Drops, producers: Mapping[int, Step]
) -> tuple[Step, ...]:
    """Return the schedule with the steps that rematerialise dropped blocks before those that read them."""
    blocks = {
        position: frozenset(
            block
            for name in names
            for block in range(tiled.first_block[name], tiled.first_block[name] + tiled.block_count(name))
        )
        for position, names in drops.items()
    }
    blocks_written: set[int] = set()
    absent: set[int] = set()
    result: list[Step] = []

    def run(step: Step) -> None:
        for block in _read(tiled, step) if absent else ():
            if block in absent:
                absent.discard(block)
                run(producers[block])
        result.append(step)
        written = tiled.written(step.operator, step.block)
        blocks_written.add(written)
        absent.discard(written)

    for step in steps:
        run(step)
        if step.operator in blocks:
            kept = {tiled.written(step.operator, step.block), *_read(tiled, step)}
            absent |= (blocks[step.operator] & blocks_written) - kept
    return tuple(result)
