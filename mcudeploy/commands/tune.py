"""The search with the measurer in the loop: tiles are timed on the device, the best plans run as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mcudeploy.commands.commands import (
    plans_by_estimates,
    warn_of_memories,
    warn_of_notes,
    with_ways_out,
)
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import FitError, LatencyError, OutputsDifferError
from mcudeploy.common.progress import SILENT, Progress, search_report
from mcudeploy.common.text import count_text
from mcudeploy.costs.estimate import per_instruction
from mcudeploy.costs.tiles import CallTile, CallTime
from mcudeploy.device.fleet import Fleet, Job
from mcudeploy.device.image import measured_tiles
from mcudeploy.device.target import Target, require_port
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.iterating import Loop, between_memories, iterations, with_times
from mcudeploy.execution.results import Tuned
from mcudeploy.execution.running import Observation, Place, observe, retimed, store_measurement
from mcudeploy.execution.unit_model import require_no_unit
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import Plan, Search
from mcudeploy.planner.model.model import Model, read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned, find_plans
from mcudeploy.toolchain import Firmware
from mcudeploy.verify.samples import Sample, load_samples

_PREFETCH_SHARE = 2
"""Timing before the search takes at most the time limit divided by this; the search needs the rest."""


def tune_model(path: Path, targets: Sequence[Target], options: Options, progress: Progress = SILENT) -> Tuned:
    """Find the plan with the least arena whose measured latency keeps the limit.

    The search begins with the result of `plan`. `targets` are one or more devices of one board; they share
    the measuring. Plans run as a whole, the least arena first, until one keeps the limit; the unsplit plan
    always does. If a device fails, the others take over its work; the last one's error is raised.
    Raises LatencyError if a stored plan misses the limit, since no other plan is searched for.
    Raises OutputsDifferError if a plan's outputs differ from those of the unsplit plan in any bit.
    """
    fleet = Fleet(targets)
    for target in targets:
        require_port(target)
    model = read_model(path, options, isa=fleet.first.board.isa)
    warn_of_notes(model)
    warn_of_memories(fleet.first.board, options)
    planned = _search(model, fleet, options, progress)
    chosen = _choose(planned, fleet, options, progress)

    def search(tighter: Options) -> Planned:
        progress.stage(f"searching again, for at most {tighter.overhead_limit:.2f} % by times of tiles")
        same_rows = model.same_rows(chosen.deployment.plan.graph)
        return _search(same_rows, fleet, tighter, progress, choose_rows=False)

    smaller = chosen.deployment.smaller_plans(options, search)
    if smaller is not None:
        chosen = _choose(smaller, fleet, options, progress)
    tuned = fleet.on_one(lambda target: _iterated(chosen, target, options, progress))
    return replace(tuned, measurers=len(targets))


def _iterated(tuned: Tuned, target: Target, options: Options, progress: Progress) -> Tuned:
    """Return the chosen plan, or one of its iterations with the device in the loop if that is faster.

    Iterations exist if blocks leave a memory and come back, and one core runs the plan without loads. Latency
    includes stalls.
    """
    plan = tuned.deployment.plan
    if target.board.is_host or plan.lanes or plan.layout.constants or not between_memories(plan):
        return tuned
    samples = load_samples(tuned.deployment.model.graph, [], [], options.seed)
    effort = Effort.of(options.time_limit)
    loop = Loop.of(tuned.deployment, target, samples, effort, progress)
    passed = iterations(loop, tuned.observed)
    unsplit = None if tuned.unsplit is None else tuned.unsplit.measurement
    limit = tuned.deployment.planned.limit(options.overhead_limit)
    within = [
        one for one in passed if _keeps(one.deployment.overhead(one.observed.measurement, unsplit), limit)
    ]
    best = min(within, key=lambda one: one.ticks, default=None)
    chosen = with_times(tuned.deployment, tuned.observed)
    ticks = tuned.observed.measurement.latency + chosen.plan.estimate.exposed_ticks
    if best is None or best.ticks >= ticks:
        return replace(tuned, deployment=chosen, iterations=passed)
    return replace(tuned, deployment=best.deployment, observed=best.observed, iterations=passed)


def _keeps(overhead: float | None, limit: float) -> bool:
    return overhead is None or overhead <= limit


def _search(
    model: Model, fleet: Fleet, options: Options, progress: Progress, *, choose_rows: bool = True
) -> Planned:
    """Return plans by times of tiles on the devices; the search begins with the result of `plan`.

    `choose_rows`: if the model's window moves, choose the rows to keep as well.
    """
    board, emulated = fleet.first.board, fleet.first.emulated
    require_no_unit(board, "tune", "use `mcudeploy run`")
    estimated: Planned | None = None
    start = None
    if options.split and not options.states_plan:
        estimated = plans_by_estimates(model, board, options, progress, choose_rows=choose_rows)
        if estimated.interrupted:
            return estimated
        start = estimated.choices[0]
        model = model.same_rows(start.graph)
        options = replace(options, max_overhead=estimated.limit(options.overhead_limit))
    unit = options.unit_on(board) if emulated else "instructions"
    paces = per_instruction(board, unit)
    progress.stage(f"building the measurer for {board.name}")
    with measured_tiles(fleet) as measured:

        def convert(ticks: float) -> float:
            # Instructions repeat exactly, ticks of an emulator to one or two. Both include the tape's work.
            return board.instructions(round(ticks)) if emulated else ticks

        def tiles(graph: Graph, wanted: Iterable[CallTile]) -> CallTime:
            share = options.time_limit / _PREFETCH_SHARE
            measured.prefetch(graph, wanted, share, progress.advance)
            ticks_of, pace = measured.of(graph), paces(graph)
            return lambda *tile: convert(ticks_of(*tile)) * pace(*tile)

        def counted(search: Search) -> Search:
            return replace(search, measured=measured.measured, cache_hits=measured.hits)

        progress.stage(
            f"timing tiles on {board.name}" + (f", {len(fleet)} of them" if len(fleet) > 1 else "")
        )
        report = search_report(progress, counted)
        try:
            planned = find_plans(model, board, options, tiles, start=start, report=report, progress=progress)
        except FitError as error:
            raise with_ways_out(error, model, board, options, progress) from error
    planned = replace(planned, search=counted(planned.search))
    return planned if estimated is None else planned.with_rows_of(estimated)


def _choose(planned: Planned, fleet: Fleet, options: Options, progress: Progress) -> Tuned:
    """Return the first plan whose measured latency keeps the limit; each device runs one plan at a time.

    A plan whose prediction is at least that of a plan that missed the limit is skipped. If the unsplit plan
    does not fit the board, there is nothing to compare with, and the first plan is chosen.
    """

    def deployed(plan: Plan) -> Deployment:
        return Deployment.of(planned, plan, fleet.first.board, options)

    base = deployed(planned.baseline)
    samples = load_samples(base.model.graph, [], [], options.seed)
    waiting = list(planned.candidates)
    bases = [base] if base.fits else []
    first = max(1, len(fleet) - len(bases))
    batch, waiting = [deployed(plan) for plan in waiting[:first]], waiting[first:]
    observed = _run_all([*bases, *batch], fleet, samples, progress)
    unsplit = observed.pop(0) if bases else None
    tried, missed_ticks, limit = 0, math.inf, planned.limit(options.overhead_limit)
    while batch:
        for deployment, observation in zip(batch, observed, strict=True):
            ticks = deployment.plan.estimate.latency_ticks
            if ticks >= missed_ticks:
                continue
            tried += 1
            if unsplit is None:
                return Tuned(deployment, observation, None, tried)
            _require_same(deployment, observation, unsplit)
            overhead = deployment.overhead(observation.measurement, unsplit.measurement)
            if _keeps(overhead, limit):
                return Tuned(deployment, observation, unsplit, tried)
            missed_ticks = ticks or missed_ticks
        waiting = [plan for plan in waiting if plan.estimate.latency_ticks < missed_ticks]
        batch = [deployed(plan) for plan in waiting[: len(fleet)]]
        waiting = waiting[len(fleet) :]
        observed = _run_all(batch, fleet, samples, progress)
    if unsplit is not None and planned.offers_baseline:
        return Tuned(base, unsplit, unsplit, tried + 1)
    subject = (
        f"the plan of {options.plan_file}" if options.plan_file else "the fastest plan within --ram-limit"
    )
    raise LatencyError(
        f"{subject} takes {overhead:+.2f} % of the unsplit plan's time, the limit is {round(limit, 2):g} %. "
        "Search for another (--split), or raise --max-overhead"
    )


def _run_all(
    batch: Sequence[Deployment], fleet: Fleet, samples: list[Sample], progress: Progress
) -> list[Observation]:
    """Measure each deployment, one per device at a time, and store the observations."""
    if not batch:
        return []
    target = fleet.first
    progress.stage(f"building firmware for {target.board.name}")
    firmwares = [deployment.build(target) for deployment in batch]
    for deployment, firmware in zip(batch, firmwares, strict=True):
        deployment.require_flash(firmware)
    progress.stage(f"running on {target.title}")

    def job(deployment: Deployment, firmware: Firmware) -> Job[Observation]:
        return Job(
            firmware,
            deployment.patience_s,
            lambda device, on: observe(device, on, deployment, samples, SILENT),
        )

    observed = fleet.each([job(*each) for each in zip(batch, firmwares, strict=True)])
    for number, (deployment, firmware) in enumerate(zip(batch, firmwares, strict=True)):
        observed[number] = retimed(observed[number], deployment, Place(target, firmware), samples[0])
        store_measurement(deployment, firmware, observed[number])
    return observed


def _require_same(deployment: Deployment, observed: Observation, unsplit: Observation) -> None:
    for io in deployment.plan.graph.outputs:
        outputs, wanted = observed.outputs[0][io.tensor], unsplit.outputs[0][io.tensor]
        if not np.array_equal(outputs, wanted):
            raise OutputsDifferError(
                f"output {io.tensor} of the split plan differs from the unsplit one's in "
                f"{int((outputs != wanted).sum())} of {count_text(outputs.size, 'element')}; "
                f"this is a defect of mcudeploy"
            )
