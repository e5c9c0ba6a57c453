"""Tools that write boards: how each is called, what installs it, and the causes of its errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mcudeploy.boards import flashers as facts
from mcudeploy.boards.board import Board
from mcudeploy.boards.flashers import Flasher
from mcudeploy.boards.platformio import users_environment
from mcudeploy.common.errors import FlashError
from mcudeploy.common.programs import find_program
from mcudeploy.common.system.drives import copy_command, drives, usual_drive
from mcudeploy.common.system.host_tools import install_command
from mcudeploy.toolchain import images
from mcudeploy.toolchain.framework import PROJECT, run_command

Lines = list[list[str]]
"""Command lines, each as its words."""
_Encoder = Callable[[Flasher, bytes, int], bytes | str]
_PROBE_ABSENT = "no probe is attached: connect the board, or its probe, by USB"
_WIRES = "the probe does not reach the chip: check power and SWD wires, hold reset meanwhile"
_BOOTSEL = "BOOTSEL: hold it while you plug the board in"
_NOT_IN_BOOT_LOADER = "the chip is not in its boot loader"


@dataclass(frozen=True, slots=True)
class Attached:
    """A flasher's connection to a board: the serial port, and serial number and USB id of the probe or boot
    loader.

    Unknown fields are None or empty.
    """

    port: str | None = None
    serial: str | None = None
    usb_id: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that writes boards."""

    programs: tuple[str, ...]
    """The tool's names on PATH; none for a step that this computer does itself."""
    install: str
    lines: Callable[[Flasher, Board, Path, Attached], Lines]
    suffix: str = ".elf"
    encode: _Encoder | None = None
    """Returns the content of the file that the tool takes; None for the ELF file."""
    remedies: tuple[tuple[str, str], ...] = ()
    """Parts of the tool's output in lower case, each with the advice."""
    button: str = ""
    """The board's button or pin that starts its boot loader, and its use."""
    note: str = ""
    """An action of the user while the tool runs."""
    environment: Callable[[], dict[str, str]] | None = None
    """Replaces this process's environment."""
    by_port: bool = False
    """Whether the tool reaches a board through its port alone, even a port of another computer."""

    @property
    def program(self) -> str | None:
        """The name of the installed program; None if none is."""
        return next((name for name in self.programs if find_program(name)), None)


def command_lines(flasher: Flasher, board: Board, elf: Path, attached: Attached) -> Lines:
    """Return the command lines that write, verify (if the tool can) and start a program, in this order."""
    tool = TOOLS[flasher.tool]
    suffix, _ = _image_format(flasher)
    lines = tool.lines(flasher, board, elf.with_suffix(suffix), attached)
    name = tool.program
    return [[name if name and line[0] in tool.programs else line[0], *line[1:]] for line in lines]


def make_image(flasher: Flasher, board: Board, elf: Path) -> None:
    """Write the flasher's image beside the ELF file, unless it takes the ELF file."""
    suffix, encode = _image_format(flasher)
    if encode is not None:
        images.write_image(elf, board.flash, suffix, partial(encode, flasher))


def _image_format(flasher: Flasher) -> tuple[str, _Encoder | None]:
    """Return the suffix of the file that a flasher takes, and the function that writes it from the flash's
    content.
    """
    if isinstance(flasher, facts.EspTool) and flasher.direct_boot:
        return ".bin", _plain
    tool = TOOLS[flasher.tool]
    return tool.suffix, tool.encode


def drive_of(flasher: facts.Uf2) -> Path | None:
    """Return the mounted drive of a UF2 boot loader; None if there is none. FlashError for several."""
    waiting = [it for it in drives(flasher.drive) if (it / "INFO_UF2.TXT").is_file()]
    if len(waiting) > 1:
        names = ", ".join(map(str, waiting))
        raise FlashError(f"{len(waiting)} boards wait for a file: {names}. Unplug all but one.")
    return waiting[0] if waiting else None


def _optional(option: str, value: str | None) -> list[str]:
    return [option, value] if value else []


def _openocd(flasher: Flasher, _: Board, image: Path, attached: Attached) -> Lines:
    assert isinstance(flasher, facts.OpenOcd)
    choose = _optional("-c", attached.serial and f"adapter serial {attached.serial}")
    return [["openocd", *flasher.args, *choose, "-c", f"program {{{image}}} verify reset exit"]]


def _pyocd(flasher: Flasher, _: Board, image: Path, attached: Attached) -> Lines:
    assert isinstance(flasher, facts.PyOcd)
    choose = _optional("--uid", attached.serial)
    return [
        ["pyocd", "load", "--no-wait", "--target", flasher.target, *choose, "--format", "elf", str(image)]
    ]


def _probe_rs(flasher: Flasher, _: Board, image: Path, attached: Attached) -> Lines:
    assert isinstance(flasher, facts.ProbeRs)
    probe = attached.usb_id and attached.serial and f"{attached.usb_id}:{attached.serial}"
    chip = ["--chip", flasher.chip, *_optional("--probe", probe)]
    # `download` leaves the chip halted.
    return [["probe-rs", "download", *chip, "--verify", str(image)], ["probe-rs", "reset", *chip]]


def _st_flash(_: Flasher, board: Board, image: Path, attached: Attached) -> Lines:
    choose = _optional("--serial", attached.serial)
    return [["st-flash", "--reset", *choose, "write", str(image), f"{board.flash.origin:#010x}"]]


def _esptool(flasher: Flasher, _: Board, image: Path, attached: Attached) -> Lines:
    assert isinstance(flasher, facts.EspTool)
    chip = ["--chip", flasher.chip]
    port = _optional("--port", attached.port)
    written = image if flasher.direct_boot else image.with_suffix(".esp.bin")
    write = ["esptool", *chip, *port, "write_flash", f"{flasher.address:#x}", str(written)]
    if flasher.direct_boot:
        return [write]
    return [["esptool", *chip, "elf2image", "-o", str(written), str(image)], write]


def _picotool(_: Flasher, __: Board, image: Path, attached: Attached) -> Lines:
    return [["picotool", "load", "-v", "-x", str(image), *_optional("--ser", attached.serial)]]


def _platformio(flasher: Flasher, _: Board, image: Path, attached: Attached) -> Lines:
    assert isinstance(flasher, facts.PlatformIo)
    # The build is there, without its objects: PlatformIO must neither clean nor build.
    ready = ("--disable-auto-clean", "-t", "nobuild", "-t", "upload")
    port = _optional("--upload-port", attached.port if flasher.needs_port else None)
    return [run_command(image.parent / PROJECT, *ready, *port)]


def _uf2(flasher: Flasher, _: Board, image: Path, __: Attached) -> Lines:
    assert isinstance(flasher, facts.Uf2)
    return [copy_command(image, drive_of(flasher) or usual_drive(flasher.drive))]


def _uf2_content(flasher: Flasher, content: bytes, origin: int) -> bytes:
    assert isinstance(flasher, facts.Uf2)
    return images.uf2(content, origin, flasher.family)


def _dfu_util(flasher: Flasher, board: Board, image: Path, attached: Attached) -> Lines:
    assert isinstance(flasher, facts.DfuUtil)
    device = ["-d", flasher.usb_id, *_optional("-S", attached.serial)]
    # `leave`: start the program.
    target = ["-a", str(flasher.alt), "-s", f"{board.flash.origin:#010x}:leave"]
    return [["dfu-util", *device, *target, "-D", str(image)]]


def _teensy(flasher: Flasher, _: Board, image: Path, __: Attached) -> Lines:
    assert isinstance(flasher, facts.TeensyLoader)
    return [["teensy_loader_cli", f"--mcu={flasher.mcu}", "-w", "-v", str(image)]]


def _command(flasher: Flasher, board: Board, image: Path, attached: Attached) -> Lines:
    assert isinstance(flasher, facts.Command)
    known = {
        "{elf}": str(image),
        "{port}": attached.port or "",
        "{probe}": attached.serial or "",
        "{board}": board.name,
    }
    names = re.compile("|".join(map(re.escape, known)))
    return [[names.sub(lambda match: known[match[0]], word) for word in flasher.line]]


def _plain(_: Flasher, content: bytes, __: int) -> bytes:
    return content


def _hex(_: Flasher, content: bytes, origin: int) -> str:
    return images.intel_hex(content, origin)


TOOLS: dict[str, Tool] = {
    "command": Tool((), "", _command, by_port=True),
    "openocd": Tool(
        ("openocd",),
        install_command("openocd"),
        _openocd,
        remedies=(
            (
                "libusb_error_access",
                "the probe may not be opened: install the udev rules of openocd, then plug it in again",
            ),
            ("unable to find a matching cmsis-dap", _PROBE_ABSENT),
            ("open failed", _PROBE_ABSENT),
            ("init mode failed", _WIRES),
            (
                "couldn't find script",
                f"this OpenOCD has no script for the board: {install_command('openocd')}",
            ),
            ("checksum mismatch", "flash does not hold what was written: is it write-protected?"),
        ),
    ),
    "pyocd": Tool(
        ("pyocd",),
        "pipx install pyocd",
        _pyocd,
        remedies=(
            ("no connected debug probes", _PROBE_ABSENT),
            ("no available debug probes", _PROBE_ABSENT),
            ("no target device available", _PROBE_ABSENT),
            ("not recognized", "pyOCD does not know the chip yet: pyocd pack install TARGET"),
            ("no ack", _WIRES),
        ),
    ),
    "probe-rs": Tool(
        ("probe-rs",),
        "cargo install probe-rs-tools --locked",
        _probe_rs,
        remedies=(
            ("no connected probes were found", _PROBE_ABSENT),
            ("no probes were found", _PROBE_ABSENT),
            ("no probe was found", _PROBE_ABSENT),
            ("connecting to the chip was unsuccessful", _WIRES),
        ),
    ),
    "st-flash": Tool(
        ("st-flash",),
        install_command("stlink-tools"),
        _st_flash,
        ".bin",
        _plain,
        (("couldn't find any st-link", _PROBE_ABSENT), ("failed to connect to target", _WIRES)),
    ),
    "esptool": Tool(
        ("esptool", "esptool.py"),
        "pipx install esptool",
        _esptool,
        by_port=True,
        remedies=(
            ("no serial data received", f"{_NOT_IN_BOOT_LOADER}: hold BOOT, press RESET, and retry"),
            ("failed to connect", f"{_NOT_IN_BOOT_LOADER}: hold BOOT, press RESET, and retry"),
        ),
        button="BOOT: hold it and press RESET, if the upload does not connect",
    ),
    "picotool": Tool(
        ("picotool",),
        install_command("picotool"),
        _picotool,
        remedies=(
            ("no accessible", f"{_NOT_IN_BOOT_LOADER}: hold BOOTSEL while you plug it in"),
            ("unable to connect", "the chip may not be opened: install the udev rules of picotool"),
        ),
        button=_BOOTSEL,
    ),
    "platformio": Tool((), "", _platformio, environment=users_environment),
    "uf2": Tool((), "", _uf2, ".uf2", _uf2_content, button=_BOOTSEL),
    "dfu-util": Tool(
        ("dfu-util",),
        install_command("dfu-util"),
        _dfu_util,
        ".bin",
        _plain,
        (
            ("no dfu capable usb device", f"{_NOT_IN_BOOT_LOADER}: set BOOT0 high, and press reset"),
            ("cannot open dfu device", "the chip may not be opened: add a udev rule for its USB id"),
        ),
        button="BOOT0: set it high and press reset, for dfu-util",
    ),
    "teensy_loader_cli": Tool(
        ("teensy_loader_cli",),
        install_command("teensy-loader-cli"),
        _teensy,
        ".hex",
        _hex,
        (("unable to open", f"{_NOT_IN_BOOT_LOADER}: press the button of the board"),),
        button="the white one: press it when the upload waits",
        note="press the button of the board",
    ),
}
