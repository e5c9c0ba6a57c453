"""Where the process begins. It imports little, so that Ctrl-C is heard while the rest is being imported."""

from __future__ import annotations

import json
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 130


def main() -> NoReturn:
    """Entry point of the console script."""
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else the parent ignores it
    if listening:
        signal.signal(signal.SIGINT, _end)
    from mcudeploy.cli.main import main as run  # noqa: PLC0415

    if listening:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(_: int, __: FrameType | None) -> NoReturn:
    """Ends at once: nothing was started yet, and an import that is unwound may say anything."""
    _say(2, "error: interrupted\n")
    if "--json" in sys.argv:
        error = {"exit_code": _INTERRUPTED, "message": "interrupted", "problems": []}
        _say(1, json.dumps({"error": error}, indent=2) + "\n")
    os._exit(_INTERRUPTED)


def _say(stream: int, text: str) -> None:
    try:
        os.write(stream, text.encode())
    except OSError:  # closed or full: the exit code is still told
        return
