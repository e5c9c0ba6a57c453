"""`build` and `flash`: generate a model's C library and firmware, and write the firmware to a board."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from click import get_current_context

from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.devices import board_option, device_options
from mcudeploy.cli.options import (
    added_options,
    extension_options,
    force_option,
    library_options,
    model_argument,
    output_options,
    planning_options,
    typed_arguments,
)
from mcudeploy.cli.output import Output
from mcudeploy.cli.parameter_types import InputFile, InputModel, NewFolder
from mcudeploy.common.errors import UsageError

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.codegen.arenas import ArenaKind
    from mcudeploy.codegen.exporters import Kind
    from mcudeploy.device.target import Target
    from mcudeploy.extensions.audio.wake_word import WakeWord
    from mcudeploy.planner.plan_options import Options


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=InputModel())
@extension_options
@board_option(required=True)
@library_options("the C library and the firmware")
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Run the program on this computer against ONNX Runtime, and write it only if the outputs match.",
)
@click.option(
    "--library-only",
    is_flag=True,
    help="Build no firmware: the C library needs neither a toolchain nor a driver for the board.",
)
@click.option(
    "--for",
    "kind",
    type=click.Choice(
        ["platformio", "arduino", "cmake", "zephyr", "esp-idf", "stm32cube", "esphome", "rust"]
    ),
    help="Lay the library out for this build system, with its metadata and a self-checking example; no "
    "firmware is built.  [default: CMake and PlatformIO]",
)
@click.option(
    "--manifest",
    metavar="FILE.json",
    type=InputFile(),
    help="With --for esphome: ESPHome's description of the wake word.  [default: the .json beside the model]",
)
@click.option(
    "--arena",
    type=click.Choice(["own", "shared", "extern", "init"]),
    default="own",
    show_default=True,
    help="Owner of the arenas: each model (own); all models, if one runs at a time; arrays of the "
    "application; or buffers that it passes to MODEL_init().",
)
@click.option(
    "--sbom/--no-sbom",
    default=False,
    help="Also write sbom.cdx.json: models, kernels and files with hashes and licences, as CycloneDX 1.5.",
)
@click.option(
    "--dossier",
    metavar="DIR",
    type=NewFolder(),
    help="Also write the evidence for the library here: a page of what was checked, the plan, a second "
    "checker that needs Python alone, hashes.",
)
@click.option(
    "--bounds/--no-bounds",
    default=False,
    help="Also state the most instructions and cycles of a call over all inputs, in the header and in "
    "NAME_bounds.md. They are counted in the emulator of a board with the same core.",
)
@added_options("build")
@planning_options()
@output_options
def build(
    *,
    models: tuple[Path, ...],
    board: Board,
    directory: Path,
    name: str | None,
    verify: bool,
    force: bool,
    library_only: bool,
    kind: Kind | None,
    manifest: Path | None,
    sbom: bool,
    arena: ArenaKind,
    dossier: Path | None,
    bounds: bool,
    options: Options,
    output: Output,
) -> None:
    """Write a self-contained C library of one or several models, and the firmware that runs each."""
    from mcudeploy.commands import build as building
    from mcudeploy.extensions.dossier.dossier import DossierWanted

    wanted = None if dossier is None else DossierWanted(dossier, typed_arguments())
    wake_word = None
    if kind == "esphome":
        models, wake_word = _wake_word(models, manifest)
    elif manifest is not None:
        raise UsageError("--manifest describes a wake word for --for esphome")
    with output.progress() as progress:
        options = replace(options, name=name)
        built = building.build_models(
            models,
            board,
            options,
            directory,
            verify=verify,
            force=force,
            library_only=library_only,
            kind=kind,
            sbom=sbom,
            arena=arena,
            wake_word=wake_word,
            dossier=wanted,
            bounds=bounds,
            progress=progress,
        )
    output.result(built, tables.build)


def _wake_word(models: tuple[Path, ...], manifest: Path | None) -> tuple[tuple[Path, ...], WakeWord]:
    """The model after ESPHome's front end, and the wake word that it hears."""
    from mcudeploy.extensions.audio.wake_word_manifest import read_manifest, with_front_end

    if len(models) != 1:
        raise UsageError(
            f"--for esphome writes a component of one wake word, and there are {len(models)} models"
        )
    word = read_manifest(manifest or models[0].with_suffix(".json"))
    folder = get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="mcudeploy-"))
    return (with_front_end(models[0], word, Path(folder)),), word


@click.command()
@click.argument("directory", metavar="DIR", type=NewFolder())
@model_argument
@board_option(required=True)
@click.option("--name", help="Prefix of the model's names in C; the file's name by default.")
@click.option(
    "--emulate/--no-emulate",
    default=False,
    help="Write a program for the board's QEMU machine; implied for boards that exist only there.",
)
@force_option
@planning_options()
@output_options
def init(
    *,
    directory: Path,
    model: Path,
    board: Board,
    name: str | None,
    emulate: bool,
    force: bool,
    options: Options,
    output: Output,
) -> None:
    """Write a PlatformIO project that checks and runs MODEL on the board: main.c, library, mcudeploy.toml."""
    from mcudeploy.commands import build as building

    with output.progress() as progress:
        options = replace(options, name=name)
        project = building.init_project(
            model, board, options, directory, emulate=emulate, force=force, progress=progress
        )
    output.result(project, tables.init)


@click.command()
@device_options
@click.argument("model", required=False, type=InputModel())
@extension_options
@planning_options()
@click.option(
    "--elf",
    type=InputFile(),
    help="Write this ELF file to the board instead of building a model.",
)
@click.option("--dry-run", is_flag=True, help="Build, then print the commands that would write the board.")
@output_options
def flash(
    *,
    model: Path | None,
    target: Target,
    options: Options,
    elf: Path | None,
    dry_run: bool,
    output: Output,
) -> None:
    """Write the firmware of MODEL to the board.

    Without MODEL, write the measurer: the program that times operators for `tune`.
    """
    if elf is not None and model is not None:
        raise UsageError("--elf names the program: leave out MODEL")
    from mcudeploy.commands import commands as api

    with output.progress() as progress:
        progress.stage(f"flashing {target.board.name}")
        if elf is not None:
            flashed = api.flash_program(elf, target, dry_run)
        else:
            flashed = api.flash_board(model, target, options, dry_run)
    output.result(flashed, tables.flash)
