"""The flow of `build`: from models to a verified C library, and firmware if the board supports it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.boards.flashers import Uf2
from mcudeploy.boards.trust import require_trusted
from mcudeploy.codegen.arenas import library_arenas, require_room, share_of, with_arenas
from mcudeploy.codegen.exporters import export_files
from mcudeploy.codegen.folder import (
    Content,
    require_no_links,
    require_ours,
    require_writable,
    write_folder,
)
from mcudeploy.codegen.library import library_files, with_sbom
from mcudeploy.codegen.licences import licensed
from mcudeploy.codegen.model_names import model_name
from mcudeploy.codegen.render import LibraryModel
from mcudeploy.codegen.selftest import SelfTest
from mcudeploy.commands.commands import plan_model, verdict_on_host
from mcudeploy.common.errors import BuildError, DeployError, OutputsDifferError, UsageError
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import first_repeated
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import BuildRequest, Library, LibraryPart
from mcudeploy.execution.results import Built, BuiltModel, Initialised
from mcudeploy.extension import added
from mcudeploy.planner.files.parameter_layout import layout_text
from mcudeploy.planner.place.states_first import with_states_first
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.tape.footprint import tables_bytes
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.board_texts import unit_files
from mcudeploy.toolchain.images import flash_content, uf2
from mcudeploy.toolchain.stack import stack_bound
from mcudeploy.toolchain.starter import require_start, starter_files
from mcudeploy.verify.samples import Sample, drawn_samples
from mcudeploy.verify.verdict import Verdict, device_share


def build_models(request: BuildRequest, progress: Progress = SILENT) -> Built:
    """Write one C library of all models into a folder, and firmware for each unless the request is bare.

    If the request says so, every program passes `require_verified` before anything is written.
    Raises FitError if the board has no room for all models together, UsageError for files in the way, and
    what the parts of the library raise.
    """
    request = request.with_possible_loads
    board, options, directory = request.board, request.options, request.directory
    _require_names(request.paths, options)
    for part in request.parts:
        part.require(request)
    if not request.force:
        require_ours(directory, {})
    require_writable(directory)
    if not request.bare:
        require_trusted(board)
    several = len(request.paths) > 1
    for_one = replace(request, options=replace(options, name=None)) if several else request
    built = [built_model(path, for_one, progress) for path in request.paths]
    name = model_name(options.name, directory.resolve().name) if several else built[0].deployment.prefix
    shares = [
        share_of(it.program, tables_bytes(it.view, it.board))
        for it in (each.deployment for each in built)
    ]
    programs = with_arenas([each.program for each in built], request.arena, name)
    if several:
        require_room(shares, options.limited(board), request.arena)
    built = [
        _with_parts(replace(each, program=program), request, progress)
        for each, program in zip(built, programs, strict=True)
    ]
    library = Library(name, built, [_member(each, options) for each in built], board, {})
    for part in request.parts:
        library = replace(library, pages={**library.pages, **part.files(library)})
    folders = [it for part in request.parts if (it := part.folder(library, progress)) is not None]
    if not request.force:
        for folder in folders:
            require_ours(folder.directory, folder.files)
    read = [*request.paths, *filter(None, [options.plan_file, options.order_file])]
    written = write_folder(directory, _files(library, request), read=read, force=request.force)
    for folder in folders:
        write_folder(folder.directory, folder.files, read=read, force=request.force)
    return Built(written, built, request.arena, library_arenas(shares, request.arena), _facts(request.parts))


def named_part(name: str) -> LibraryPart:
    """Return the part of that name. Raises UsageError if no extension has it."""
    known = {key: make for parts in added("parts") for key, make in parts.items()}
    if name not in known:
        raise UsageError(f"no extension adds {name} to libraries: there are {', '.join(known) or 'none'}")
    part: LibraryPart = known[name]()
    return part


def _with_parts(built: BuiltModel, request: BuildRequest, progress: Progress) -> BuiltModel:
    for part in request.parts:
        built = part.completed(built, request, progress)
    return built


def _files(library: Library, request: BuildRequest) -> dict[str, Content]:
    """Return the files of a library by path."""
    members, kind = library.members, request.kind
    if kind is None:
        files = library_files(members, library.name)
    else:
        exports = (part.exported(library, kind) for part in request.parts)
        export = next((it for it in exports if it is not None), None)
        files = dict(export or export_files(kind, members, library.name, request.board))
    if any(member.program.has_streams for member in members):
        files |= licensed(unit_files(request.board))
    files |= library.pages
    if not request.bare:
        files |= {
            f"firmware/{each.program.prefix}-{each.deployment.plan.board.replace(':', '-')}{suffix}": content
            for each in library.models
            if each.firmware is not None
            for suffix, content in _images(each.firmware)
        }
    return with_sbom(files, members, library.name) if request.sbom else files


def _images(firmware: Firmware) -> Iterator[tuple[str, bytes]]:
    """Yield the suffix and the content of a program's files: ELF, and UF2 if a boot loader takes it."""
    yield ".elf", firmware.elf.read_bytes()
    flash = firmware.board.flash
    for flasher in firmware.board.flashers:
        if isinstance(flasher, Uf2):
            yield ".uf2", uf2(flash_content(firmware.elf, flash), flash.origin, flasher.family)


def _facts(parts: Sequence[LibraryPart]) -> dict[str, Any]:
    """Return what the parts of a library add to its report; a part that it lacks adds its `absent`."""
    facts = {
        key: value
        for known in added("parts")
        for kind in known.values()
        for key, value in kind.absent.items()
    }
    for part in parts:
        facts |= part.facts()
    return facts


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
    request = BuildRequest([path], board, options, library, library_only=True)
    built = built_model(path, request, progress)
    member = _member(built, options)
    model = name + path.suffix.lower()
    files = starter_files(member, name, board, model, emulate=emulate)
    files[f"model/{model}"] = path.read_bytes()
    exported = export_files("platformio", [member], name, board)
    written = write_folder(library, exported, read=[path], force=force)
    written = [*written, *write_folder(directory, files, read=[path], force=force)]
    return Initialised(board, f"model/{model}", written, directory)


def _member(built: BuiltModel, options: Options) -> LibraryModel:
    """Return a built model in the form that the library's templates take."""
    deployment = built.deployment
    layout = layout_text(deployment.plan, deployment.model, options) if deployment.model.replaceable else None
    return LibraryModel(built.program, deployment.plan, deployment.source, built.selftest, layout)


def _require_names(paths: Sequence[Path], options: Options) -> None:
    """Raise UsageError for names that a library cannot have."""
    if len(paths) == 1:
        return
    if (
        options.states_plan
        or options.shapes
        or options.constants
        or options.states
        or options.replaceable
    ):
        raise UsageError(
            "--plan, --order, --shape, --bind, --state and --replaceable are for one model: build several "
            "without them"
        )
    names = [model_name(None, path.stem) for path in paths]
    twice = first_repeated(names)
    if twice is not None:
        raise UsageError(f"two models would be called {twice} in C: rename the file of one")


def built_model(path: Path, request: BuildRequest, progress: Progress) -> BuiltModel:
    """Build one model, verified on drawn samples: the smallest number that a part of the library asks for."""
    board, options, bare = request.board, request.options, request.bare
    deployment = plan_model(path, board, options, progress)
    if request.arena == "shared":
        plan = with_states_first(deployment.plan, deployment.model.work, deployment.board)
        deployment = deployment.with_plan(plan)
    for part in request.parts:
        deployment = part.deployed(deployment)
    count = min((it.samples for it in request.parts if it.samples is not None), default=None)
    samples = drawn_samples(deployment.model.graph, options.seed, count)
    verdict = require_verified(deployment, samples, progress) if request.verify else None
    progress.stage(f"building {path.name} for {board.name}")
    firmware, unknown = _firmware_for_costs(deployment) if bare else (deployment.build(Target(board)), None)
    if firmware is not None:
        deployment.require_flash(firmware)
    bound = None if firmware is None else stack_bound(firmware)
    if bound is None:
        program, unknown = (
            deployment.library_program,
            unknown or f"no bound can be stated for programs of {board.name}",
        )
    else:
        program = replace(deployment.library_program, stack_bytes=bound.library_bytes)
    return BuiltModel(
        deployment, program, verdict, firmware, _selftest(deployment, samples[0], verdict), unknown
    )


def _firmware_for_costs(deployment: Deployment) -> tuple[Firmware | None, str | None]:
    """Return the firmware that shows flash and stack of a library; or the reason for none."""
    board = deployment.board
    if board.is_host:
        return None, "the functions of this computer's C library are not known"
    if board.facts_only or board.framework is not None:
        return None, f"there is no start-up code for {board.name} to link a program with"
    try:
        return deployment.build(Target(board)), None
    except DeployError as error:
        return None, str(error).splitlines()[0]


def _selftest(deployment: Deployment, sample: Sample, verdict: Verdict | None) -> SelfTest | None:
    """Return the first input and the program's outputs on this computer; None if it did not run."""
    if verdict is None:
        return None
    graph, runs = deployment.plan.graph, verdict.runs or verdict.host
    results = {io.tensor: runs[0][io.tensor] for io in graph.own_outputs()}
    test = SelfTest(sample.stored, results, device_share(graph))
    return test if test.is_possible else None


def require_verified(deployment: Deployment, samples: list[Sample], progress: Progress = SILENT) -> Verdict:
    """Return the verdict on a program that runs these samples on this computer.

    Raises OutputsDifferError if the outputs differ from the reference, BuildError without a C compiler.
    """
    try:
        verdict = verdict_on_host(deployment, samples, progress)
    except BuildError as error:
        raise BuildError(
            f"{error}\nThe program is verified on this computer before it is written; --no-verify writes it "
            "unverified."
        ) from error
    if verdict.reasons:
        raise OutputsDifferError(
            "\n".join(
                (f"{deployment.model.path.name} is not verified, nothing is written:", *verdict.reasons)
            )
        )
    return verdict
