"""A plan's steps over time as a trace for Perfetto or chrome://tracing: a thread for each core."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mcudeploy.common.text import plain
from mcudeploy.costs.timeline import critical_path
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.clock import milliseconds, source_of
from mcudeploy.ir.plan import Measurement, Plan, Run, WorkSlice
from mcudeploy.report.times import step_times

Event = dict[str, Any]


def trace(deployment: Deployment, measured: Measurement | None) -> str:
    """Return the trace as JSON: times in microseconds at the board's clock.

    They come from measurements of the operators, or from estimates. Waits of cores for each other follow from
    the tapes.
    """
    alone = replace(deployment, model=replace(deployment.model, cores=1))
    times = step_times(alone, measured)
    spent = iter(times.ticks)
    ticks = [next(spent) if isinstance(entry, Run) else 0.0 for entry in deployment.view.entries]
    events = [*_threads(deployment), *_slices(deployment, ticks, times.unit)]
    about = {
        "model": plain(deployment.model.path.name),
        "board": deployment.board.name,
        "unit": times.unit,
        "milliseconds_by": source_of(times.unit),
        "times": "measured by operator" if times.measured else "estimated",
    }
    return json.dumps({"displayTimeUnit": "ms", "otherData": about, "traceEvents": events}, indent=0) + "\n"


def _threads(deployment: Deployment) -> Iterator[Event]:
    title = f"{plain(deployment.model.path.name)} on {deployment.board.name}"
    yield {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": title}}
    for core in range(max(1, len(deployment.plan.lanes))):
        yield {"ph": "M", "pid": 1, "tid": core, "name": "thread_name", "args": {"name": f"core {core}"}}


def _slices(deployment: Deployment, ticks: list[float], unit: str) -> Iterator[Event]:
    """Yield a complete event for each step, or for each core's part of it."""
    plan, tape = deployment.plan, deployment.view.entries
    for core, number, start, duration in _spans(plan, ticks):
        entry = tape[number]
        if not isinstance(entry, Run):
            continue
        operator = plan.graph.operators[entry.operator]
        begin, length = (1000 * milliseconds(it, unit, deployment.board.clock_hz) for it in (start, duration))
        yield {
            "ph": "X",
            "pid": 1,
            "tid": core,
            "name": plain(operator.name),
            "cat": operator.op.kind,
            "ts": round(begin, 4),
            "dur": round(length, 4),
            "args": {"block": entry.block, "kernel": plan.kernels.get(operator.name, ""), unit: duration},
        }


def _spans(plan: Plan, ticks: list[float]) -> Iterator[tuple[int, int, float, float]]:
    """Yield core, entry of the tape, begin and duration in ticks."""
    if not plan.lanes:
        now = 0.0
        for number, spent in enumerate(ticks):
            yield 0, number, now, spent
            now += spent
        return
    parts = [[each for each in lane if isinstance(each, WorkSlice)] for lane in plan.lanes]
    cells_of = defaultdict[int, int](int)
    for lane in parts:
        for part in lane:
            cells_of[part.entry] += _cells(part)
    shares = [[ticks[part.entry] * _cells(part) / cells_of[part.entry] for part in lane] for lane in parts]
    path = critical_path(plan.lanes, shares)
    for core, lane in enumerate(parts):
        for part, begin, spent in zip(lane, path.start[core], shares[core], strict=True):
            yield core, part.entry, begin, spent


def _cells(part: WorkSlice) -> int:
    """Return the size of a part of an entry, in rows, or columns of its one row; 1 for transfers."""
    return max(1, len(part.rows if part.columns is None else part.columns))
