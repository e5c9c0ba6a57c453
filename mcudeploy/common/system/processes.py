"""Programs that end together, and how they end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcudeploy.common.system.kernel32 import kernel32, windows_error

if TYPE_CHECKING:
    import subprocess


class ProcessGroup:
    """Programs that end together: when they are killed, and when this process ends, however it does.

    `start` starts a program as `programs.start` does. `options` are for the Popen of a member, which is then
    added. On POSIX the first member waits for the end of a pipe from here, so that a program never outlives
    us, even if an interrupt comes before its Popen object exists. PR_SET_PDEATHSIG would already kill when
    the starting thread ends, and could not be set before an interrupt comes.

    On Windows it is a job object, which takes a member after it has started.
    """

    def __init__(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        import subprocess  # noqa: PLC0415

        self.options: dict[str, Any] = {}
        if sys.platform == "win32":
            self._job = _Job()
            # Ctrl-C in the console is ours alone
            self.options["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
        else:
            self._guard = start(
                ["/bin/sh", "-c", "read -r _; kill -KILL 0"],
                "/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
            self.options["process_group"] = self._guard.pid

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """Take a program that was started with `options` as a member."""
        if sys.platform == "win32":
            self._job.add(process)

    def kill(self) -> None:
        """End all members."""
        if sys.platform == "win32":
            self._job.kill()
        else:
            with suppress(ProcessLookupError):
                os.killpg(self._guard.pid, signal.SIGKILL)

    def close(self) -> None:
        """End all members, and the group."""
        self.kill()
        if sys.platform == "win32":
            self._job.close()
        else:
            self._guard.wait()
            if self._guard.stdin is not None:
                self._guard.stdin.close()


class _Job:
    """A job object of Windows, whose processes end with its last handle."""

    _EXTENDED_LIMITS, _KILL_ON_CLOSE = 9, 0x2000
    _LIMITS_BYTES, _FLAGS_AT = 144, 16  # JOBOBJECT_EXTENDED_LIMIT_INFORMATION of 64-bit Windows

    def __init__(self) -> None:
        self._kernel = kernel32()
        self._handle = self._kernel.CreateJobObjectW(None, None)
        limits = bytearray(self._LIMITS_BYTES)
        limits[self._FLAGS_AT : self._FLAGS_AT + 4] = self._KILL_ON_CLOSE.to_bytes(4, "little")
        if not self._handle or not self._kernel.SetInformationJobObject(
            self._handle, self._EXTENDED_LIMITS, bytes(limits), len(limits)
        ):
            raise windows_error()

    def add(self, process: Any) -> None:
        """Add a process. Raises OSError if that fails, unless the process has ended already."""
        if not self._kernel.AssignProcessToJobObject(self._handle, int(process._handle)):
            error = windows_error()
            if process.poll() is None:
                process.kill()
                raise error

    def kill(self) -> None:
        self._kernel.TerminateJobObject(self._handle, 1)

    def close(self) -> None:
        self._kernel.CloseHandle(self._handle)


def fault_of(status: int) -> str:
    """Return the name of the fault that ended a program with this status of Windows; "" for others."""
    names = {0xC0000005: "an access violation", 0xC00000FD: "a stack overflow", 0xC000013A: "Ctrl-C"}
    return names.get(status & 0xFFFFFFFF, "")
