"""`build` and `flash`: generate a model's C library and firmware, and write the firmware to a board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.devices import board_option, device_options
from mcudeploy.cli.help import LongCommand
from mcudeploy.cli.options import (
    added_options,
    extension_options,
    force_option,
    library_options,
    model_argument,
    output_options,
    planning_options,
)
from mcudeploy.cli.output import Output
from mcudeploy.cli.parameter_types import InputFile, InputModel, NewFolder
from mcudeploy.common.errors import UsageError

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.device.target import Target
    from mcudeploy.planner.plan_options import Options


@click.command(cls=LongCommand)
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
@added_options("build")
@planning_options()
@output_options
def build(
    *,
    models: tuple[Path, ...],
    board: Board,
    directory: Path,
    options: Options,
    output: Output,
    **rest: Any,
) -> None:
    """Write a self-contained C library of one or several models, and the firmware that runs each."""
    from mcudeploy.commands import build as building
    from mcudeploy.execution.parts import BuildRequest

    request = BuildRequest(models, board, options, directory, **rest)
    with output.progress() as progress:
        built = building.build_models(request, progress)
    output.result(built, tables.build)


@click.command(cls=LongCommand)
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
    emulate: bool,
    force: bool,
    options: Options,
    output: Output,
) -> None:
    """Write a PlatformIO project that checks and runs MODEL on the board: main.c, library, mcudeploy.toml."""
    from mcudeploy.commands import build as building

    with output.progress() as progress:
        project = building.init_project(
            model, board, options, directory, emulate=emulate, force=force, progress=progress
        )
    output.result(project, tables.init)


@click.command(cls=LongCommand)
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
        progress.stage(f"{'preparing to flash' if dry_run else 'flashing'} {target.board.name}")
        if elf is not None:
            flashed = api.flash_program(elf, target, dry_run)
        else:
            flashed = api.flash_board(model, target, options, dry_run)
    output.result(flashed, tables.flash)
