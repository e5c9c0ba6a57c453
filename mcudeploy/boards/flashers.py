"""Tables `[[flasher]]` of board files: tools that write a board, the preferred one first, with facts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo

from mcudeploy.boards.fact_types import Address, Facts, Line, UsbId, spelled

Word = Annotated[
    str,
    Field(max_length=80),
    spelled(
        r"[A-Za-z0-9_][A-Za-z0-9_.+-]*",
        "letters, digits and _ . + -, the first of them a letter, a digit or _",
    ),
]
"""An argument that is not an option."""


class OpenOcd(Facts):
    """`args` name probe and target."""

    tool: Literal["openocd"]
    args: tuple[Line, ...]


class PyOcd(Facts):
    """`target` as `pyocd list --targets` names it."""

    tool: Literal["pyocd"]
    target: Word


class ProbeRs(Facts):
    """`chip` as `probe-rs chip list` names it."""

    tool: Literal["probe-rs"]
    chip: Word


class StFlash(Facts):
    """st-flash writes to the origin of the flash."""

    tool: Literal["st-flash"]


class EspTool(Facts):
    """`address`: offset in the serial flash that the boot loader starts the program from. `direct_boot`: the
    boot ROM starts the plain content of the flash, else the image that `elf2image` makes.
    """

    tool: Literal["esptool"]
    chip: Word
    address: Address
    direct_boot: bool = False


class PicoTool(Facts):
    """For a chip in its boot loader (BOOTSEL)."""

    tool: Literal["picotool"]


class Uf2(Facts):
    """A copy to the boot loader's drive. `drive`: its label; `family`: the family id in the blocks."""

    tool: Literal["uf2"]
    family: Address
    drive: Word


class DfuUtil(Facts):
    """`usb_id` of the chip in its boot loader, `alt`: the setting for its flash."""

    tool: Literal["dfu-util"]
    usb_id: UsbId
    alt: Annotated[int, Field(ge=0, le=255)] = 0


class TeensyLoader(Facts):
    """`mcu` as the loader names the board."""

    tool: Literal["teensy_loader_cli"]
    mcu: Word


class PlatformIo(Facts):
    """PlatformIO's own upload. `needs_port`: it writes through the serial port."""

    tool: Literal["platformio"]
    needs_port: bool = False


def _placed(line: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """Return the words; a path from the board file on becomes absolute."""
    folder = (info.context or {}).get("folder")
    if folder is None:
        return line
    return tuple(str(Path(folder, it).resolve()) if it.startswith(("./", "../")) else it for it in line)


class Command(Facts):
    """A program of the user, such as one that flashes on another computer.

    Its arguments are the words of `line`, with values for `{elf}`, `{port}`, `{probe}` and `{board}`. A word
    that begins with `./` or `../` is a path from the board file. The program runs in an empty folder.
    """

    tool: Literal["command"]
    line: Annotated[
        tuple[Annotated[Line, Field(min_length=1)], ...], Field(min_length=1), AfterValidator(_placed)
    ]


Flasher = Annotated[
    Command
    | OpenOcd
    | PyOcd
    | ProbeRs
    | StFlash
    | EspTool
    | PicoTool
    | Uf2
    | DfuUtil
    | TeensyLoader
    | PlatformIo,
    Field(discriminator="tool"),
]
