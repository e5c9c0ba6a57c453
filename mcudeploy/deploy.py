"""The whole flow: model and board in, verified and measured program out. One function per command."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcudeploy import chart, planfile, report
from mcudeploy.bench import build_bench, known_times, measured_tiles
from mcudeploy.board import Board, load_board
from mcudeploy.choosing import KnownSource, alternatives
from mcudeploy.codegen.ctext import model_name
from mcudeploy.codegen.library import write_library
from mcudeploy.codegen.program import Program, make_program
from mcudeploy.codegen.render import Source, render_firmware
from mcudeploy.device import Device, Target, open_device, require_port
from mcudeploy.errors import BuildError, ConfigError, ModelError
from mcudeploy.measurer.database import Database, RunKey
from mcudeploy.model import Model, load_model
from mcudeploy.placing import unsplit_plan
from mcudeploy.plan import Form, Measurement, OperatorTime, Plan, Search
from mcudeploy.planner import Options, Planned, find_plans
from mcudeploy.progress import SILENT, Progress, telling
from mcudeploy.samples import Sample, load_samples
from mcudeploy.targets import Firmware, build_firmware
from mcudeploy.targets.build import firmware_hash
from mcudeploy.targets.flashing import flash_command
from mcudeploy.timing.core import Core
from mcudeploy.timing.profile import core_of, profile
from mcudeploy.timing.report import cycles_report
from mcudeploy.verdict import judge
from mcudeploy.verify import Storage, fed_runs, run_once

JsonObject = dict[str, Any]
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """A model, a board, and the plan that brings them together."""

    model: Model
    board: Board
    plan: Plan
    program: Program
    unsplit: Plan
    unsplit_model: Model
    search: Search
    costs_of: str | None

    @classmethod
    def of(cls, planned: Planned, plan: Plan, board: Board, options: Options) -> Deployment:
        """One of the plans that were found, and the program that it becomes."""
        model = planned.model_of(plan)
        name = model_name(options.name, model.path.stem)
        program = make_program(plan, model.calls, name, board)
        unsplit_model = planned.model_of(planned.unsplit)
        found, costs_of = planned.search, planned.costs_of
        return cls(model, board, plan, program, planned.unsplit, unsplit_model, found, costs_of)

    @property
    def source(self) -> Source:
        return Source(self.model.path.name, self.model.sha256)

    @property
    def patience_s(self) -> float:
        """How long a run may take: a slow emulator makes ten million instructions a second."""
        elements = sum(tensor.elements for tensor in self.plan.graph.tensors.values())
        return 30 + (self.model.macs * 60 + elements * 300) / 1e7

    def build(self, target: Target) -> Firmware:
        """Firmware with the measurer; the target may be the host, to check the same plan there."""
        files = render_firmware(self.program, self.plan, self.source)
        return build_firmware(target.board, files, self.program.kernels, emulate=target.emulated)

    def run_key(self, firmware_hash: int) -> RunKey:
        """What a measurement of this plan is stored under."""
        digest = hashlib.sha256(planfile.plan_text(self.plan, self.model.sha256).encode()).hexdigest()
        return RunKey(self.model.sha256, self.board.name, f"{firmware_hash:08x}", digest)

    def measured(self) -> Measurement | None:
        """What was measured of this plan before: on hardware, else emulated; None where it never was.

        A database that cannot be read is warned of: the plan at hand is worth more than its history.
        """
        hashes = self._firmware_hashes()
        try:
            with Database() as database:
                found = [database.run(self.run_key(each)) for each in hashes]
        except ConfigError as error:
            _LOG.warning("warning: no earlier measurement is shown: %s", error)
            return None
        return next((measurement for measurement in found if measurement is not None), None)

    def yardstick(self) -> Measurement | None:
        """What was measured of the unsplit plan; None on a host, whose times hang on what else runs."""
        if self.board.is_host:
            return None
        return self.measured() if self.plan is self.unsplit else self.unsplit_deployment().measured()

    def unsplit_deployment(self) -> Deployment:
        """The same with the unsplit plan."""
        model = self.unsplit_model
        program = make_program(self.unsplit, model.calls, self.program.prefix, self.board)
        return replace(self, model=model, plan=self.unsplit, program=program)

    def _firmware_hashes(self) -> list[int]:
        files = render_firmware(self.program, self.plan, self.source)
        forms = [emulate for emulate in (False, True) if self.board.has_form(emulate)]
        try:
            return [firmware_hash(self.board, files, self.program.kernels, emulate=form) for form in forms]
        except BuildError:  # without its compiler nothing can have been measured
            return []


def plan_model(
    path: Path,
    board: Board,
    options: Options,
    progress: Progress = SILENT,
) -> Deployment:
    """Cut, order and place a model on a board; the plan has passed the checker. Raises FitError."""
    model_name(options.name, path.stem)  # refused before the search, not after it
    model = load_model(path, options.float_io, vectors=board.vectors)
    planned = find_plans(
        model, board, options, told=telling(progress), progress=progress, known=known_times(board)
    )
    return Deployment.of(planned, planned.plans[0], board, options)


def check_model(path: Path, board: Board | None, options: Options) -> JsonObject:
    """What of a model can be deployed, and its sizes. Unsupported nodes are part of the report."""
    try:
        model = load_model(path, options.float_io, vectors=board is not None and board.vectors)
    except ModelError as error:
        if not error.problems:
            raise
        return report.unsupported(error)
    plan = unsplit_plan(model, board or load_board("host"))
    return report.check(model, plan, board)


def plan_report(made: Deployment) -> JsonObject:
    """The JSON object of `plan`; its latency is what was measured of this very plan before."""
    return report.plan(made) | report.latency(made.measured(), made.yardstick())


def save_plan(made: Deployment, path: Path) -> None:
    """Write the plan for `plan_file`."""
    planfile.save_plan(made.plan, made.model.sha256, path)


def save_chart(made: Deployment, path: Path) -> None:
    """Write a picture of the plan, the arena over steps; the file's ending says whether SVG or HTML."""
    chart.save(chart.draw(made.plan, made.model.work, made.model.path.name), path)


def build_model(path: Path, board: Board, options: Options, directory: Path) -> JsonObject:
    """Write the C library of a model into a folder, and the firmware where the board has one."""
    made = plan_model(path, board, options)
    firmware = None if board.facts_only else made.build(Target(board))
    elf = firmware.elf if firmware is not None else None
    files = write_library(made.program, made.plan, made.source, directory, elf)
    return report.build(made, firmware, files)


def flash_board(path: Path | None, target: Target, options: Options, dry_run: bool) -> JsonObject:
    """Build and flash a model's firmware, or the measurer alone; `dry_run` only names the command."""
    if not dry_run:
        require_port(target)
    firmware = build_bench(target) if path is None else plan_model(path, target.board, options).build(target)
    if dry_run:
        command = flash_command(target.board, firmware.elf, target.port, emulate=target.emulated)
        return report.flash(firmware, target.port, command)
    with open_device(target, firmware) as device:
        return report.flash(firmware, device.port, None)


def measure_model(
    path: Path, target: Target, options: Options, *, cycles: bool = False, progress: Progress = SILENT
) -> JsonObject:
    """Time every operator of a model on the device; its input is drawn from the seed.

    Before that, unless a plan is given, every variant of its kernels is timed that never was, and the plan
    takes the fastest. `cycles`: model them. Raises ConfigError for a target that has no cycle model.
    """
    core = core_of(target) if cycles else None
    require_port(target)
    if options.plan_file is None and not target.board.is_host:
        _time_variants(path, target, options, progress)
    made = plan_model(path, target.board, options, progress)
    samples = load_samples(made.model.graph, [], [], options.seed)
    firmware, observed = run_on(made, target, samples, progress)
    return _measured(made, firmware, observed, _Modelled(core, target, samples[0], progress))


def _time_variants(path: Path, target: Target, options: Options, progress: Progress) -> None:
    """Have the times of all kernels that are to be chosen from in the database."""
    model = load_model(path, options.float_io, vectors=target.board.vectors)
    known = known_times(target.board)
    forms = (Form(options.stream_input), Form(options.stream_input, accumulating=True))
    models = [model.in_form(form) for form in forms]
    if not any(_unknown(one, known) for one in models):
        return
    progress.stage(f"timing kernels on {target.board.name}")
    with measured_tiles([target]) as measured:
        for one in models:
            measured.prefetch(one.graph, alternatives(one), options.time_limit, progress.advance)
    left = sorted(set().union(*(_unknown(one, known_times(target.board)) for one in models)))
    if left:
        _LOG.warning(
            "warning: the kernels of %s are chosen by estimates: they do not fit the arena for timing, or "
            "the time limit is too short",
            ", ".join(left),
        )


def _unknown(model: Model, known: KnownSource) -> set[str]:
    """The operators with variants that were never timed."""
    return {tile[0].name for tile in alternatives(model) if known(model.graph)(*tile) is None}


def run_model(
    path: Path,
    target: Target,
    options: Options,
    *,
    inputs: list[Path],
    expected: list[Path],
    cycles: bool = False,
    progress: Progress = SILENT,
) -> JsonObject:
    """Build, flash, run and verify. `verified` is in the report; a failed verification is no exception.

    `cycles`: model them. Raises ConfigError for a target that has no cycle model.
    """
    core = core_of(target) if cycles else None
    require_port(target)
    progress.stage(f"planning {path.name}")
    made = plan_model(path, target.board, options, progress)
    samples = load_samples(made.model.graph, inputs, expected, options.seed)
    progress.stage("checking every operator against ONNX Runtime")
    host = Target(load_board("host"))
    with open_device(host, made.build(host), made.patience_s) as machine:
        verdict = judge(machine, made.plan, path, samples, progress)
    firmware, observed = run_on(made, target, samples, progress)
    modelled = _Modelled(core, target, samples[0], progress)
    verdict = verdict.with_device(observed.outputs)
    return _measured(made, firmware, observed, modelled) | report.verdict(made, verdict)


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """What a device did: its timings, and the stored outputs of each sample by tensor name."""

    measurement: Measurement
    outputs: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class _Modelled:
    """What the cycle model needs; without a core it is not asked."""

    core: Core | None
    target: Target
    sample: Sample
    progress: Progress


def _measured(made: Deployment, firmware: Firmware, observed: Observation, asked: _Modelled) -> JsonObject:
    measurement = report.measurement(made, observed.measurement, firmware)
    if asked.core is not None:
        asked.progress.stage(f"counting instructions for a model of the {asked.core.name}")
        counted = profile(made.plan, asked.target, firmware, asked.sample.stored, made.patience_s)
        measurement |= cycles_report(counted, asked.core, measurement)
    return report.plan(made) | report.sizes(firmware) | measurement


def run_on(
    made: Deployment, target: Target, samples: list[Sample], progress: Progress
) -> tuple[Firmware, Observation]:
    """Build a deployment's firmware, run the samples on the target, keep what was measured."""
    progress.stage(f"building firmware for {target.board.name}")
    firmware = made.build(target)
    progress.stage(f"running on {target.board.name}")
    with open_device(target, firmware, made.patience_s) as device:
        observed = observe(device, target, made, samples, progress)
    keep(made, firmware, observed)
    return firmware, observed


def keep(made: Deployment, firmware: Firmware, observed: Observation) -> None:
    """Store what was measured; a database that cannot be written is warned of: the run itself is done."""
    try:
        with Database() as database:
            database.add_run(made.run_key(firmware.hash), observed.measurement)
    except ConfigError as error:
        _LOG.warning("warning: the measurement is not kept: %s", error)


def observe(
    device: Device, target: Target, made: Deployment, samples: list[Sample], progress: Progress
) -> Observation:
    """Run all samples on a device, and the first one a second time step by step."""
    storage = Storage.of(made.plan)
    outputs, ticks = [], []
    for done, sample in enumerate(samples):
        ticks.append(run_once(device, storage, sample.stored))
        outputs.append({b.tensor: storage.get_tensor(device, b.tensor) for b in made.plan.graph.outputs})
        progress.advance(done + 1, len(samples))
    stack_bytes = device.session.stack().used_bytes
    ticks_by: dict[str, list[int]] = {}
    timed: list[int] = []
    for first, count in fed_runs(device, storage, samples[0].stored):
        timed += device.session.time_steps(first, count, timeout_s=made.patience_s).ticks
    for entry, elapsed in zip(made.plan.tape, timed, strict=True):
        ticks_by.setdefault(made.plan.name_of(entry), []).append(elapsed)
    unit, convert = device.time_unit(target)
    operators = tuple(
        OperatorTime(name, len(ticks_of), convert(sum(ticks_of))) for name, ticks_of in ticks_by.items()
    )
    return Observation(Measurement(convert(ticks[0]), unit, operators, stack_bytes), outputs)
