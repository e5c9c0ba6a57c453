"""The search with the measurer in the loop: tiles timed on the device, the winner run as a whole."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mcudeploy import report
from mcudeploy.codegen.bench import all_kernels
from mcudeploy.deploy import Deployment, JsonObject, Observation, build_bench, run_on, telling
from mcudeploy.device import Target, open_device
from mcudeploy.errors import OutputsDifferError
from mcudeploy.measurer.costs import MeasuredTiles
from mcudeploy.measurer.database import Database
from mcudeploy.measurer.tile import KernelTable, Region, TileTimer
from mcudeploy.planner import Model, Options, Planned, find_plans, load_model
from mcudeploy.progress import SILENT, Progress
from mcudeploy.samples import Sample, load_samples
from mcudeploy.simulator.flow import Flow


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The plan that was chosen, what was observed of it and of the unsplit one, and what was predicted."""

    made: Deployment
    observed: Observation
    unsplit: Observation
    overhead: float
    predicted_overhead: float
    tried: int


def tune_model(
    path: Path, target: Target, options: Options, progress: Progress = SILENT
) -> tuple[Deployment, JsonObject]:
    """Find the plan with the least arena whose measured latency keeps the limit.

    The plans that the search hands on are run as a whole, the least arena first, until one keeps the limit;
    the unsplit plan always does. Raises OutputsDifferError where a plan's outputs are not those of the
    unsplit plan, bit for bit.
    """
    planned = _search(load_model(path, target.board, options.float_io), target, options, progress)
    base = Deployment.of(planned, planned.unsplit, target.board, options)
    samples = load_samples(base.model.graph, [], [], options.seed)
    tuned = _choose(planned, base, target, options, (samples, progress))
    measurement = report.latency(tuned.observed.measurement, tuned.unsplit.measurement)
    made = tuned.made
    return made, report.plan(made) | measurement | {
        "predicted_overhead_percent": tuned.predicted_overhead,
        "prediction_error_percent": tuned.overhead - tuned.predicted_overhead,
        "plans_run": tuned.tried,
        "stack_bytes": tuned.observed.measurement.stack_bytes,
    }


def _search(model: Model, target: Target, options: Options, progress: Progress) -> Planned:
    progress.stage(f"building the measurer for {target.board.name}")
    bench = build_bench(target)
    with ExitStack() as stack:
        device = stack.enter_context(open_device(target, bench))
        database = stack.enter_context(Database())
        kernels = KernelTable.of(device.session, all_kernels())
        flash, vectors = Region.of(target.board), target.board.vectors
        timer = TileTimer(device.session, kernels, flash=flash, vectors=vectors)
        sources: list[MeasuredTiles] = []

        def tiles(flow: Flow) -> MeasuredTiles:
            source = MeasuredTiles(flow, (target.board.name, bench.hash), database, timer)
            sources.append(stack.enter_context(source))
            return source

        planned = find_plans(model, target.board, options, tiles, telling(progress))
    counts = {
        "measured": sum(source.measured for source in sources),
        "cache_hits": sum(source.hits for source in sources),
    }
    return replace(planned, search=replace(planned.search, **counts))


def _choose(
    planned: Planned,
    base: Deployment,
    target: Target,
    options: Options,
    means: tuple[list[Sample], Progress],
) -> Tuned:
    samples, progress = means
    _, unsplit = run_on(base, target, samples, progress)
    limit = unsplit.measurement.latency * (1 + options.max_overhead / 100)
    for tried, plan in enumerate(planned.plans, 1):
        if plan is planned.unsplit:
            return Tuned(base, unsplit, unsplit, 0.0, 0.0, tried)
        made = Deployment.of(planned, plan, target.board, options)
        _, observed = run_on(made, target, samples, progress)
        _require_same(made, observed, unsplit)
        if observed.measurement.latency <= limit:
            overhead = 100 * (observed.measurement.latency / unsplit.measurement.latency - 1)
            predicted = 100 * (plan.estimate.ticks / planned.unsplit_ticks - 1)
            return Tuned(made, observed, unsplit, overhead, predicted, tried)
    raise ValueError("the unsplit plan is missing from the plans")


def _require_same(made: Deployment, observed: Observation, unsplit: Observation) -> None:
    for border in made.plan.graph.outputs:
        found, wanted = observed.outputs[0][border.tensor], unsplit.outputs[0][border.tensor]
        if not np.array_equal(found, wanted):
            raise OutputsDifferError(
                f"output {border.tensor} of the split plan differs from the unsplit one's in "
                f"{int((found != wanted).sum())} of {found.size} elements; this is a defect of mcudeploy"
            )
