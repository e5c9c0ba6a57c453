"""Signals, and the limits of this process."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress


def _signal(*names: str) -> signal.Signals | None:
    return next((getattr(signal, name) for name in names if hasattr(signal, name)), None)


CLOSED_TERMINAL = _signal("SIGHUP", "SIGBREAK")
"""The signal of a terminal that closes; None without one. On Windows also Ctrl-Break sends it."""
ALARM = _signal("SIGALRM") or signal.SIGABRT
"""The signal of `set_alarm`: SIGABRT on Windows, which has no SIGALRM. Only `abort` raises SIGABRT otherwise,
and it ends the process whatever a handler does.
"""


def set_alarm(seconds: float) -> None:
    """Raise ALARM in this process after some time; 0 stops an alarm of POSIX.

    It also ends a sleep of the main thread, but not on Windows, where a thread raises it.
    """
    if ALARM is signal.SIGABRT:
        if seconds:
            import threading  # noqa: PLC0415

            timer = threading.Timer(seconds, signal.raise_signal, (ALARM,))
            timer.daemon = True
            timer.start()
    elif sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit(name: str) -> int | None:
    """Return a limit in bytes; None without one."""
    if sys.platform != "win32":
        with suppress(ImportError):
            import resource  # noqa: PLC0415

            most, _ = resource.getrlimit(getattr(resource, name))
            return None if most == resource.RLIM_INFINITY else most
    return None


def file_limit() -> int | None:
    """Return the most bytes that a file of this process may have; None without a limit."""
    return _limit("RLIMIT_FSIZE")


def memory_limit() -> int | None:
    """Return the most bytes of memory that this process may take; None without a limit."""
    return _limit("RLIMIT_AS")
