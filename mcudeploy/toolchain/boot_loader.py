"""Boards that are written through the boot loader of their ROM: entering it, and looking for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from mcudeploy.boards.board import Board
from mcudeploy.boards.flashers import Flasher, PicoTool, Uf2
from mcudeploy.common.errors import FlashError
from mcudeploy.common.system.drives import LISTS_USB, unmounted
from mcudeploy.common.system.serial_ports import port_identity
from mcudeploy.toolchain.attached import list_devices
from mcudeploy.toolchain.flash_tools import drive_of
from mcudeploy.toolchain.ports import list_serial_ports, touch

_LOG = logging.getLogger(__name__)
_APPEARS_S = 20.0
"""Seconds from the touch to a drive that the system has mounted."""
_POLL_S = 0.1
_HOLD = "Hold the button of the boot loader (BOOTSEL) while you plug the board in."


def enter_boot_loader(board: Board, flasher: Flasher, port: str | None) -> None:
    """Restart the board in its boot loader if the flasher needs that and the board's program allows it.

    The program does so for a host that opens its serial port at a low rate and closes it. `port`: the board's
    port, if it is known. Raises FlashError if the boot loader is not there afterwards.
    """
    is_attached = _test_for(board, flasher)
    if is_attached is None or is_attached():
        return
    if touched_port := _touch_program(board, port):
        _LOG.info("%s at %s restarts in its boot loader", board.name, touched_port)
        deadline = time.monotonic() + _APPEARS_S * board.patience
        while not is_attached():
            if time.monotonic() > deadline:
                raise FlashError(f"{board.name} was not flashed: {_why_absent(flasher)} {_HOLD}")
            time.sleep(_POLL_S)
    elif isinstance(flasher, Uf2):
        raise FlashError(f"{board.name} was not flashed: {_why_absent(flasher)} {_HOLD}")


def boot_loader_attached(board: Board) -> bool:
    """Whether a USB device with an id of the board's boot loader is attached.

    If the system does not list USB devices: whether the drive of the boot loader is mounted.
    """
    if not LISTS_USB:
        return any(drive_of(it) is not None for it in board.flashers if isinstance(it, Uf2))
    own = {board.uart.usb_id} if board.uart else set()
    ids = set(board.usb_ids) - own
    return any(it.kind == "boot loader" and it.usb_id in ids for it in list_devices())


def _test_for(board: Board, flasher: Flasher) -> Callable[[], bool] | None:
    """Return a test whether the boot loader that a flasher needs is there; None if it needs none."""
    if isinstance(flasher, Uf2):
        return lambda: drive_of(flasher) is not None
    if isinstance(flasher, PicoTool):
        return lambda: boot_loader_attached(board)
    return None


def _why_absent(flasher: Flasher) -> str:
    if not isinstance(flasher, Uf2):
        return "its boot loader did not appear."
    if mount := unmounted(flasher.drive):
        return f"the drive {flasher.drive} is there, and not mounted ({mount})."
    return f"no drive {flasher.drive} is mounted."


def _touch_program(board: Board, port: str | None) -> str:
    """Touch the serial port of the board's program; return its name, or "" if there is none."""
    uart = board.uart
    if uart is None or uart.touch_baud is None:
        return ""
    programs = [it.name for it in list_serial_ports() if it.usb_id == uart.usb_id]
    if port is not None:
        programs = [it for it in programs if port_identity(it) == port_identity(port)]
    if len(programs) != 1:
        return ""
    touch(programs[0], uart.touch_baud)
    return programs[0]
