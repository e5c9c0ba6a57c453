"""The command, also as `python -m mcudeploy`, where what lies in the working directory is no module for it.
It imports little: Ctrl-C is heard while others import.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the working directory

from typing import NoReturn

from mcudeploy.common import interrupts


def main() -> NoReturn:
    """Entry point of the console script."""
    interrupts.listen()
    _open_streams()
    from mcudeploy.cli.main import main as run  # noqa: PLC0415

    interrupts.begin()
    run()


def _open_streams() -> None:
    """Streams that the parent has closed lead nowhere: else the next file opened takes their place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: PTH123, SIM115


if __name__ == "__main__":
    main()
