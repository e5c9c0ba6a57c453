"""A model, a board, a plan and its program: the subject of all commands except the searches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from mcudeploy.boards.board import CODE_BYTES, Board
from mcudeploy.codegen.model_names import model_name
from mcudeploy.codegen.program import Program, make_program
from mcudeploy.codegen.program_schedule import ScheduleKind
from mcudeploy.codegen.render import Source, render_firmware
from mcudeploy.common.errors import BuildError, ConfigError, FitError, UsageError
from mcudeploy.costs.database import Database, RunKey, warn_of_database
from mcudeploy.device.guards import guarded
from mcudeploy.device.target import Target
from mcudeploy.execution.cycles.core import RULES_VERSION
from mcudeploy.execution.unit_model import note_functional_model
from mcudeploy.ir.clock import HARDWARE_UNITS
from mcudeploy.ir.plan import Measurement, Plan
from mcudeploy.planner.files import planfile
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned
from mcudeploy.planner.tape import footprint
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.locations import Locations
from mcudeploy.toolchain import Firmware, build_firmware
from mcudeploy.toolchain.firmware_build import firmware_hash
from mcudeploy.verify.compare import Storage

_WORTHWHILE_SHARE = 0.97
"""A second search is worthwhile if a plan that missed the limit has less than this share of the arena."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """A model, a board, and the plan that brings them together.

    `prefix`: of names in C. `flash_limit`: bytes that the user allows. `fuses_products`: as the board's, in
    its place. `change`: what a part of a library changes in the program. `joins`: whether a unit runs one
    stream for consecutive steps.
    """

    model: Model
    board: Board
    plan: Plan
    prefix: str
    planned: Planned
    flash_limit: int | None
    fuses_products: bool | None = None
    change: Callable[[Program], Program] | None = None
    joins: bool = True

    @classmethod
    def of(cls, planned: Planned, plan: Plan, board: Board, options: Options) -> Deployment:
        """Return the deployment of one of the plans found."""
        model = planned.model_of(plan)
        prefix = model_name(options.name, model.path.stem)
        return cls(model, options.aligned(board), plan, prefix, planned, options.flash_limit)

    @cached_property
    def view(self) -> PlanView:
        """The plan with the facts that follow from it."""
        return PlanView(self.plan, self.model.calls)

    @cached_property
    def storage(self) -> Storage:
        """The places of the plan's blocks in a machine."""
        return Storage(self.plan, self.view.tiled, Locations.of(self.plan.layout))

    @cached_property
    def program(self) -> Program:
        """The plan as C. Its constants take a second per million weights, so `plan` does without it."""
        return self._with_steps("steps")

    @cached_property
    def library_program(self) -> Program:
        """The program of a library: `program`, with a stream for consecutive steps of a unit."""
        return self._with_steps("streams")

    @cached_property
    def joined_steps(self) -> list[int]:
        """The step of firmware that contains each entry of the tape in `library_program`, and the end.

        Empty if libraries run the entries of the tape one by one.
        """
        streams, entries = self.view.streams, len(self.view.entries)
        return [entries + it for it in streams.steps_of(entries)] if self.joins and streams else []

    @cached_property
    def measured_program(self) -> Program:
        """The program of firmware: each step alone, then the steps of `library_program`."""
        return self._with_steps("both")

    def _with_steps(self, kind: ScheduleKind) -> Program:
        if kind != "steps" and not (self.joins and self.view.streams):
            return self.program
        program = make_program(self.view, self.prefix, self.board, kind)
        if self.fuses_products is not None:
            program = replace(program, fuses_products=self.fuses_products)
        return program if self.change is None else self.change(program)

    def with_plan(self, plan: Plan) -> Deployment:
        """Return the deployment of another plan."""
        if plan is self.plan:
            return self
        return replace(self, model=self.planned.model_of(plan), plan=plan)

    @property
    def fits(self) -> bool:
        """Whether the board has room for the plan."""
        return not footprint.missing(self.view, self.board, None)

    @property
    def estimated_overhead(self) -> float | None:
        """Percent over the latency of the unsplit plan; None if that was not estimated."""
        own, unsplit = self.plan.estimate, self.planned.baseline.estimate
        known = own.ticks and unsplit.ticks
        return 100 * (own.latency_ticks / unsplit.latency_ticks - 1) if known else None

    def overhead(self, measured: Measurement | None, unsplit: Measurement | None) -> float | None:
        """Return the overhead of this plan over the unsplit one in percent; None without times in one unit.

        The memories of an emulator are all equally fast, so modelled stalls are added to its times.
        """
        if measured is None or unsplit is None or unsplit.unit != measured.unit or not unsplit.latency:
            return None
        stalls = self.plan.estimate.exposed_ticks, self.planned.baseline.estimate.exposed_ticks
        own, base = (0.0, 0.0) if measured.unit in HARDWARE_UNITS else stalls
        return 100 * ((measured.latency + own) / (unsplit.latency + base) - 1)

    @property
    def source(self) -> Source:
        return Source(self.model.path.name, self.model.sha256)

    @property
    def patience_s(self) -> float:
        """Seconds that a run may take: a slow emulator executes ten million instructions a second."""
        elements = sum(tensor.elements for tensor in self.plan.graph.tensors.values())
        return 30 + (self.model.macs * 60 + elements * 300) / 1e7

    def build(self, target: Target, *, sanitize: bool = False) -> Firmware:
        """Build firmware with the measurer.

        The target may be the host, to check the same plan there, with its accesses checked by `sanitize`.
        """
        if not target.board.is_host:
            self._check_memories()
            note_functional_model(self.board)
        program = guarded(self.measured_program) if target.guards else self.measured_program
        files = render_firmware(program, self.plan, self.source)
        board = self.firmware_board(target)
        return build_firmware(board, files, program.sources, emulate=target.emulated, sanitize=sanitize)

    def firmware_board(self, target: Target) -> Board:
        """Return the board of a target with the stack that the program needs."""
        return target.board.with_more_stack(self.plan.form.stack_bytes)

    def require_flash(self, firmware: Firmware) -> None:
        """Raise FitError if a firmware exceeds the user's flash limit. Only a build gives the code's size."""
        used, limit = firmware.sizes.flash_bytes, self.flash_limit
        if limit is None or used <= limit:
            return
        least = footprint.weights_bytes(self.model.calls) > limit - CODE_BYTES
        way_out = f"Allow {used:,}" if least else "A smaller --flash-limit takes smaller constants"
        raise FitError(
            f"the firmware needs {used:,} bytes of flash, {firmware.sizes.code_bytes:,} of them code; the "
            f"limit is {limit:,}: {used - limit:,} too many. {way_out}."
        )

    def _check_memories(self) -> None:
        """Raise UsageError if an arena is in a memory that the board's firmware does not start."""
        for name, size in self.plan.layout.arenas.items():
            if size and not self.board.memory(name).started:
                raise UsageError(
                    f"the firmware for {self.board.name} does not start {name}: plan without it, or "
                    "`mcudeploy build --library-only` for a program that does."
                )

    def run_key(self, firmware_hash: int, *, modelled: bool = False) -> RunKey:
        """Return the key of this plan's measurement. `modelled`: by a cycle model, with waits for flash."""
        flash = self.board.flash
        rules = f"{RULES_VERSION}-{flash.read_cost!r}-{flash.cache_bytes}"
        firmware = f"{firmware_hash:08x}" + (f"-modelled-{rules}" if modelled else "")
        return RunKey(self.model.sha256, self.board.name, firmware, self._plan_digest)

    @cached_property
    def _plan_digest(self) -> str:
        return hashlib.sha256(planfile.plan_text(self.plan, self.model.sha256).encode()).hexdigest()

    def measured(self, *emulated: bool) -> Measurement | None:
        """Return an earlier measurement of this plan: emulated (True), on hardware (False), or either.

        None if there is none. A database that cannot be read causes a warning only: the plan does not need
        it.
        """
        try:
            with Database() as database:
                if not database.has_runs(self.model.sha256, self.board.name, self._plan_digest):
                    return None
                keys = self._run_keys(emulated or (False, True))
                runs = [database.run(each) for each in keys]
        except ConfigError as error:
            warn_of_database("no earlier measurement is shown", str(error))
            return None
        return next((measurement for measurement in runs if measurement is not None), None)

    def tighter_limit(self, limit: float) -> float | None:
        """Return the limit of estimates for a second search, in percent, if plans that missed `limit` are
        smaller than this one by enough.

        It is lower by the largest ratio of their measured to their estimated latency. None if no plan missed
        it, if Ctrl-C ended the search, or if no overhead is left.
        """
        planned, base = self.planned, self.planned.baseline.estimate.latency_ticks
        missed = tuple(takewhile(lambda plan: plan is not self.plan, planned.candidates))
        if not missed or not base or planned.interrupted:
            return None
        if missed[0].layout.arena_bytes > _WORTHWHILE_SHARE * self.plan.layout.arena_bytes:
            return None
        unsplit, ratios = self.measured_baseline(), []
        for plan in missed:
            known = self.with_plan(plan).measured()
            overhead = self.with_plan(plan).overhead(known, unsplit)
            if overhead is not None and plan.estimate.ticks:
                ratios.append((1 + overhead / 100) / (plan.estimate.latency_ticks / base))
        lower = 100 * ((1 + limit / 100) / max(ratios, default=1.0) - 1)
        return lower if 0 < lower < limit else None

    def smaller_plans(self, options: Options, search: Callable[[Options], Planned]) -> Planned | None:
        """Return the smaller plans of a second search, with `tighter_limit`, and this one after them.

        None if no second search is needed, or it finds no smaller plan.
        """
        lower = self.tighter_limit(self.planned.limit(options.overhead_limit))
        if lower is None:
            return None
        planned = search(replace(options, max_overhead=lower)).smaller_than(self.plan, self.planned)
        return None if planned.choices[0] is self.plan else planned

    def measured_baseline(self) -> Measurement | None:
        """Return the unsplit plan's measurement; None on a host, whose times depend on the system load."""
        if self.board.is_host:
            return None
        return self.with_plan(self.planned.baseline).measured()

    def _run_keys(self, emulated: Sequence[bool]) -> list[RunKey]:
        files = render_firmware(self.measured_program, self.plan, self.source)
        board = self.board.with_more_stack(self.plan.form.stack_bytes)  # as that of the firmware
        ways = [it for it in emulated if self.board.has_firmware(it)]
        cycles = self.planned.objective == "cycles"
        try:
            return [
                self.run_key(
                    firmware_hash(board, files, self.measured_program.sources, emulate=it),
                    modelled=cycles and it,
                )
                for it in ways
            ]
        except BuildError:  # without its compiler there are no measurements
            return []
