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
from mcudeploy.cost.tiles import BlockTimes, schedule_ticks
from mcudeploy.ir.plan import Schedule, Step
from mcudeploy.planner.search.best_first import Candidate
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes, live_peak, lives

Drops = Mapping[int, frozenset[str]]
"""By position of an operator, the tensors whose blocks are dropped while it runs, unless it accesses them."""

_MOST_ROUNDS = 24

_UNITS = 12
"""Effort of a try, for each step of the schedule."""


@dataclass(frozen=True, slots=True, eq=False)
class _DropState:
    candidate: Candidate
    drops: Drops


def recompute(
    base: Candidate,
    costs: BlockTimes,
    work: WorkBytes,
    most_ticks: float,
    effort: Effort,
) -> Candidate | None:
    """Return the candidate with repeated steps, if these lower its peak within a latency."""
    state = _DropState(base, {})
    for _ in range(_MOST_ROUNDS):
        drops_tried = takewhile(lambda _: _begin(base, effort), _wider(state))
        options = (_tried(base, drops, costs, work) for drops in drops_tried)
        within = [one for one in options if one.candidate.ticks <= most_ticks]
        best = min(within, key=lambda one: (one.candidate.peak_bytes, one.candidate.ticks), default=state)
        if best.candidate.peak_bytes >= state.candidate.peak_bytes:
            break
        state = best
    return state.candidate if state.drops else None


def _begin(base: Candidate, effort: Effort) -> bool:
    """Spend the effort of one more try; return whether there is enough."""
    effort.spend(_UNITS * len(base.schedule.steps))
    return not effort.is_spent()


def _wider(state: _DropState) -> Iterator[Drops]:
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
    found = lives(tiled, steps)
    touched = set(_read(tiled, steps[time])) | {tiled.written(steps[time].operator, steps[time].block)}
    names = []
    for name in _repeatable(tiled):
        base = tiled.first_block[name]
        if any(
            block not in touched and any(time in life for life in found.of(block))
            for block in range(base, base + tiled.block_count(name))
        ):
            names.append(name)
    return names


def _repeatable(tiled: TiledGraph) -> list[str]:
    """Return tensors that steps can compute twice.

    These are not written or read by the application, no running sums, and not read by the update of a state.
    """
    outputs = {tiled.flow.roots[border.tensor] for border in tiled.graph.outputs}
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


def _tried(base: Candidate, drops: Drops, costs: BlockTimes, work: WorkBytes) -> _DropState:
    tiled = base.tiled
    steps = _repeated(tiled, base.schedule.steps, drops)
    peak_bytes, peak_step = live_peak(tiled, steps, work)
    before = schedule_ticks(tiled, base.schedule.steps, costs)
    ticks = base.ticks + schedule_ticks(tiled, steps, costs) - before
    schedule = Schedule(steps, "feasible")
    made = replace(base, schedule=schedule, peak_bytes=peak_bytes, peak_step=peak_step, ticks=ticks)
    return _DropState(made, drops)


def _repeated(tiled: TiledGraph, steps: tuple[Step, ...], drops: Drops) -> tuple[Step, ...]:
    """Return the schedule with the steps that rematerialise dropped blocks before those that read them."""
    makers = {
        tiled.written(position, block): Step(position, block)
        for position, count in enumerate(tiled.step_counts)
        for block in range(count)
    }
    blocks = {
        position: frozenset(
            block
            for name in names
            for block in range(tiled.first_block[name], tiled.first_block[name] + tiled.block_count(name))
        )
        for position, names in drops.items()
    }
    made: set[int] = set()
    absent: set[int] = set()
    result: list[Step] = []

    def run(step: Step) -> None:
        for block in _read(tiled, step):
            if block in absent:
                absent.discard(block)
                run(makers[block])
        result.append(step)
        written = tiled.written(step.operator, step.block)
        made.add(written)
        absent.discard(written)

    for step in steps:
        run(step)
        if step.operator in blocks:
            kept = {tiled.written(step.operator, step.block), *_read(tiled, step)}
            absent |= (blocks[step.operator] & made) - kept
    return tuple(result)
