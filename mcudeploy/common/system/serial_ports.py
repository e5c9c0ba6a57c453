"""Serial ports."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from mcudeploy.common.system import MACOS, WINDOWS

EXAMPLE_PORT = "COM3" if WINDOWS else "/dev/cu.usbmodem1101" if MACOS else "/dev/ttyACM0"
_GROUP = "dialout"
JOIN_PORTS = f'sudo usermod -aG {_GROUP} "$USER"'
"""The command that lets a user open serial ports, where they belong to a group."""


def port_identity(name: str) -> str:
    """Return one name for all names of a serial port."""
    if WINDOWS:
        return name.upper().removeprefix("\\\\.\\")
    return str(Path(name).resolve()) if name.startswith("/") else name


def may_open(port: str) -> bool:
    """Whether this user may open a serial port that exists."""
    return WINDOWS or not Path(port).exists() or os.access(port, os.R_OK | os.W_OK)


def in_group_of_ports() -> bool:
    """Whether this user is in the group of serial ports, or the system has none."""
    if sys.platform in ("win32", "darwin") or os.geteuid() == 0:
        return True
    try:
        import grp  # noqa: PLC0415

        return grp.getgrnam(_GROUP).gr_gid in os.getgroups()
    except (ImportError, KeyError):
        return False


def why_port_not_open(error: Exception) -> Literal["denied", "busy", "absent", ""]:
    """Return why a serial port could not be opened; "" for other reasons."""
    import errno  # noqa: PLC0415

    text, code = str(error), getattr(error, "errno", None)
    if WINDOWS:  # where a port in use is denied
        return "busy" if "PermissionError" in text else "absent" if "FileNotFoundError" in text else ""
    if code == errno.EACCES or "Permission denied" in text:
        return "denied"
    if code in (errno.EBUSY, errno.EAGAIN) or "exclusively lock" in text:
        return "busy"
    return "absent" if code == errno.ENOENT or "No such file" in text else ""
