"""Ctrl-C, SIGTERM and SIGHUP, delivered at points that can take an exception.

Python calls a signal's handler at the next Python code that runs. That may be inside of an import, or while
numba converts results of compiled code: an exception there becomes an ImportError or a SystemError. So the
handler looks at the stack, and in such a place it retries a little later. The second signal ends the
process at once.

Imports little, so that signals work during the other imports.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn, TypeVar

from mcudeploy.common.system.signals import ALARM, CLOSED_TERMINAL, set_alarm

_T = TypeVar("_T")

INTERRUPTED, TERMINATED, HUNG_UP = 130, 143, 129
"""The exit codes of Ctrl-C, of SIGTERM, and of SIGHUP, which a closing terminal sends."""

WORDS = {INTERRUPTED: "interrupted", TERMINATED: "terminated", HUNG_UP: "ended with its terminal"}
_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
if CLOSED_TERMINAL is not None:
    _CODES[CLOSED_TERMINAL] = HUNG_UP

_AGAIN_S = 0.02
"""Seconds until the handler looks again."""

_LOOKS_BEFORE_MESSAGE = 50
"""The number of looks until a message says what is waited for: the first compilation takes long."""

_FOREIGN = {"numba", "llvmlite", "importlib", "_frozen_importlib", "_frozen_importlib_external"}
"""Packages through whose frames no exception may pass."""

_SWALLOWING = {"weakref", "_weakrefset"}
"""Modules whose callbacks lose an exception, as every `__del__` does."""


class Terminated(SystemExit):
    """SIGTERM or SIGHUP: unwinds, so that an emulator does not outlive the command that started it."""


class _Interrupts:
    """State of signal handling.

    `exit_code`: that of a signal that came; 0 if none did. `begun`: there is work that must end in order.
    `closing`: the result is being printed.
    """

    exit_code = 0
    begun = closing = False
    looks = 0

    def on_interrupt(self, number: int, frame: FrameType | None) -> None:
        code = _CODES[signal.Signals(number)]
        if self.exit_code or not self.begun:
            self.end(code)
        self.exit_code = code
        self.deliver(number, frame)

    def deliver(self, _: int, frame: FrameType | None) -> None:
        if self.closing:
            return
        if not _foreign(frame):
            raise KeyboardInterrupt if self.exit_code == INTERRUPTED else Terminated(self.exit_code)
        set_alarm(_AGAIN_S)
        self.looks += 1
        if self.looks == _LOOKS_BEFORE_MESSAGE:
            message = f"{WORDS[self.exit_code]}: waiting for the compiler; Ctrl-C again ends at once\n"
            _say(2, message)

    def end(self, code: int) -> NoReturn:
        """End the process without unwinding. Its children watch over themselves."""
        _say(2, f"error: {WORDS[code]}\n")
        if "--json" in sys.argv and not self.closing:
            message = f'{{"exit_code": {code}, "message": "{WORDS[code]}", "problems": []}}'
            _say(1, f'{{"format": 1, "error": {message}}}\n')
        os._exit(code)


_STATE = _Interrupts()


def listen() -> None:
    """Replace Python's signal handlers, except for signals that the parent process has made us ignore."""
    usual = (signal.default_int_handler, signal.SIG_DFL)
    for number in _CODES:
        if signal.getsignal(number) in usual:
            signal.signal(number, _STATE.on_interrupt)
    signal.signal(ALARM, _STATE.deliver)
    atexit.register(_deaf)


def _deaf() -> None:
    """Ignore signals at exit: Python restores their default, which is to kill."""
    set_alarm(0)
    for number in (*_CODES, ALARM):
        signal.signal(number, signal.SIG_IGN)


def begin() -> None:
    """Let signals raise KeyboardInterrupt or Terminated from now on; before, they end the process at once."""
    _STATE.begun = True


def signalled() -> int:
    """Return the exit code of the signal that ended the work; 0 if none did."""
    return _STATE.exit_code


def despite_interrupt(finish: Callable[[], _T]) -> _T:
    """Return the result of `finish`; Ctrl-C runs it again, so that the result of a search is not lost."""
    try:
        return finish()
    except KeyboardInterrupt:
        return finish()


def close() -> None:
    """Ignore the first signal from now on: the result is being printed."""
    _STATE.closing = True


def _foreign(frame: FrameType | None) -> bool:
    """Whether code that swallows or changes exceptions lies between a frame and ours."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in _FOREIGN or module in _SWALLOWING:
            return True
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _say(stream: int, text: str) -> None:
    try:
        os.write(stream, text.encode())
    except OSError:  # closed or full: the exit code still reports it
        return
