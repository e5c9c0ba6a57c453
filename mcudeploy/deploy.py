"""The whole flow: model and board in, verified and measured program out. One function per command."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcudeploy import planfile, report
from mcudeploy.board import Board, load_board
from mcudeploy.codegen.bench import all_kernels, bench_sources
from mcudeploy.codegen.ctext import c_identifier
from mcudeploy.codegen.library import write_library
from mcudeploy.codegen.program import Program, make_program
from mcudeploy.codegen.render import Source, render_firmware
from mcudeploy.device import Device, Target, open_device
from mcudeploy.errors import BuildError, ModelError, Problem
from mcudeploy.frontend import load
from mcudeploy.graph import Graph
from mcudeploy.layout.check import check as check_plan
from mcudeploy.layout.solve import lay_out
from mcudeploy.measurer.database import Database, RunKey
from mcudeploy.ops.opdef import KernelCall
from mcudeploy.plan import Measurement, OperatorTime, Plan, Schedule, Search
from mcudeploy.progress import SILENT, Progress
from mcudeploy.samples import Sample, load_samples
from mcudeploy.scheduler.rpo import reverse_post_order
from mcudeploy.simulator.blocks import whole
from mcudeploy.simulator.live import work_bytes
from mcudeploy.targets import Firmware, build_firmware
from mcudeploy.targets.build import firmware_hash
from mcudeploy.targets.flashing import flash_command
from mcudeploy.verdict import judge
from mcudeploy.verify import Storage, fed_runs, run_once

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may choose. `plan_file` replaces the search by a stored plan."""

    max_overhead: float = 5.0
    time_limit: float = 60.0
    ram_limit: int | None = None
    float_io: bool = False
    seed: int = 0
    name: str | None = None
    plan_file: Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model file that can be deployed: its graph, and the kernel call of every operator."""

    path: Path
    sha256: str
    graph: Graph
    calls: Mapping[str, KernelCall]

    @property
    def work(self) -> dict[str, tuple[int, int]]:
        return work_bytes(self.calls)

    @property
    def macs(self) -> int:
        return sum(self.graph.loops(operator).macs() for operator in self.graph.operators)


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """A model, a board, and the plan that brings them together."""

    model: Model
    board: Board
    plan: Plan
    program: Program
    search: Search

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
        """What was measured of this plan before: on hardware, else emulated; None where it never was."""
        with Database() as database:
            found = [database.run(self.run_key(each)) for each in self._firmware_hashes()]
        return next((measurement for measurement in found if measurement is not None), None)

    def _firmware_hashes(self) -> list[int]:
        files = render_firmware(self.program, self.plan, self.source)
        forms = [emulate for emulate in (False, True) if self.board.has_form(emulate)]
        try:
            return [firmware_hash(self.board, files, self.program.kernels, emulate=form) for form in forms]
        except BuildError:  # without its compiler nothing can have been measured
            return []


def load_model(path: Path, options: Options) -> Model:
    """Read a model and choose its kernels. Raises ModelError with all problems at once."""
    graph = load(path, float_io=options.float_io)
    calls: dict[str, KernelCall] = {}
    problems: list[Problem] = []
    for operator in graph.operators:
        if operator.op.is_view:
            continue
        try:
            calls[operator.name] = operator.op.kernel(
                operator, graph.input_tensors(operator), graph.tensors[operator.output]
            )
        except ValueError as error:
            node = operator.onnx_nodes[0] if operator.onnx_nodes else operator.name
            problems.append(Problem(node, operator.op.kind, str(error)))
    if problems:
        raise ModelError.unsupported(tuple(problems))
    return Model(path, hashlib.sha256(path.read_bytes()).hexdigest(), graph, calls)


def plan_model(path: Path, board: Board, options: Options) -> Deployment:
    """Order and place a model on a board; the plan has passed the checker. Raises FitError."""
    model = load_model(path, options)
    memory = board.memories[0]
    if options.plan_file is None:
        plan, search = _find_plan(model, board)
    else:
        plan, search = planfile.load_plan(options.plan_file, model.graph, model.sha256, board.name), Search()
    report.require_fit(plan, model, board, options.ram_limit)
    capacities = {memory.name: memory.bytes for memory in board.memories}
    check_plan(plan, model.work, memory.alignment, capacities)
    name = c_identifier(options.name or path.stem)
    return Deployment(model, board, plan, make_program(plan, model.calls, name, memory.alignment), search)


def _find_plan(model: Model, board: Board) -> tuple[Plan, Search]:
    """The unsplit plan with the smaller arena of two depth-first orders."""
    start = time.monotonic()
    tiled = whole(model.graph)
    memory = board.memories[0]
    plans: dict[Schedule, Plan] = {}
    for first_input_first in (True, False):
        schedule = reverse_post_order(tiled, first_input_first)
        if schedule in plans:
            continue
        layout, estimate = lay_out(tiled, schedule, model.work, memory.name, memory.alignment)
        plans[schedule] = Plan(model.graph, board.name, tiled.block_rows, schedule, layout, estimate)
    best = min(plans.values(), key=lambda plan: plan.layout.arena_bytes)
    return best, Search(time.monotonic() - start, candidates=2, duplicates=2 - len(plans))


def check_model(path: Path, board: Board | None, options: Options) -> JsonObject:
    """What of a model can be deployed, and its sizes. Unsupported nodes are part of the report."""
    try:
        model = load_model(path, options)
    except ModelError as error:
        if not error.problems:
            raise
        return report.unsupported(error)
    plan, _ = _find_plan(model, board or load_board("host"))
    return report.check(model, plan, board)


def plan_report(made: Deployment) -> JsonObject:
    """The JSON object of `plan`; its latency is what was measured of this very plan before."""
    return report.plan(made) | report.latency(made.measured())


def save_plan(made: Deployment, path: Path) -> None:
    """Write the plan for `plan_file`."""
    planfile.save_plan(made.plan, made.model.sha256, path)


def build_model(path: Path, board: Board, options: Options, directory: Path) -> JsonObject:
    """Write the C library and the firmware of a model into a folder."""
    made = plan_model(path, board, options)
    firmware = made.build(Target(board))
    files = write_library(made.program, made.plan, made.source, directory, firmware.elf)
    return report.build(made, firmware, files)


def flash_board(path: Path | None, target: Target, options: Options, dry_run: bool) -> JsonObject:
    """Build and flash a model's firmware, or the measurer alone; `dry_run` only names the command."""
    firmware = build_bench(target) if path is None else plan_model(path, target.board, options).build(target)
    if dry_run:
        command = flash_command(target.board, firmware.elf, target.port, emulate=target.emulated)
        return report.flash(firmware, target.port, command)
    with open_device(target, firmware) as device:
        return report.flash(firmware, device.port, None)


def build_bench(target: Target) -> Firmware:
    """The measurer with all kernels and no model; half of the memory is arena."""
    kernels = all_kernels()
    files = bench_sources(kernels, target.board.ram_bytes // 2)
    return build_firmware(target.board, files, kernels, emulate=target.emulated)


def measure_model(path: Path, target: Target, options: Options, progress: Progress = SILENT) -> JsonObject:
    """Time every operator of a model on the device; its input is drawn from the seed."""
    made = plan_model(path, target.board, options)
    samples = load_samples(made.model.graph, [], [], options.seed)
    firmware, observed = _on_device(made, target, samples, progress)
    return _measured(made, firmware, observed)


def run_model(
    path: Path,
    target: Target,
    options: Options,
    *,
    inputs: list[Path],
    expected: list[Path],
    progress: Progress = SILENT,
) -> JsonObject:
    """Build, flash, run and verify. `verified` is in the report; a failed verification is no exception."""
    progress.stage(f"planning {path.name}")
    made = plan_model(path, target.board, options)
    samples = load_samples(made.model.graph, inputs, expected, options.seed)
    progress.stage("checking every operator against ONNX Runtime")
    host = Target(load_board("host"))
    with open_device(host, made.build(host), made.patience_s) as machine:
        verdict = judge(machine, made.plan, path, samples, progress)
    firmware, observed = _on_device(made, target, samples, progress)
    return _measured(made, firmware, observed) | report.verdict(made, verdict.with_device(observed.outputs))


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """What a device did: its timings, and the stored outputs of each sample by tensor name."""

    measurement: Measurement
    outputs: list[dict[str, Any]]


def _measured(made: Deployment, firmware: Firmware, observed: Observation) -> JsonObject:
    measurement = report.measurement(made, observed.measurement, firmware)
    return report.plan(made) | report.sizes(firmware) | measurement


def _on_device(
    made: Deployment, target: Target, samples: list[Sample], progress: Progress
) -> tuple[Firmware, Observation]:
    progress.stage(f"building firmware for {target.board.name}")
    firmware = made.build(target)
    progress.stage(f"running on {target.board.name}")
    with open_device(target, firmware, made.patience_s) as device:
        observed = observe(device, target, made, samples, progress)
    with Database() as database:
        database.add_run(made.run_key(firmware.hash), observed.measurement)
    return firmware, observed


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
    step_ticks: dict[int, list[int]] = {}
    timed: list[int] = []
    for first, count in fed_runs(device, storage, samples[0].stored):
        timed += device.session.time_steps(first, count, timeout_s=made.patience_s).ticks
    for step, elapsed in zip(made.plan.schedule.steps, timed, strict=True):
        step_ticks.setdefault(step.operator, []).append(elapsed)
    unit, convert = device.time_unit(target)
    operators = tuple(
        OperatorTime(made.plan.graph.operators[index].name, len(ticks_of), convert(sum(ticks_of)))
        for index, ticks_of in step_ticks.items()
    )
    return Observation(Measurement(convert(ticks[0]), unit, operators, stack_bytes), outputs)
