"""Serial ports of this machine, and the boards whose debug probes they belong to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from serial.tools import list_ports

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import BoardNotFoundError
from mcudeploy.common.text import agree, count_text


@dataclass(frozen=True, slots=True)
class Port:
    """A serial port. `usb_id` is `vendor:product` in lower-case hex, empty where it is no USB port.

    `allowed`: whether this user may open it.
    """

    name: str
    description: str
    usb_id: str = ""
    boards: tuple[str, ...] = ()
    allowed: bool = True


def list_serial_ports(boards: Iterable[Board] = ()) -> tuple[Port, ...]:
    """All serial ports by name; `Port.boards` names those of `boards` whose USB ids match."""
    known = tuple(boards)
    return tuple(sorted((_port(info, known) for info in list_ports.comports()), key=lambda port: port.name))


def _port(info: object, boards: tuple[Board, ...]) -> Port:
    name = str(getattr(info, "device", ""))
    vendor, product = getattr(info, "vid", None), getattr(info, "pid", None)
    usb_id = f"{vendor:04x}:{product:04x}" if vendor is not None and product is not None else ""
    return Port(
        name=name,
        description=str(getattr(info, "description", "") or ""),
        usb_id=usb_id,
        boards=tuple(board.name for board in boards if usb_id and usb_id in board.usb_ids),
        allowed=sys.platform == "win32" or not Path(name).exists() or os.access(name, os.R_OK | os.W_OK),
    )


def find_port(board: Board) -> str:
    """The port of the one attached board of this kind.

    A port matches by the USB id of the board's probe; where none does, the only USB port is taken.
    Raises BoardNotFoundError where there is none, or more than one.
    """
    ports = list_serial_ports((board,))
    usb = [port for port in ports if port.usb_id]
    matching = [port for port in usb if port.boards] or usb
    if len(matching) == 1:
        return matching[0].name
    if not matching:
        raise BoardNotFoundError(
            f"no {board.name} is attached: {_count(len(ports))} on this machine, none of them USB. "
            f"Connect the board or give --port; --emulate runs it in QEMU where that can."
        )
    names = ", ".join(f"{port.name} ({port.description})" for port in matching)
    raise BoardNotFoundError(f"{len(matching)} ports may be {board.name}: {names}. Choose one with --port.")


def _count(ports: int) -> str:
    return f"{count_text(ports, 'serial port') if ports else 'no serial ports'} {agree(ports, 'is', 'are')}"
