"""A row of the table of `plan_many`, and the job that plans it, in any process or on any machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AllowInfNan, FiniteFloat, NonNegativeFloat, NonNegativeInt

from mcudeploy.boards.board import Board
from mcudeploy.commands.keywords import Choices, options_of
from mcudeploy.commands.loaded import load_for
from mcudeploy.common.errors import DeployError, FitError, ModelError
from mcudeploy.common.text import plain
from mcudeploy.planner.fit import Fit, Way, estimated_latency
from mcudeploy.planner.hop_plans import find_hop_plans
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned, find_or_recall


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A model's plan on a board: its figures as in `ModelCost`, or `error`, the reason for no plan.

    `overhead_percent`: how much slower it is than the unsplit plan.
    """

    model: str
    board: str
    arena_bytes: NonNegativeInt | None = None
    unsplit_arena_bytes: NonNegativeInt | None = None
    ram_bytes: NonNegativeInt | None = None
    flash_bytes: NonNegativeInt | None = None
    ticks: NonNegativeInt | None = None
    unit: str | None = None
    milliseconds: Annotated[NonNegativeFloat, AllowInfNan(False)] | None = None
    overhead_percent: FiniteFloat | None = None
    error: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it has all sizes in bytes, or an error and no figures."""
        if self.error:
            return self == PlanRow(self.model, self.board, error=self.error)
        return None not in (self.arena_bytes, self.unsplit_arena_bytes, self.ram_bytes, self.flash_bytes)


@dataclass(frozen=True, slots=True)
class PlanJob:
    """The bytes of a model, to be planned on a board; without bytes, `fault` is the reason."""

    model: str
    content: bytes = field(repr=False)
    board: Board
    choices: Choices
    fault: str = ""

    def failed(self, reason: object) -> PlanRow:
        """Return the row of a model without a plan."""
        return PlanRow(self.model, self.board.name, error=plain(reason))


def planned_row(job: PlanJob) -> tuple[PlanRow, bool]:
    """Plan a model by the costs of the board's core, and return whether the row is conclusive.

    A row is conclusive if the model has a plan, is not supported, or does not fit. The cause of another
    error may be the computer.
    """
    if job.fault:
        return job.failed(job.fault), True
    try:
        loaded = load_for(job.content, job.board.isa, job.choices)
        try:
            planned = _plans(loaded.model, job.board, options_of(job.choices))
        finally:
            if loaded.folder is not None:
                loaded.folder.cleanup()
    except DeployError as error:
        row = job.failed("; ".join((str(error), *getattr(error, "__notes__", ()))))
        return row, isinstance(error, ModelError | FitError)
    if planned.interrupted:  # the best plan so far is not that of the whole search
        raise KeyboardInterrupt
    return _row(job, planned), True


def _plans(model: Model, board: Board, options: Options) -> Planned:
    find = find_or_recall if model.window is None else find_hop_plans
    return find(model, board, options)


def _row(job: PlanJob, planned: Planned) -> PlanRow:
    plan, base = planned.choices[0], planned.baseline
    model = planned.model_of(plan)
    latency = estimated_latency(plan, model, job.board)
    unsplit = estimated_latency(base, planned.model_of(base), job.board)
    overhead = None
    if latency is not None and unsplit is not None and unsplit.ticks:
        overhead = 100 * (latency.ticks / unsplit.ticks - 1)
    fit = Fit(job.board, (Way("split", plan, model, (), overhead or 0.0),), latency)
    return PlanRow(
        job.model,
        job.board.name,
        arena_bytes=plan.layout.arena_bytes,
        unsplit_arena_bytes=base.layout.arena_bytes,
        ram_bytes=fit.ram_bytes,
        flash_bytes=fit.flash_bytes,
        ticks=None if latency is None else round(latency.ticks),
        unit=None if latency is None else latency.unit,
        milliseconds=None if latency is None else latency.milliseconds,
        overhead_percent=overhead,
    )
