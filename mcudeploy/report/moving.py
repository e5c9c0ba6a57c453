"""Transfers between memories in an inference, and the core's waits: JSON objects."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mcudeploy.ir.engine import FLASH
from mcudeploy.ir.plan import Measurement, Plan, Sync, WorkSlice
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.traffic import by_core

JsonObject = dict[str, Any]


def transfers(view: PlanView, measured: Measurement | None) -> JsonObject:
    """Report transfers between different memories, by way and by engine, and the core's modelled waits in
    clocks.

    Waits are in steps, for the core's copies, and for engines. `percent`: of the latency, measured or else
    estimated.
    """
    plan = view.plan
    counts, sizes, engines = Counter[str](), Counter[str](), Counter[str]()
    for transfer in plan.layout.transfers:
        old, new = plan.layout.way(transfer)
        if old.memory != new.memory:
            way = f"{old.memory} to {new.memory}"
            counts[way] += 1
            sizes[way] += view.tiled.moved_bytes(plan.layout, transfer)
            engines[transfer.engine] += 1
    for _, loaded, pieces in plan.layout.in_pieces():
        way = f"{FLASH} to {loaded.place.memory}"
        counts[way] += pieces.transfers
        sizes[way] += pieces.total_bytes
        engines[pieces.engine] += pieces.transfers
    stalls, latency = plan.estimate.stalls, _latency(plan, measured)
    return {
        "count": counts.total(),
        "bytes": sizes.total(),
        "exposed_ticks": stalls.cycles,
        "direct_ticks": stalls.direct,
        "copies_ticks": stalls.copies,
        "waits_ticks": stalls.waits,
        "percent": 100 * stalls.cycles / latency if latency else None,
        "ways": {way: {"count": counts[way], "bytes": sizes[way]} for way in sorted(counts)},
        "engines": dict(sorted(engines.items())),
    }


def predicted(view: PlanView) -> JsonObject:
    """Report predicted bytes that the core loads and stores, by memory; counterpart of `traffic_counted`."""
    loads = by_core(view.tiled, view.plan.schedule.steps, view.work, view.plan.layout)
    return {name: {"loaded": loaded, "stored": stored} for name, (loaded, stored) in loads.items()}


def moves(view: PlanView) -> JsonObject:
    """Report all transfers, within a memory and between memories, and the bytes that they move in total."""
    moved = [view.tiled.moved_bytes(view.plan.layout, each) for each in view.plan.layout.transfers]
    return {"moves": len(moved), "moved_bytes": sum(moved)}


def _latency(plan: Plan, measured: Measurement | None) -> float:
    """Return the measured latency in ticks, or else the estimated one."""
    if measured is not None and measured.unit != "us":
        return measured.latency
    return plan.estimate.ticks


def parallel(plan: Plan, measured: Measurement | None) -> JsonObject | None:
    """Report each core's parts and waits; null if one core runs the plan.

    `one_core`: the same steps on core 0 alone. `total`: the sum over all cores. `busy`: each core's ticks.
    These are null if nothing was measured, or on a device, whose clock does not distinguish cores.
    """
    if not plan.lanes:
        return None
    cores = None if measured is None else measured.cores
    one_core = None if cores is None or measured is None else sum(each.ticks for each in measured.operators)
    return {
        "cores": len(plan.lanes),
        "parts": [sum(isinstance(each, WorkSlice) for each in lane) for lane in plan.lanes],
        "waits": [sum(isinstance(each, Sync) for each in lane) for lane in plan.lanes],
        "one_core": one_core,
        "total": cores and cores.total,
        "busy": cores and list(cores.busy),
        "speedup": one_core / measured.latency if one_core and measured is not None else None,
    }
