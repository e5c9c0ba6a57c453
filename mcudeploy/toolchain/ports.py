"""Serial ports of this machine, and the boards whose debug probes they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import serial
from serial.tools import list_ports

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import BoardNotFoundError, PortError
from mcudeploy.common.system.serial_ports import may_open
from mcudeploy.common.text import agree, count_text
from mcudeploy.toolchain.flash_tools import Attached

SAFE_SERIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]{0,79}")
"""A serial number that is safe in a command line; some cloned probes report other bytes."""


@dataclass(frozen=True, slots=True)
class SerialPort:
    """A serial port. `usb_id` is `vendor:product` in lower-case hex, "" for other ports.

    `allowed`: whether this user may open it; `serial`: serial number of the USB device; `location`: its USB
    socket.
    """

    name: str
    description: str
    usb_id: str = ""
    boards: tuple[str, ...] = ()
    allowed: bool = True
    serial: str = ""
    location: str = ""


def list_serial_ports(boards: Iterable[Board] = ()) -> tuple[SerialPort, ...]:
    """Return all serial ports by name; `SerialPort.boards` names those of `boards` with matching USB ids."""
    known = tuple(boards)
    return tuple(sorted((_port(info, known) for info in list_ports.comports()), key=lambda port: port.name))


def _port(info: object, boards: tuple[Board, ...]) -> SerialPort:
    name = str(getattr(info, "device", ""))
    vendor, product = getattr(info, "vid", None), getattr(info, "pid", None)
    usb_id = f"{vendor:04x}:{product:04x}" if vendor is not None and product is not None else ""
    return SerialPort(
        name=name,
        description=str(getattr(info, "description", "") or ""),
        usb_id=usb_id,
        boards=tuple(board.name for board in boards if usb_id and usb_id in board.usb_ids),
        allowed=may_open(name),
        serial=str(getattr(info, "serial_number", "") or ""),
        location=str(getattr(info, "location", "") or "").partition(":")[0],
    )


def find_port(board: Board, probe: str | None = None) -> str:
    """Return the port of the one attached board of this kind.

    A port matches by the serial number of the probe, or by the USB id of the board's probes. If none matches,
    the only USB port is taken. Raises BoardNotFoundError if there is none, or more than one.
    """
    ports = list_serial_ports((board,))
    usb = [port for port in ports if port.usb_id]
    chosen = [port for port in usb if probe is not None and port.serial == probe]
    matching = chosen or [port for port in usb if port.boards] or usb
    if len(matching) == 1:
        return matching[0].name
    if not matching:
        raise BoardNotFoundError(
            f"no {board.name} is attached: {_count(len(ports))} on this machine; none is a USB port. Connect "
            "it, or name its port with --port; --emulate runs its code in an emulator, if it has one."
        )
    names = ", ".join(f"{port.name} ({port.description}{_serial(port)})" for port in matching)
    raise BoardNotFoundError(
        f"{len(matching)} ports may be {board.name}: {names}. Choose one with --port, or with --probe SERIAL."
    )


def touch(port: str, baud: int) -> None:
    """Open a port at this rate and close it with DTR off: many boards then enter their boot loader.

    The device may disappear before the port is closed.
    """
    with suppress(serial.SerialException, OSError), serial.Serial(port, baud) as line:
        line.dtr = False


def port_with(usb_id: str) -> str:
    """Return the one serial port with this USB id. Raises PortError if there is none, or more than one."""
    names = [it.name for it in list_serial_ports() if it.usb_id == usb_id]
    if len(names) != 1:
        subject = f"{len(names)} serial ports have" if names else "no serial port has"
        raise PortError(f"{subject} the USB id {usb_id}: name one with --port.")
    return names[0]


def attached_by(board: Board, port: str | None, probe: str | None = None) -> Attached:
    """Return how flashers reach a board: by the probe with this serial number, or by the port's probe."""
    ports = list_serial_ports((board,))
    if probe is not None:
        usb_id = next((it.usb_id for it in ports if it.serial == probe), None)
        return Attached(port, probe, usb_id)
    probe_port = next(
        (it for it in ports if it.name == port and it.boards and SAFE_SERIAL.fullmatch(it.serial)), None
    )
    return Attached(port, probe_port.serial, probe_port.usb_id) if probe_port else Attached(port)


def _serial(port: SerialPort) -> str:
    return f", serial {port.serial}" if port.serial else ""


def _count(ports: int) -> str:
    return f"{count_text(ports, 'serial port') if ports else 'no serial ports'} {agree(ports, 'is', 'are')}"
