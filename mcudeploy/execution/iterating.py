"""Offloading with the device in the loop.

The first iteration is passive: it offloads on demand. The second is planned by the times of the first one's
steps. The others are feedback: a wait of the core makes its transfer begin earlier in the next iteration.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import OutputsDifferError
from mcudeploy.common.progress import Progress
from mcudeploy.common.text import count_text
from mcudeploy.costs.estimate import board_costs, estimated
from mcudeploy.costs.stalls import Pace
from mcudeploy.costs.tiles import CopyCost, move_price
from mcudeploy.costs.timeline import Stall, Timeline, fast_loads, timeline
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.running import Observation, run_on
from mcudeploy.ir.plan import Layout, Plan, Run
from mcudeploy.ir.plan import Wait as Waiting
from mcudeploy.ir.trace import Residency
from mcudeploy.planner.offload.feedback import earlier, with_late_triggers
from mcudeploy.planner.offload.iterations import SLACK, Iterations
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.place.solve import estimate
from mcudeploy.planner.search.placing import moves_ticks
from mcudeploy.verify.samples import Sample

_LOG = logging.getLogger(__name__)

_MOST = 8
"""Maximum number of iterations, beside the passive one."""

_SHARE = 0.15
"""Share of the remaining effort for the moves of one iteration."""

_ROOMS = (1.0, 0.97, 0.93, 0.88)
"""Shares of the room for earlier triggers, tried in turn until the plan packs."""

PlacedResidency = tuple[Residency, Layout]


@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """A plan that ran on the device.

    `waits`: the number of transfers that the core waited for. `percent`: the stalls, in percent of the
    latency. Both are modelled from the times of steps if the device's transfers take no time.
    """

    kind: str
    deployment: Deployment
    observed: Observation
    waits: int
    percent: float

    @property
    def ticks(self) -> float:
        """Latency and stalls."""
        return self.observed.measurement.latency + self.deployment.plan.estimate.exposed_ticks

    def __str__(self) -> str:
        return f"{self.kind}: {count_text(self.waits, 'wait')}, stalls {self.percent:.2f} % of the latency"


def between_memories(plan: Plan) -> bool:
    """Whether a plan has transfers from one memory to another."""
    ways = map(plan.layout.way, plan.layout.transfers)
    return any(old.memory != new.memory for old, new in ways)


def iterations(loop: Loop, reference: Observation) -> list[Iteration]:
    """Return the iterations of a deployment whose plan has transfers between memories.

    Each has passed the checker, and its outputs equal those of the reference, bit for bit. They end if the
    core waits for nothing, no transfer can begin earlier, or an iteration fails.
    """
    passed: list[Iteration] = []
    how = ", modelled from the measured steps (transfers take no time here)" if loop.target.emulated else ""
    for each in loop.run():
        loop.progress.stage(f"iteration {len(passed)}, {each}{how}")
        if not _same(each.observed, reference):
            raise OutputsDifferError(
                f"the outputs of iteration {len(passed)} ({each.kind}) are not those of the previous plan: "
                "this is a defect of mcudeploy"
            )
        passed.append(each)
    return passed


def _same(one: Observation, other: Observation) -> bool:
    outputs = other.outputs[0]
    return all(np.array_equal(values, outputs[name]) for name, values in one.outputs[0].items())


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """The common data of all iterations."""

    deployment: Deployment
    board: Board
    target: Target
    samples: list[Sample]
    effort: Effort
    progress: Progress
    price: CopyCost

    @classmethod
    def of(
        cls, deployment: Deployment, target: Target, samples: list[Sample], effort: Effort, progress: Progress
    ) -> Loop:
        """Return the loop of a deployment."""
        board = deployment.board.limited(deployment.planned.limits).reserving(
            deployment.plan.parameters.ram_bytes
        )
        return cls(deployment, board, target, samples[:1], effort, progress, _price(deployment))

    def run(self) -> Iterator[Iteration]:
        """Yield the iterations in turn."""
        plan, work = self.deployment.plan, self.deployment.model.work
        stage = Iterations.of_plan(self.deployment.view.tiled, plan, work, self.board, self._relocation)
        if stage is None:
            return
        current = stage.passive(self._relocation)
        for kind in ("passive", "planned", *(f"feedback {number}" for number in range(1, _MOST))):
            outcome = self._iteration(kind, stage, *current) if current else None
            if current is None or outcome is None:
                return
            iteration, cycles, seen = outcome
            yield iteration
            stage = stage.after(cycles)
            if kind == "passive":
                current = self._late(stage, stage.planned(self._relocation, self.effort))
            elif iteration.waits:
                current = self._next(stage, current[0], seen)
            else:
                return

    @property
    def _relocation(self) -> Budget:
        return Budget(self.price, self.effort.part(_SHARE))

    def _late(self, stage: Iterations, current: PlacedResidency | None) -> PlacedResidency | None:
        """Return the plan with the latest transfers that still end in time, if it packs."""
        if current is None:
            return None
        late = with_late_triggers(current[0], stage.link)
        layout = stage.layout(late, self._relocation)
        return current if layout is None else (late, layout)

    def _next(self, stage: Iterations, old: Residency, seen: Timeline) -> PlacedResidency | None:
        """Return the plan with earlier triggers by the latest times; None if that changes no transfer."""
        again = replace(old, trace=stage.trace)
        for share in _ROOMS:
            further = earlier(again, seen, int(stage.pair.room * share)) or again
            same = stage.prompted(further).transfers == stage.prompted(old).transfers
            layout = None if same else stage.layout(further, self._relocation)
            if layout is not None:
                return further, layout
        return None

    def _iteration(
        self, kind: str, stage: Iterations, residency: Residency, layout: Layout
    ) -> tuple[Iteration, Sequence[float], Timeline] | None:
        """Run a residency on the device; return the iteration, the times of its steps, and the waits.

        None if the checker refuses the plan.
        """
        old, work = self.deployment.plan, self.deployment.model.work
        predicted = estimate(self.deployment.view.tiled, old.schedule.steps, work, layout)
        plan = replace(old, layout=layout, estimate=predicted)
        try:
            check(plan, work, self.board)
        except PlanFaultError as error:
            _LOG.warning("warning: defect: the checker refuses an iteration: %s", error)
            return None
        observed = run_on(self.deployment.with_plan(plan), self.target, self.samples, self.progress)[1]
        cycles = step_times(plan, observed.entries)
        if self.target.emulated:
            outcome = replace(stage.prompted(residency), trace=stage.after(cycles).trace)
            seen = timeline(outcome, stage.link)
        else:
            seen = waited(plan, stage, residency, observed.entries)
        deployment = with_times(self.deployment.with_plan(plan), observed)
        percent = 100 * deployment.plan.estimate.exposed_ticks / observed.measurement.latency
        return Iteration(kind, deployment, observed, len(seen.waits), percent), cycles, seen


def with_times(deployment: Deployment, observed: Observation) -> Deployment:
    """Return a deployment whose plan has the ticks and stalls of the observed step times."""
    plan, board = deployment.plan, deployment.board.limited(deployment.planned.limits)
    tiled = deployment.view.tiled
    cycles, price = step_times(plan, observed.entries), _price(deployment)
    pace = Pace(board, sum(cycles) + moves_ticks(plan.layout, tiled, price), cycles, price)
    figures = estimate(tiled, plan.schedule.steps, deployment.model.work, plan.layout, pace)
    return deployment.with_plan(replace(plan, estimate=figures))


def _price(deployment: Deployment) -> CopyCost:
    return move_price(estimated(board_costs(deployment.board, deployment.planned.objective)))


def step_times(plan: Plan, entries: Sequence[int]) -> list[float]:
    """Return the times of the steps among those of the tape's entries, for the access trace."""
    return [float(ticks) for entry, ticks in zip(plan.tape, entries, strict=True) if isinstance(entry, Run)]


def waited(plan: Plan, stage: Iterations, residency: Residency, entries: Sequence[int]) -> Timeline:
    """Return the waits of a device with an engine: entries for waits that take longer than the shortest."""
    times = list(zip(plan.tape, entries, strict=True))
    idle = min((ticks for entry, ticks in times if isinstance(entry, Waiting)), default=0)
    now, starts, waits = 0.0, list[float](), list[Stall]()
    for entry, ticks in times:
        if isinstance(entry, Run):
            starts.append(now)
        elif isinstance(entry, Waiting) and ticks > idle + SLACK:
            transfer = plan.layout.transfers[entry.transfer]
            number = stage.item_transfer(residency, plan.layout, transfer)
            if number is not None:
                waits.append(Stall(len(starts), number, ticks - idle))
        now += ticks
    return Timeline((*starts, now), fast_loads(residency), tuple(waits), (), (0.0,) * len(starts))
