"""The whole flow: from model and board to a verified and measured program. One function per command."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import list_boards, load_board
from mcudeploy.codegen.model_names import model_name
from mcudeploy.commands.verdicts import fused_verdict, require_full, window_outputs, window_verdict
from mcudeploy.common.errors import BoardNotFoundError, FitError, UsageError
from mcudeploy.common.files import path_name, write_file
from mcudeploy.common.interrupts import despite_interrupt
from mcudeploy.common.progress import SILENT, Progress, search_report
from mcudeploy.common.text import count_text
from mcudeploy.costs.estimate import load_costs
from mcudeploy.costs.tiles import KnownSource, nothing_known
from mcudeploy.device.fleet import Fleet
from mcudeploy.device.image import build_bench, measured_tiles
from mcudeploy.device.known import known_times
from mcudeploy.device.target import Target, open_device, require_port
from mcudeploy.execution.counted import Timing, by_operator, count_steps, require_timing, traffic_by_operator
from mcudeploy.execution.cycles.profile import profile
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import ONE_DRAWN_RUN, RunRequest
from mcudeploy.execution.results import Flashed, Measured, VerifiedRun
from mcudeploy.execution.running import DeviceRun, known_within_limit, run_within_limit
from mcudeploy.execution.unit_model import require_no_unit
from mcudeploy.extension import added
from mcudeploy.frontend.parsing import is_tflite
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import Rewrites
from mcudeploy.ops.host_io import from_device
from mcudeploy.planner.files import planfile
from mcudeploy.planner.hop_plans import find_hop_plans, smallest_choice
from mcudeploy.planner.model.model import Model, read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned, find_or_recall, find_plans
from mcudeploy.planner.search.kernels import alternatives
from mcudeploy.planner.suggest import WaysOut
from mcudeploy.report import chart
from mcudeploy.report.outputs import read_classes, require_classes
from mcudeploy.toolchain.emulator import qemu_command
from mcudeploy.toolchain.flashing import choose_flasher, flash_commands
from mcudeploy.toolchain.flashing import flash as write_program
from mcudeploy.toolchain.ports import attached_by, find_port
from mcudeploy.toolchain.project import unstarted_memories
from mcudeploy.verify.cache_loss import CacheLoss, cache_loss
from mcudeploy.verify.data_faults import InputTally, infinite_warnings, run_warnings
from mcudeploy.verify.litert import compare_with_litert, litert_installed
from mcudeploy.verify.micro import micro_reasons, require_micro
from mcudeploy.verify.samples import Sample, drawn_samples, load_samples
from mcudeploy.verify.verdict import Outputs, Verdict, judge, without_states

_LOG = logging.getLogger(__name__)


def plan_model(path: Path, board: Board, options: Options, progress: Progress = SILENT) -> Deployment:
    """Cut, order and place a model on a board; the plan has passed the checker. Raises FitError.

    A plan whose measurement missed the latency limit is skipped.
    """
    progress.stage(f"planning {path.name}")
    deployment = _planned(path, board, options, progress)
    limit = deployment.planned.limit(options.overhead_limit)
    chosen = despite_interrupt(lambda: known_within_limit(deployment, limit))
    again = _planned_again(chosen, options, progress)
    return chosen if again is None else despite_interrupt(lambda: known_within_limit(again, limit))


def _planned(path: Path, board: Board, options: Options, progress: Progress) -> Deployment:
    """Return the plan with the least arena, and all other plans found."""
    model_name(options.name, path.stem)  # refused before the search, not after it
    model = read_model(path, options, isa=board.isa)
    warn_of_notes(model)
    warn_of_memories(board, options)
    return _deployed(plans_by_estimates(model, board, options, progress), board, options)


def _deployed(planned: Planned, board: Board, options: Options) -> Deployment:
    return despite_interrupt(lambda: Deployment.of(planned, planned.choices[0], board, options))


def _planned_again(chosen: Deployment, options: Options, progress: Progress) -> Deployment | None:
    """Return the plans of a search with a lower limit if plans took longer than estimated.

    They are smaller than the chosen plan, which comes last. None if there are none.
    """
    def search(tighter: Options) -> Planned:
        progress.stage(f"searching again, for at most {tighter.overhead_limit:.2f} % by estimates")
        model = read_model(chosen.model.path, options, isa=chosen.board.isa).same_rows(chosen.plan.graph)
        return plans_by_estimates(model, chosen.board, tighter, progress, choose_rows=False)

    smaller = chosen.smaller_plans(options, search)
    return None if smaller is None else _deployed(smaller, chosen.board, options)


def _samples_of(request: RunRequest, graph: Graph, seed: int, tally: InputTally) -> list[Sample]:
    """Return the samples of a request; `tally` counts their real numbers.

    Raises UsageError if the inputs are for fewer runs than `steps`.
    """
    steps = request.steps
    if steps is not None and not request.inputs:
        return drawn_samples(graph, seed, steps)
    counted = replace(request.reading, on_real=tally.add)
    samples = load_samples(graph, request.inputs, request.expected, seed, counted)
    if steps is not None and steps > len(samples):
        have = count_text(len(samples), "run")
        raise UsageError(f"--steps {steps}: the inputs have {have}. Give more, or fewer steps")
    return samples[:steps]


def _run_within_limit(
    deployment: Deployment, target: Target, samples: list[Sample], options: Options, progress: Progress
) -> DeviceRun:
    """Run the first plan that keeps the limit. If smaller plans missed it by far, search for others first."""
    limit = deployment.planned.limit(options.overhead_limit)
    device_run = run_within_limit(deployment, target, samples, limit, progress)
    again = _planned_again(device_run.deployment, options, progress)
    return device_run if again is None else run_within_limit(again, target, samples, limit, progress)


def plans_by_estimates(
    model: Model, board: Board, options: Options, progress: Progress, *, choose_rows: bool = True
) -> Planned:
    """Return the plans found without a device. Raises FitError with proposals that make the model fit.

    `choose_rows`: if the model's window moves, choose the rows to keep as well.
    """
    known = known_times(board, options.unit_on(board))
    rows_are_chosen = model.window is None or options.plan_file is not None or not choose_rows
    find = find_plans if rows_are_chosen else find_hop_plans
    may_recall = not options.states_plan and model.window is None and not options.fresh
    try:
        if may_recall and known is nothing_known:
            return find_or_recall(model, board, options, report=search_report(progress), progress=progress)
        return find(model, board, options, report=search_report(progress), progress=progress, known=known)
    except FitError as error:
        raise with_ways_out(error, model, board, options, progress) from error


def with_ways_out(
    error: FitError, model: Model, board: Board, options: Options, progress: Progress
) -> FitError:
    """Return the error with proposals that make the model fit, each tried by a short search."""
    progress.stage("looking for what would fit")
    if model.window is not None and options.plan_file is None:
        model = smallest_choice(model, board, options)
    proposals = WaysOut(model, board, options).proposals(list_boards())
    if not options.states_plan:
        proposals += [it for propose in added("proposals") for it in propose(model, board, options)]
    return FitError(str(error), tuple(proposals))


def warn_of_notes(model: Model) -> None:
    """Warn of the assumptions that the front end made about a model."""
    for note in model.graph.notes:
        _note(note)


def warn_of_memories(board: Board, options: Options) -> None:
    """Warn of limits above a memory's size, and of memories with room that no firmware starts.

    Warn also if inputs and outputs lie out of reach of DMA controllers, since no other memory has room.
    """
    for name, size in options.memory_limits:
        if name in {it.name for it in board.memories} and size > (most := board.memory(name).bytes):
            _note(f"--memory {name}={size}: {name} of {board.name} has {most:,} B, which is the limit")
    board = options.limited(board)
    for name in unstarted_memories(board):
        if board.room(board.memory(name)):
            _note(
                f"nothing in the firmware of {board.name} starts {name}: plans that use it are for a library "
                f"whose application does; --memory {name}=0 leaves it out"
            )
    if board.unreached and not board.keeps_reach:
        _note(
            f"inputs and outputs lie in {board.unreached_text}: no memory within their reach has room. Give "
            "one room with --memory, or copy with the core; --no-dma-io says that this is meant"
        )


def _note(text: str) -> None:
    _LOG.warning("note: %s", text)


def save_plan(deployment: Deployment, path: Path) -> None:
    """Write the plan for `plan_file`."""
    planfile.save_plan(deployment.plan, deployment.model.sha256, path)


def save_chart(deployment: Deployment, path: Path) -> None:
    """Draw the plan's arena over steps; the file's ending selects SVG or HTML."""
    chart.save(chart.draw(deployment.view, deployment.model.path.name), path)


def verdict_on_host(
    deployment: Deployment, samples: list[Sample], progress: Progress, *, after: Verdict | None = None
) -> Verdict:
    """Return the verdict on a program that runs on this computer, for any board.

    With `after`, the samples continue from the last one of that verdict.
    """
    model = deployment.model
    progress.stage("checking every operator against the reference")
    if model.window is not None:
        return window_verdict(deployment, model.window, samples, progress)
    verdict = _judged(deployment, samples, progress, after)
    if not is_tflite(model.path):
        return verdict
    if litert_installed():
        progress.stage("running LiteRT")
    graph = deployment.plan.graph
    return verdict.with_litert(compare_with_litert(model, graph, samples, verdict.host))


def _judged(
    deployment: Deployment, samples: list[Sample], progress: Progress, after: Verdict | None
) -> Verdict:
    if deployment.plan.form.fused:
        return fused_verdict(deployment, samples, progress, after=after)
    host, model = Target(load_board("host")), deployment.model
    with open_device(host, deployment.build(host), deployment.patience_s) as machine:
        return judge(
            machine, deployment.plan, model.path, samples, progress, choices=model.choices, after=after
        )


def flash_board(path: Path | None, target: Target, options: Options, dry_run: bool) -> Flashed:
    """Build and flash a model's firmware, or the measurer alone; `dry_run` only names the commands.

    In the emulator the firmware runs until it answers. Raises UsageError for the host.
    """
    if target.board.is_host:
        raise UsageError(f"{target.board.name} is a process of this computer: nothing is flashed")
    if not dry_run:
        require_port(target)
    firmware = build_bench(target) if path is None else plan_model(path, target.board, options).build(target)
    if dry_run:
        commands = _flash_commands(target, firmware.elf)
        return Flashed(target.board, firmware, target.port, _flasher(target), commands)
    with open_device(target, firmware) as device:
        port = None if target.emulated else device.port
        return Flashed(target.board, firmware, port, _flasher(target))


def flash_program(elf: Path, target: Target, dry_run: bool) -> Flashed:
    """Write a program that the user has built, an ELF file; `dry_run` only names the commands.

    Raises UsageError for a board that is not hardware, and FlashError for a file with no program for it.
    """
    board = target.board
    if not target.is_real:
        raise UsageError(f"--elf writes programs to hardware: {board.name} is emulated here")
    port = target.port or _port_of(target)
    if dry_run:
        return Flashed(board, None, port, _flasher(target), _flash_commands(target, elf))
    write_program(board, elf, attached_by(board, port, target.probe), target.flasher)
    return Flashed(board, None, port, _flasher(target))


def _port_of(target: Target) -> str | None:
    """Return the port of the attached board; None if there is none: a boot loader's drive has no port."""
    with suppress(BoardNotFoundError):
        return find_port(target.board, target.probe)
    return None


def _flasher(target: Target) -> str | None:
    """Return the tool that writes a real board."""
    return choose_flasher(target.board, target.flasher, needed=False).tool if target.is_real else None


def _flash_commands(target: Target, elf: Path) -> list[list[str]]:
    """Return the commands that write a board, or start its emulator.

    The probe is that of the port, or of the attached board if no port is given.
    """
    if target.emulated:
        return [qemu_command(target.board, elf, ("-serial", "tcp:127.0.0.1:4405,server=on,wait=on"))]
    port = target.port or _port_of(target)
    return flash_commands(target.board, elf, attached_by(target.board, port, target.probe), target.flasher)


def measure_model(
    path: Path,
    target: Target,
    options: Options,
    *,
    timing: Timing = "instructions",
    progress: Progress = SILENT,
) -> Measured:
    """Time every operator of a model on the device; the input is drawn from the seed.

    Unless a plan or an order is given, kernel variants without a time are timed first, and the plan uses the
    fastest.
    Raises ConfigError if the target does not support this `timing`.
    """
    options = _search_options(options, timing, target)
    require_port(target)
    modelled = options.unit_on(target.board) == "cycles" and target.emulated
    if not options.states_plan and not target.board.is_host and not modelled:
        _time_variants(path, target, options, progress)
    deployment = _planned(path, target.board, options, progress)
    timing = _run_timing(timing, target, deployment)
    samples = load_samples(deployment.model.graph, [], [], options.seed)
    device_run = _run_within_limit(deployment, target, samples, options, progress)
    return _measured(device_run, timing, target, samples[0], progress)


def _search_options(options: Options, timing: Timing, target: Target) -> Options:
    """Return the options of a search for plans that are timed like this: traffic counts instructions.

    Raises UsageError or ConfigError for a timing that no run can have.
    """
    if options.objective == "cycles" and timing == "traffic":
        raise UsageError("--timing traffic counts instructions: leave it out, or --objective cycles")
    if timing != "instructions":
        require_no_unit(target.board, f"--timing {timing}")
    if options.objective == "instructions":
        require_no_unit(target.board, "--objective instructions")
    if options.objective == "cycles":
        load_costs(target.board.core, "cycles")  # raises if there is no model
    require_timing(timing, target, options.cores)
    return replace(options, objective="instructions") if timing == "traffic" else options


def _run_timing(timing: Timing, target: Target, deployment: Deployment) -> Timing:
    """Return what a run counts; the objective of a plan decides if only instructions are asked for."""
    require_timing(timing, target, deployment.model.cores)
    cycles = deployment.planned.objective == "cycles" and target.emulated and timing == "instructions"
    if target.board.npu is not None:
        return timing  # counts would contain the functional model
    return "cycles-model" if cycles else timing


def _time_variants(path: Path, target: Target, options: Options, progress: Progress) -> None:
    """Time all candidate kernels that the database does not know."""
    model = read_model(path, options, isa=target.board.isa)
    known = known_times(target.board)
    forms = (Rewrites(options.stream_input), Rewrites(options.stream_input, accumulating=True))
    models = [model.in_form(form) for form in forms]
    if not any(_untimed(one, known) for one in models):
        return
    progress.stage(f"timing kernels on {target.title}")
    with measured_tiles(Fleet([target])) as measured:
        for one in models:
            measured.prefetch(one.graph, alternatives(one), options.time_limit, progress.advance)
    left = sorted(set().union(*(_untimed(one, known_times(target.board)) for one in models)))
    if left:
        _LOG.warning(
            "warning: the kernels of %s are chosen by estimates: they do not fit the arena for timing, or "
            "the time limit is too short",
            ", ".join(left),
        )


def _untimed(model: Model, known: KnownSource) -> set[str]:
    """Return the names of operators with variants that were never timed."""
    return {tile[0].name for tile in alternatives(model) if known(model.graph)(*tile) is None}


def run_model(
    path: Path,
    target: Target,
    options: Options,
    request: RunRequest = ONE_DRAWN_RUN,
    progress: Progress = SILENT,
) -> VerifiedRun:
    """Build, flash, run and verify. A failed verification is not an exception.

    Raises ConfigError if the target does not support the timing or an analysis of the request.
    """
    if request.reference == "tflm":
        require_micro(path, options)
    options = _search_options(options, request.timing, target)
    inputs, expected = request.inputs, request.expected
    if options.hop is not None and expected:
        raise UsageError("--expected is for whole windows: leave it out with --hop, the reference decides")
    for analysis in request.analyses:
        analysis.require(target.board)
    require_port(target)
    names = read_classes(request.classes) if request.classes is not None else ()
    if inputs or expected or names:  # wrong files are reported before the search
        _require_suitable(read_model(path, options).graph, request, names, options.seed)
    progress.stage(f"planning {path.name}")
    deployment = _planned(path, target.board, options, progress)
    timing = _run_timing(request.timing, target, deployment)
    tally = InputTally(deployment.model.graph)
    samples = _samples_of(request, deployment.model.graph, options.seed, tally)
    device_run = _run_within_limit(deployment, target, samples, options, progress)
    verdict, results = _verdict_on(device_run, samples, request.reference == "tflm", progress)
    measured = _measured(device_run, timing, target, samples[0], progress)
    tally_facts = tally.facts()
    stored = [sample.stored for sample in samples]
    warnings = infinite_warnings(without_states(verdict.plan.graph, results))
    if inputs:
        warnings += run_warnings(deployment.model.graph, tally_facts, stored, results)
    facts: dict[str, Any] = {}
    for analysis in request.analyses:
        facts |= analysis.facts(device_run.deployment, samples[0], progress)
    if options.int8_caches:
        facts["int8_caches"] = asdict(_cache_loss(deployment.model, samples))
    return VerifiedRun(measured, verdict, names, tally_facts, warnings, facts)


def _verdict_on(
    device_run: DeviceRun, samples: list[Sample], compare_micro: bool, progress: Progress
) -> tuple[Verdict, Sequence[Outputs]]:
    """Return the verdict on a run, and the outputs that it judges: of a window, those after it is full."""
    deployment = device_run.deployment
    verdict = verdict_on_host(deployment, samples, progress)
    results: Sequence[Outputs] = device_run.observed.outputs
    if deployment.model.window is not None:
        full = results[-len(verdict.host) :]
        results = window_outputs(full, deployment.plan.graph, verdict.plan.graph)
    verdict = verdict.with_device(results)
    if compare_micro:
        progress.stage("running TensorFlow Lite Micro")
        reasons = micro_reasons(deployment.model.path, deployment.plan.graph, samples, results)
        verdict = replace(verdict, reasons=(*verdict.reasons, *reasons), micro_runs=len(samples))
    return verdict, results


def _cache_loss(model: Model, samples: Sequence[Sample]) -> CacheLoss:
    """Return the loss by the int8 caches of a model in the runs of these samples."""
    own = [{it.name: sample.inputs[it.name] for it in model.graph.own_inputs()} for sample in samples]
    return cache_loss(model.path, model.choices, [it.name for it in model.graph.own_outputs()], own)


def _require_suitable(graph: Graph, request: RunRequest, names: tuple[str, ...], seed: int) -> None:
    """Raise an error if the files of samples do not suit the model, or the names of classes."""
    noting = replace(request.reading, on_note=_note)
    require_full(graph, load_samples(graph, request.inputs, request.expected, seed, noting))
    if names:
        require_classes(graph, names)


def model_outputs(result: VerifiedRun) -> list[dict[str, Any]]:
    """Return the outputs of every run by name, in the model's own shapes and types."""
    device_run = result.measured.device_run
    graph = device_run.deployment.plan.graph
    return [
        {io.name: from_device(io, graph.tensors[io.tensor], stored[io.tensor]) for io in graph.own_outputs()}
        for stored in device_run.observed.outputs
    ]


def save_outputs(result: VerifiedRun, path: Path) -> None:
    """Write the outputs of all runs as .npz: an array for each output, its first axis counts runs.

    Arrays have the names of outputs, with `_` for characters that paths cannot contain.
    """
    outputs, content = model_outputs(result), BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in outputs[0]:
            with archive.open(f"{path_name(name)}.npy", "w") as stream:
                np.lib.format.write_array(stream, np.stack([each[name] for each in outputs]))
    write_file(path, content.getvalue())


def _measured(
    device_run: DeviceRun, timing: Timing, target: Target, sample: Sample, progress: Progress
) -> Measured:
    """Return a run with the counts of the emulator that `timing` asks for."""
    if timing == "instructions":
        return Measured(device_run, timing)
    progress.stage("counting instructions, loads and stores")
    deployment, firmware = device_run.deployment, device_run.firmware
    view, steps = deployment.view, list(device_run.observed.counts)
    steps = steps or count_steps(deployment, target, firmware, sample.stored)
    traffic = traffic_by_operator(view, steps, firmware)
    modelled = profile(target, firmware, by_operator(view, steps)) if timing == "cycles-model" else None
    return Measured(device_run, timing, traffic, modelled)
