"""Plans that several cores run together: drawn, and run in threads that lose time at random, under the
sanitizer of threads, and compared with plans for one core.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np

from fuzzing import plans, programs
from fuzzing.plans import HOST, JudgedPlan, with_splits
from fuzzing.trips import MOST_STEPS, Outputs, Trip, difference_of, models, unsplit
from fuzzing.wandering import BOARDS, wandering
from mcudeploy.checker.judge import check
from mcudeploy.ir.plan import Plan, Sync, WorkSlice
from mcudeploy.planner.cores import parts
from mcudeploy.planner.cores.lanes import on_cores
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain.project import SoftEngine
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples

WAYS = ("unsplit", "split", "streamed", "cut", "cut", "moved", "again", "wandering", "wandering")
"""Methods for plans that are then shared out."""
_WORTHS = (1, 30, 400)
"""Number of iterations from which a step is shared out."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Statistics of the drawn plans."""

    parts: int
    columns: int
    awaits: int

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Figures:
        """Statistics of some plans."""
        entries = [entry for plan in plans for lane in plan.lanes for entry in lane]
        runs = [entry for entry in entries if isinstance(entry, WorkSlice)]
        columns = sum(part.columns is not None for part in runs)
        return cls(len(runs), columns, len(entries) - len(runs))


def awaits_of(plan: Plan) -> list[tuple[int, int]]:
    """The waits of the lanes, by core and place."""
    lanes = enumerate(plan.lanes)
    return [(core, at) for core, lane in lanes for at, it in enumerate(lane) if isinstance(it, Sync)]


def without(plan: Plan, core: int, at: int) -> Plan:
    """The plan without an entry of a lane."""
    lanes = list(plan.lanes)
    lanes[core] = (*lanes[core][:at], *lanes[core][at + 1 :])
    return replace(plan, lanes=tuple(lanes))


def shared_out(model: Model, way: str, seed: int, cores: int, worth: int = 1) -> JudgedPlan:
    """A plan by some method for `cores` cores, which passed the check."""
    with patch.object(parts, "_LEAST_ITERATIONS", worth):
        judged = _single_core_plan(replace(model, cores=cores), way, seed)
        plan = judged.plan
        judged = replace(judged, plan=plan if plan.lanes else on_cores(plan, judged.model.calls, cores))
    check(judged.plan, judged.model.work, judged.board)
    return judged


def _single_core_plan(model: Model, way: str, seed: int) -> JudgedPlan:
    """The plan, whose scratch has room for the model's cores; most have no core tapes."""
    if way in ("unsplit", "split", "streamed"):
        options = Options(time_limit=0.1, max_overhead=100, cores=model.cores)
        options = replace(options, split=way == "split", stream_input=way == "streamed")
        return plans.searched(way, model, HOST, options)
    if way != "wandering":
        return with_splits(dict(plans.others(model, unsplit(model), seed))[way]())
    random = Random(seed)
    start = _single_core_plan(model, random.choice(("unsplit", "cut", "again")), seed)
    if len(start.plan.schedule.steps) > MOST_STEPS:
        return start
    board = random.choice(BOARDS)
    plan = wandering(replace(start.plan, lanes=()), start.model.work, board, random, random.randint(1, 10))
    return replace(start, way=way, plan=plan, board=board)


def drawn(count: int, seed: int, among: int) -> list[Trip]:
    """`count` plans for 2 to 4 cores, of the first models."""
    random, trips = Random(seed), list[Trip]()
    while len(trips) < count:
        model, way = random.choice(models(among)), random.choice(WAYS)
        cores, worth, number = random.randint(2, 4), random.choice(_WORTHS), random.randrange(2**32)
        judged = shared_out(model, way, number, cores, worth)
        if len(judged.plan.schedule.steps) <= MOST_STEPS and awaits_of(judged.plan):
            name = f"{model.path.stem}, {way}, seed {number}, {cores} cores, worth {worth}"
            trips.append(Trip(name, unsplit(model), judged))
    return trips


def interleaved(
    trips: Sequence[Trip], folder: Path, runs: int, engine: SoftEngine | None = None
) -> Iterator[str]:
    """Faults of plans that each run `runs` times: races, deadlocks, and bits other than with one core."""
    bases = {id(trip.base): trip.base for trip in trips}
    of_base = {key: programs.write(base, f"base{at}", folder) for at, (key, base) in enumerate(bases.items())}
    shared = [programs.write(trip.judged, f"shared{at}", folder) for at, trip in enumerate(trips)]
    everything = [*of_base.values(), *shared]
    numbers = {it.symbol: at for at, it in enumerate(everything)}
    programs.compile_programs(everything, soft=engine is not None, threads=True)
    executable = programs.link(everything, folder, engine, threads=True)
    expected = {
        key: next(_outputs(base, executable, numbers[of_base[key].symbol], runs=1))
        for key, base in bases.items()
    }
    for trip, program in zip(trips, shared, strict=True):
        try:
            outputs = _outputs(trip.judged, executable, numbers[program.symbol], runs=runs)
            wrong = [difference_of(values, expected[id(trip.base)]) for values in outputs]
        except programs.RunError as error:
            yield f"{trip.name}: {error}"
            continue
        if any(wrong):
            yield f"{trip.name}: bytes that differ in {np.count_nonzero(wrong)} of {runs} runs: {max(wrong)}"


def _outputs(judged: JudgedPlan, executable: Path, number: int, *, runs: int) -> Iterator[Outputs]:
    """The outputs of each run, for inputs that are equal for all plans of a model."""
    storage, sample = Storage.of(judged.plan), load_samples(judged.model.graph, [], [], 1)[0]
    with programs.Runner(executable) as runner:
        runner.select(number, 1)
        for runner.seed in range(1, runs + 1):
            run_once(runner, storage, sample.stored)
            yield [storage.get_tensor(runner, it.tensor).tobytes() for it in judged.plan.graph.outputs]
