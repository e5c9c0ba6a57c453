"""`doctor --prepare` compiles everything that planning needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from numba.core.event import Listener, install_listener
from pathlib import Path
from mcudeploy.commands import commands as api
from mcudeploy.boards.catalogue import load_board
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.prepare import compile_loops

class Compiling(Listener):
    def on_start(self, event): compiled.append(event)
    def on_end(self, event): pass

compile_loops()
compiled = []
with install_listener("numba:compile", Compiling()):
    for limits in ((), (("sram", 40 * 1024),)):
        options = Options(time_limit=1, memory_limits=limits)
        api.plan_model(Path(sys.argv[1]), load_board("mps2-an505"), options)
print(len(compiled))
"""


@pytest.mark.weekly
def test_nothing_is_left_to_compile_after_it() -> None:
    model = Path(__file__).parents[2] / "examples" / "vww" / "model.onnx"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(model)], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.split()[-1] == "0"
