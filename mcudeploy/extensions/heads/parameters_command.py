"""`parameters`: new constants for the replaceable operators of a library, without a new firmware."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import rich_click as click
from rich.console import Console

from mcudeploy.cli.devices import PORTS, port_of
from mcudeploy.cli.options import Command, destination_option, files_option, model_argument, output_options
from mcudeploy.cli.output import Output, Values, cell
from mcudeploy.cli.parameter_types import InputData, InputFile
from mcudeploy.cli.table_grids import facts, table_of
from mcudeploy.common.errors import UsageError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def parameters() -> None:
    """Make, push, pull and compare the parameters of operators that `build --replaceable` names."""


_library_option = click.option(
    "--library",
    metavar="DIR",
    type=InputData(),
    required=True,
    help="The library that `build --replaceable` wrote, or its file NAME_parameters.json.",
)
_blob_file_option = destination_option("Write the blob of parameters to this file.", required=True)


def _device_options(required: bool) -> Callable[[Command], Command]:
    """Add --port and --baud."""
    port = click.option("--port", metavar="PORT", required=required, help=PORTS)
    baud = click.option(
        "--baud",
        metavar="RATE",
        type=click.IntRange(1200, 12_000_000),
        default=115200,
        show_default=True,
        help="Rate of a serial port.",
    )
    return lambda command: port(baud(command))


@parameters.command()
@model_argument
@_library_option
@_blob_file_option
@files_option
@output_options
def make(*, model: Path, library: Path, destination: Path, output: Output) -> None:
    """Write the parameters of MODEL, whose architecture and activations are those of the library's model."""
    from mcudeploy.extensions.heads import parameter_exchange as api

    output.result(api.make(model, library, destination), _written)


@parameters.command()
@_device_options(required=True)
@_blob_file_option
@files_option
@output_options
def pull(*, port: str, baud: int, destination: Path, output: Output) -> None:
    """Read the parameters of the program on a device into a file."""
    from mcudeploy.extensions.heads import parameter_exchange as api

    with output.progress() as progress:
        report = api.pull(port_of(port), baud, destination, progress)
    output.result(report, _written)


@parameters.command()
@click.argument("blob", metavar="BLOB", type=InputFile())
@_device_options(required=True)
@output_options
def push(*, blob: Path, port: str, baud: int, output: Output) -> None:
    """Replace the parameters of the program on a device, until its next start."""
    from mcudeploy.extensions.heads import parameter_exchange as api

    with output.progress() as progress:
        report = api.push(blob, port_of(port), baud, progress)
    output.result(report, _written)


@parameters.command()
@click.argument("blob", metavar="BLOB", type=InputFile())
@click.argument("other", metavar="[OTHER]", required=False, type=InputFile())
@_device_options(required=False)
@_library_option
@output_options
def diff(
    *, blob: Path, other: Path | None, port: str | None, baud: int, library: Path, output: Output
) -> None:
    """Compare the parameters of BLOB with those of OTHER, or of the program on a device."""
    from mcudeploy.extensions.heads import parameter_exchange as api

    if (other is None) == (port is None):
        raise UsageError("name what to compare with: a second file, or --port")
    first = api.read_blob(blob)
    if other is not None:
        second = api.read_blob(other)
    else:
        with output.progress() as progress:
            second = api.pulled_blob(port_of(str(port)), baud, progress)
    output.result(api.compare(first, second, library), _compared)


def _written(console: Console, report: Values) -> None:
    operators = ", ".join(report.get("operators", ()))
    facts(
        console,
        [
            ("parameters", f"{report['value_bytes']:,} B, a blob of {report['blob_bytes']:,} B"),
            ("operators", operators),
            ("hash", report["hash"]),
        ],
    )


def _compared(console: Console, report: Values) -> None:
    table = table_of("operator", "parameter", "type", "elements>", "differ>", "by at most>")
    for it in report["parameters"]:
        largest_gap = "-" if it["largest"] is None else f"{it['largest']:g}"
        numbers = (f"{it['elements']:,}", f"{it['differ']:,}", largest_gap)
        table.add_row(*map(cell, (it["operator"], it["name"], it["type"], *numbers)))
    console.print(table)
    console.print("equal" if report["equal"] else "not equal")
