"""Entry point of the command and of `python -m mcudeploy`, which imports no module of the working directory.
Imports little, so that Ctrl-C works during the other imports.
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
    """Reopen closed standard streams on /dev/null, so that no file gets their descriptors."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: PTH123, SIM115


if __name__ == "__main__":
    main()
