"""Devices attached to this computer: probes, boot loaders, serial ports; which board of a family it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import family, list_boards
from mcudeploy.boards.flashers import OpenOcd
from mcudeploy.boards.usb import boards_reached_by, kind_of
from mcudeploy.common.errors import BoardNotFoundError
from mcudeploy.common.programs import find_program
from mcudeploy.common.system.drives import USB_DEVICES
from mcudeploy.common.system.host_tools import install_command
from mcudeploy.toolchain.ports import SAFE_SERIAL, list_serial_ports
from mcudeploy.toolchain.tools import run_tool

_PROBE_S = 20.0
_ID_BITS = 0xFFF
_WRITES = ("probe", "boot loader")
"""Kinds of devices by which boards are written."""
_ST_INFO = re.compile(r"serial:\s*(\S+).*?chipid:\s*(0x[0-9a-fA-F]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AttachedDevice:
    """A device on USB, or a serial port; unknown fields are empty. `boards`: the boards that it may be, or
    belong to.
    """

    name: str
    kind: str
    usb_id: str = ""
    serial: str = ""
    port: str = ""
    allowed: bool = True
    boards: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (f"serial {self.serial}" if self.serial else "no serial number", self.port)
        return f"{self.name} ({', '.join(filter(None, parts))})"


def list_devices() -> tuple[AttachedDevice, ...]:
    """Return all serial ports, and the known kinds of devices among the rest of USB."""
    ports = list_serial_ports()
    with_port = {it.location for it in ports if it.location}
    devices = [
        replace(_device(it.usb_id, it.serial, it.description), port=it.name, allowed=it.allowed)
        for it in ports
    ]
    for folder in sorted(USB_DEVICES.glob("*")):
        usb_id = f"{_text(folder / 'idVendor')}:{_text(folder / 'idProduct')}"
        device = _device(usb_id, _text(folder / "serial"), _text(folder / "product"))
        known = device.boards or kind_of(usb_id, _text(folder / "product"))
        if known and folder.name not in with_port:
            devices.append(device)
    return tuple(devices)


def _device(usb_id: str, serial: str, product: str) -> AttachedDevice:
    kind = kind_of(usb_id, product) if usb_id else None
    return AttachedDevice(
        kind.name if kind else product or "serial port",
        kind.kind if kind else "serial port",
        usb_id,
        serial,
        boards=boards_reached_by(usb_id, product) if usb_id else (),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""


def attached_board(name: str, ports: Sequence[str] = (), probe: str | None = None) -> tuple[Board, str]:
    """Return the attached board of a family, and how it is known; the default board and "" if there is none.

    The device is at one of `ports` or has the serial number `probe`, if any is given.
    Raises BoardNotFoundError for several candidates, and if the chip of a probe remains unknown or is none of
    the family.
    """
    default = family(name)[0]
    members = {it.name: it for it in list_boards() if it.family == default.family}
    matching = [it for it in list_devices() if members.keys() & set(it.boards)]
    devices = [it for it in matching if it.kind in _WRITES] or matching
    devices = [it for it in devices if not ports or it.port in ports]
    if probe is not None:
        devices = [it for it in devices if it.serial == probe]
        if not devices:
            raise BoardNotFoundError(f"no {name} is attached by a probe {probe}: see `mcudeploy devices`.")
    distinct = list({(it.usb_id, it.serial or it.port): it for it in devices}.values())
    if not distinct:
        return default, ""
    if len(distinct) > 1 and not ports:
        listed = "; ".join(map(str, distinct))
        raise BoardNotFoundError(
            f"{len(distinct)} devices may be {name}: {listed}. Choose one with --probe SERIAL, or --port."
        )
    device = distinct[0]
    candidates = [members[it] for it in device.boards if it in members]
    if len(candidates) == 1:
        return candidates[0], str(device)
    return _by_chip(name, device, candidates)


def _by_chip(name: str, device: AttachedDevice, candidates: list[Board]) -> tuple[Board, str]:
    chip = _chip_id(device, candidates) if device.kind == "probe" else None
    if chip is None:
        raise BoardNotFoundError(
            f"{device} may be {', '.join(it.name for it in candidates)}; which one is not known, since its "
            f"chip reports no id. Check power and wires, install st-info "
            f"({install_command('stlink-tools')}), or name the board."
        )
    matching = [it for it in candidates if it.chip_id is not None and it.chip_id.value == chip]
    if not matching:
        raise BoardNotFoundError(
            f"the chip at {device} has id {chip:#05x}, which no board of the family {name} has: give the "
            "file of your own board, see `mcudeploy boards --new`."
        )
    if len(matching) > 1:  # also if one is library only: its power supply may differ
        names = ", ".join(it.name for it in matching)
        raise BoardNotFoundError(f"the chip at {device} has id {chip:#05x}, as {names}: name the board.")
    return matching[0], f"{device}, chip id {chip:#05x}"


def _chip_id(device: AttachedDevice, candidates: list[Board]) -> int | None:
    """Return the id of the chip at a probe, read by st-info or else by OpenOCD; None if neither can."""
    if find_program("st-info"):
        answers = dict(_ST_INFO.findall(_output_of(["st-info", "--probe"])))
        chip_id = answers.get(
            device.serial, next(iter(answers.values()), None) if len(answers) == 1 else None
        )
        if chip_id is not None and int(chip_id, 16):
            return int(chip_id, 16) & _ID_BITS
    if find_program("openocd"):
        return next(_ids_by_openocd(device, candidates), None)
    return None


def _ids_by_openocd(device: AttachedDevice, candidates: list[Board]) -> Iterator[int]:
    """Yield the content of each candidate's id register if it equals the candidate's id."""
    serial = ["-c", f"adapter serial {device.serial}"] if SAFE_SERIAL.fullmatch(device.serial) else []
    for board in candidates:
        flasher = next((it for it in board.flashers if isinstance(it, OpenOcd)), None)
        if flasher is None or board.chip_id is None:
            continue
        read = ["-c", "init", "-c", f"mdw {board.chip_id.address:#x}", "-c", "exit"]
        output = _output_of(["openocd", *flasher.args, *serial, *read])
        word = re.search(rf"{board.chip_id.address:#x}: ([0-9a-f]{{8}})", output)
        if word and int(word[1], 16) & _ID_BITS == board.chip_id.value:
            yield board.chip_id.value


def _output_of(command: list[str]) -> str:
    """Return a tool's output; empty if it does not start."""
    try:
        return run_tool(command, _PROBE_S).output
    except OSError:
        return ""
