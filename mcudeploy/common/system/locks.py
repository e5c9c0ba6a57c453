"""Locks of files; a lock ends with its process."""

from __future__ import annotations

import sys
from typing import Any

from mcudeploy.common.system.kernel32 import kernel32, windows_error

_WHOLE_AT = 2**62
"""The byte that stands for a whole file on Windows, where a locked byte cannot be read."""


def lock_file(file: int, *, shared: bool = False) -> bool:
    """Try to lock an open file without waiting; return whether it is ours.

    Shared locks exclude only exclusive ones.
    """
    if sys.platform == "win32":
        return _lock_bytes(file, _WHOLE_AT, shared=shared)
    import fcntl  # noqa: PLC0415

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock_file(file: int) -> None:
    """Release a lock of a whole file. Raises OSError on Windows without one."""
    if sys.platform == "win32":
        _unlock_bytes(file, _WHOLE_AT)
        return
    import fcntl  # noqa: PLC0415

    fcntl.flock(file, fcntl.LOCK_UN)


def lock_byte(file: int, at: int) -> bool:
    """Try to lock a byte of a file, which need not exist; return whether it is ours."""
    if sys.platform == "win32":
        return _lock_bytes(file, at)
    import fcntl  # noqa: PLC0415

    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
    except (BlockingIOError, PermissionError):
        return False
    return True


def unlock_byte(file: int, at: int) -> None:
    """Release a lock of a byte."""
    if sys.platform == "win32":
        _unlock_bytes(file, at)
        return
    import fcntl  # noqa: PLC0415

    fcntl.lockf(file, fcntl.LOCK_UN, 1, at)


if sys.platform == "win32":

    def _lock_bytes(file: int, at: int, *, shared: bool = False) -> bool:
        import ctypes  # noqa: PLC0415
        import msvcrt  # noqa: PLC0415

        at_once, exclusive, violation, pending = 1, 2, 33, 997
        flags = at_once | (0 if shared else exclusive)
        handle = msvcrt.get_osfhandle(file)
        if kernel32().LockFileEx(handle, flags, 0, 1, 0, _overlapped(at)):
            return True
        if ctypes.get_last_error() in (violation, pending):
            return False
        raise windows_error()

    def _unlock_bytes(file: int, at: int) -> None:
        import msvcrt  # noqa: PLC0415

        if not kernel32().UnlockFileEx(msvcrt.get_osfhandle(file), 0, 1, 0, _overlapped(at)):
            raise windows_error()

    def _overlapped(at: int) -> Any:
        """Return an OVERLAPPED of 64-bit Windows, which holds a position in a file."""
        import ctypes  # noqa: PLC0415

        return ctypes.create_string_buffer(bytes(16) + at.to_bytes(8, "little") + bytes(8), 32)
