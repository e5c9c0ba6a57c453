"""USB devices and drives."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mcudeploy.common.system import MACOS, WINDOWS
from mcudeploy.common.system.kernel32 import kernel32

USB_DEVICES = Path("/sys/bus/usb/devices")
LISTS_USB = not (WINDOWS or MACOS)
"""Whether USB devices without a serial port are known, from that folder."""
_DRIVE_FOLDERS = ("/Volumes",) if MACOS else ("/media/*", "/media", "/run/media/*", "/mnt")
_LABELS = Path("/dev/disk/by-label")


def drives(label: str) -> list[Path]:
    """Return the mounted drives with this label, and on POSIX those with a number after it."""
    if WINDOWS:
        return [root for root in _letters() if _label(root) == label]
    folders = (it.lstrip("/") for it in _DRIVE_FOLDERS)
    return sorted({drive for folder in folders for drive in Path("/").glob(f"{folder}/{label}*")})


def usual_drive(label: str) -> Path:
    """Return the place where a drive with this label is mounted, as an example."""
    return Path("D:\\") if WINDOWS else Path("/Volumes" if MACOS else "/media", label)


def unmounted(label: str) -> str:
    """Return the command that mounts a drive that is there; "" for none, or where drives mount themselves."""
    drive = _LABELS / label
    return "" if WINDOWS or MACOS or not drive.exists() else f"udisksctl mount -b {drive}"


def copy_command(file: Path, drive: Path) -> list[str]:
    """Return the command line that copies a file to a drive."""
    if WINDOWS:
        return ["xcopy", "/y", str(file), str(drive)]  # no shell: it would run parts of a path
    # macOS: these drives take no extended attributes
    return ["cp", *(["-X"] if MACOS else []), str(file), str(drive)]


def flush_disks() -> None:
    """Write what is not on the disks yet. Windows writes removable drives at once."""
    if sys.platform != "win32":
        os.sync()


def _letters() -> Sequence[Path]:
    mask = kernel32().GetLogicalDrives()
    return [Path(f"{chr(ord('A') + at)}:\\") for at in range(26) if mask >> at & 1]


def _label(root: Path) -> str:
    """Return the label of a drive; "" if it cannot be read, such as that of an empty card reader."""
    import ctypes  # noqa: PLC0415

    name = ctypes.create_unicode_buffer(261)
    done = kernel32().GetVolumeInformationW(str(root), name, len(name), None, None, None, None, 0)
    return name.value if done else ""
