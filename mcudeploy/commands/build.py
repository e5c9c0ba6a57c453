"""The flow of `build`: from models to a verified C library, and firmware if the board supports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.boards.trust import require_trusted
from mcudeploy.codegen.arenas import ArenaKind, require_room, share_of, together, with_arenas
from mcudeploy.codegen.exporters import Kind, export_files
from mcudeploy.codegen.folder import (
    Content,
    digests_of,
    require_no_links,
    require_ours,
    require_writable,
    write_folder,
)
from mcudeploy.codegen.library import with_sbom, write_library
from mcudeploy.codegen.model_names import model_name
from mcudeploy.codegen.program import CallBounds, Program
from mcudeploy.codegen.render import LibraryModel
from mcudeploy.codegen.selftest import SelfTest
from mcudeploy.commands.commands import plan_model, verdict_on_host
from mcudeploy.common.errors import BuildError, DeployError, OutputsDifferError, UsageError
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import first_repeated
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.results import Built, BuiltModel, Initialised
from mcudeploy.extensions.audio.wake_word import WakeWord, require_free_name
from mcudeploy.extensions.bounds.bounding import bounds_of
from mcudeploy.extensions.bounds.bounds_report import bounds_page, bounds_report
from mcudeploy.extensions.bounds.twin import require_twin
from mcudeploy.extensions.dossier.dossier import SAMPLES as DOSSIER_SAMPLES
from mcudeploy.extensions.dossier.dossier import DossierWanted, dossier_of
from mcudeploy.extensions.dossier.dossier_page import dossier_page
from mcudeploy.extensions.heads.heads import HeadWanted, require_head, with_head, with_head_stack
from mcudeploy.extensions.training.training_text import StepBorders, StepNames, training_text
from mcudeploy.ir.graph import Graph
from mcudeploy.planner.parameter_layout import layout_text
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.tape.footprint import tables_bytes
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.stack import stack_bound
from mcudeploy.toolchain.starter import require_start, starter_files
from mcudeploy.verify.samples import Sample, drawn_samples
from mcudeploy.verify.verdict import Verdict, device_share

_TRAINING_SAMPLES = 2
"""Drawn samples for a training step: the second one begins with changed parameters; more could diverge."""


@dataclass(frozen=True, slots=True)
class Checks:
    """How a model is built: verified on this computer, on `samples` drawn inputs (None: as many as usual);
    `bare`: without firmware.
    """

    verify: bool
    bare: bool
    samples: int | None = None


def build_models(
    paths: Sequence[Path],
    board: Board,
    options: Options,
    directory: Path,
    *,
    verify: bool = True,
    force: bool = False,
    library_only: bool = False,
    kind: Kind | None = None,
    sbom: bool = False,
    arena: ArenaKind = "own",
    wake_word: WakeWord | None = None,
    dossier: DossierWanted | None = None,
    bounds: bool = False,
    head: HeadWanted | None = None,
    step_names: StepNames | None = None,
    progress: Progress = SILENT,
) -> Built:
    """Write one C library of all models into a folder, and firmware for each unless `library_only`.

    `kind` is the build system of the library, without firmware; ESPHome's needs the `wake_word`. `sbom` adds
    the bill of materials, `dossier` the papers of the library. `bounds` adds the most instructions and cycles
    of a call to each header, and a page of them. `arena` names the owner of the arenas. `head`: a
    classifier on the output of the only model. `step_names`: the only model is a training step, and its
    library says what these are. With `verify`, every program passes `require_verified`, and
    the head `require_head`, before anything is written. With `force`, files that mcudeploy did not write are
    overwritten.
    Raises FitError if the board has no room for all models together, and UsageError for files in the way.
    """
    _require_names(paths, options, wake_word)
    if dossier is not None and options.replaceable:
        raise UsageError("--dossier describes constants in flash that stay: leave out --replaceable")
    if dossier is not None:
        _require_dossier(
            dossier, directory, (len(paths) == 1, verify, arena == "own" and kind is None), force
        )
    if not force:
        require_ours(directory, {})
    require_writable(directory)
    bare = library_only or board.facts_only or kind is not None
    if not bare:
        require_trusted(board)
    if bounds:
        require_twin(board)
    samples = None if dossier is None else DOSSIER_SAMPLES
    checks = Checks(verify, bare, samples if step_names is None else _TRAINING_SAMPLES)
    built = [_built(path, board, options, checks, progress) for path in paths]
    if bounds:
        built = [_with_bounds(each, options.seed, progress) for each in built]
    several = len(built) > 1
    name = model_name(None, directory.resolve().name) if several else built[0].made.prefix
    shares = [
        share_of(it.program, tables_bytes(it.plan, it.model.calls, it.board))
        for it in (each.made for each in built)
    ]
    programs = with_arenas([each.program for each in built], arena, name)
    if several:
        require_room(shares, options.limited(board), arena)
    if head is not None:
        programs = [
            with_head_stack(each.made, with_head(each.made, it, head))
            for each, it in zip(built, programs, strict=True)
        ]
        if verify:
            for each, it in zip(built, programs, strict=True):
                require_head(each.made, it, options.seed, progress)
        built = [_with_head_of(each, it) for each, it in zip(built, programs, strict=True)]
    if step_names is not None:
        programs = [
            _with_training(each.made.plan.graph, it, step_names)
            for each, it in zip(built, programs, strict=True)
        ]
    members = [_member(each, program, options) for program, each in zip(programs, built, strict=True)]
    elves = [each.firmware.elf for each in built if each.firmware is not None and not bare]
    pages = dict(_bounds_page(each) for each in built if each.bounds is not None)
    read = [*paths, *filter(None, [options.plan_file])]
    papers = None
    if dossier is not None:
        progress.stage("making the dossier")
        papers = _papers(built[0], dossier, pages)
        if not force:
            require_ours(dossier.directory, papers)
    if kind is None:
        files = write_library(members, name, directory, elves, pages=pages, sbom=sbom, read=read, force=force)
    else:
        content = export_files(kind, members, name, board, wake_word) | pages
        content = with_sbom(content, members, name) if sbom else content
        files = write_folder(directory, content, read=read, force=force)
    if dossier is not None and papers is not None:
        write_folder(dossier.directory, papers, read=read, force=force)
    return Built(files, built, arena, together(shares, arena), None if dossier is None else dossier.directory)


def _require_dossier(
    wanted: DossierWanted, directory: Path, holds: tuple[bool, bool, bool], force: bool
) -> None:
    """Raise UsageError for a library that a dossier cannot describe, or for a folder of others."""
    one_model, verify, plain_layout = holds
    if not one_model:
        raise UsageError("--dossier is about one model: build several without it")
    if not verify:
        raise UsageError("--dossier states what was verified: leave out --no-verify")
    if not plain_layout:
        raise UsageError("--dossier describes a library with its own arena: leave out --for and --arena")
    inside, outside = (it.resolve() for it in (wanted.directory, directory))
    if inside == outside or outside in inside.parents or inside in outside.parents:
        raise UsageError(
            f"--dossier {wanted.directory} and -o {directory} are in one another: name two folders"
        )
    if not force:
        require_ours(wanted.directory, {})
    require_writable(wanted.directory)


def _papers(built: BuiltModel, wanted: DossierWanted, pages: Mapping[str, str]) -> dict[str, Content]:
    """Return the files of a dossier by path. Raises what `dossier_of` raises."""
    dossier = dossier_of(built, pages)
    files = {**dossier.files, "index.html": dossier_page(dossier, wanted.command)}
    sums = "".join(f"{digest}  {path}\n" for path, digest in digests_of(files).items())
    return {**files, "SHA256SUMS": sums}


def init_project(
    path: Path,
    board: Board,
    options: Options,
    directory: Path,
    *,
    emulate: bool = False,
    force: bool = False,
    progress: Progress = SILENT,
) -> Initialised:
    """Write a PlatformIO project that checks and runs a model on a board.

    The library is a separate folder below lib, which `build --for platformio` replaces.
    Raises what `build_models` raises.
    """
    require_start(board, emulate=emulate)
    name = model_name(options.name, path.stem)
    library = directory / "lib" / name
    require_no_links(directory, [f"lib/{name}"])
    if not force:
        require_ours(library, {})
        require_ours(directory, {})
    require_writable(directory)
    built = _built(path, board, options, Checks(verify=True, bare=True), progress)
    member = _member(built, built.program, options)
    model = name + path.suffix.lower()
    files = starter_files(member, name, board, model, emulate=emulate)
    files[f"model/{model}"] = path.read_bytes()
    exported = export_files("platformio", [member], name, board)
    written = write_folder(library, exported, read=[path], force=force)
    written = [*written, *write_folder(directory, files, read=[path], force=force)]
    return Initialised(board, f"model/{model}", written, directory)


def _member(built: BuiltModel, program: Program, options: Options) -> LibraryModel:
    """Return a model of a library, with its program as the library has it."""
    made = built.made
    layout = layout_text(made.plan, made.model, options) if made.model.replaceable else None
    return LibraryModel(program, made.plan, made.source, built.selftest, layout)


def _require_names(paths: Sequence[Path], options: Options, wake_word: WakeWord | None) -> None:
    """Raise UsageError for names that a library cannot have."""
    if wake_word is not None:
        require_free_name(model_name(options.name, paths[0].stem))
    if len(paths) == 1:
        return
    if (
        options.name is not None
        or options.plan_file is not None
        or options.shapes
        or options.constants
        or options.states
        or options.replaceable
    ):
        raise UsageError(
            "--name, --plan, --shape, --bind, --state and --replaceable are for one model: build several "
            "without them"
        )
    names = [model_name(None, path.stem) for path in paths]
    twice = first_repeated(names)
    if twice is not None:
        raise UsageError(f"two models would be called {twice} in C: rename the file of one")


def _built(path: Path, board: Board, options: Options, checks: Checks, progress: Progress) -> BuiltModel:
    """Build one model."""
    verify, bare = checks.verify, checks.bare
    made = plan_model(path, board, options, progress)
    samples = drawn_samples(made.model.graph, options.seed, checks.samples)
    verdict = require_verified(made, samples, progress) if verify else None
    progress.stage(f"building {path.name} for {board.name}")
    firmware, unknown = _firmware_for_costs(made) if bare else (made.build(Target(board)), None)
    if firmware is not None:
        made.require_flash(firmware)
    bound = None if firmware is None else stack_bound(firmware)
    if bound is None:
        program, unknown = made.program, unknown or f"no bound can be stated for programs of {board.name}"
    else:
        program = replace(made.program, stack_bytes=bound.library_bytes)
    return BuiltModel(made, program, verdict, firmware, _selftest(made, samples[0], verdict), unknown)


def _with_head_of(built: BuiltModel, program: Program) -> BuiltModel:
    """Return a model with the program that has a head, and the reason if that has no bound of the stack."""
    unknown = built.stack_unknown
    if program.stack_bytes is None and unknown is None:
        unknown = "a function that the head calls has no bound"
    return replace(built, program=program, stack_unknown=unknown)


def _with_training(graph: Graph, program: Program, names: StepNames) -> Program:
    """Return the program of a training step, which says what its target, loss and parameters are."""
    borders = StepBorders(program.inputs, program.outputs, program.states)
    return replace(program, training=training_text(graph, borders, names))


def _with_bounds(built: BuiltModel, seed: int, progress: Progress) -> BuiltModel:
    """Return a model with the bounds of its calls. Raises what `bounds_of` raises."""
    made = built.made
    progress.stage(f"counting the instructions of {made.model.path.name} for all inputs")
    bounds = bounds_of(made, drawn_samples(made.model.graph, seed)[0])
    calls = CallBounds(
        bounds.run_instructions,
        bounds.run_cycles,
        bounds.step_instructions,
        bounds.step_cycles,
        bounds.compiler,
        made.board.core,
    )
    return replace(built, program=replace(built.program, bounds=calls), bounds=bounds)


def _bounds_page(built: BuiltModel) -> tuple[str, str]:
    """Return name and text of the page that states the bounds of a model."""
    assert built.bounds is not None
    prefix = built.program.prefix
    return f"{prefix}_bounds.md", bounds_page(prefix, bounds_report(built.bounds))


def _firmware_for_costs(made: Deployment) -> tuple[Firmware | None, str | None]:
    """Return the firmware that shows flash and stack of a library; or the reason for none."""
    board = made.board
    if board.is_host:
        return None, "the functions of this computer's C library are not known"
    if board.facts_only or board.framework is not None:
        return None, f"there is no start-up code for {board.name} to link a program with"
    try:
        return made.build(Target(board)), None
    except DeployError as error:
        return None, str(error).splitlines()[0]


def _selftest(made: Deployment, sample: Sample, verdict: Verdict | None) -> SelfTest | None:
    """Return the first input and the program's outputs on this computer; None if it did not run."""
    if verdict is None:
        return None
    graph, runs = made.plan.graph, verdict.runs or verdict.host
    results = {border.tensor: runs[0][border.tensor] for border in graph.own_outputs()}
    test = SelfTest(sample.stored, results, device_share(graph))
    return test if test.is_possible else None


def require_verified(made: Deployment, samples: list[Sample], progress: Progress = SILENT) -> Verdict:
    """Return the verdict on a program that runs these samples on this computer.

    Raises OutputsDifferError if the outputs differ from the reference, BuildError without a C compiler.
    """
    try:
        verdict = verdict_on_host(made, samples, progress)
    except BuildError as error:
        raise BuildError(
            f"{error}\nThe program is verified on this computer before it is written; --no-verify writes it "
            "unverified."
        ) from error
    if verdict.reasons:
        raise OutputsDifferError(
            "\n".join((f"{made.model.path.name} is not verified, nothing is written:", *verdict.reasons))
        )
    return verdict
