"""`mcudeploy` that writes down, outside of the database, every tile time as a device reports it.

    python tune_child.py LOG ARGUMENTS...

Its measurer has few kernels. With TUNE_KILLED_AFTER=N in the environment, it kills itself once N times have
been reported.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from typing import Any

from mcudeploy.__main__ import main
from mcudeploy.device.tile import TileTimer
from tests.small_bench import PLACES, few_kernels


def _logged(log: int) -> None:
    time, reported = TileTimer.time, itertools.count(1)
    last = int(os.environ.get("TUNE_KILLED_AFTER", "0"))

    def timed(*arguments: Any) -> Any:
        ticks = time(*arguments)
        os.write(log, b".")
        if next(reported) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return ticks

    TileTimer.time = timed  # type: ignore[method-assign]


if __name__ == "__main__":
    for module in PLACES:
        module.kernels_for = few_kernels  # type: ignore[attr-defined]
    _logged(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    sys.argv[:2] = ["mcudeploy"]
    main()
