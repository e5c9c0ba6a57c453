"""The side effects of a solver."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from ortools.sat.python import cp_model
from mcudeploy.common.solver import cp_solver
model = cp_model.CpModel()
model.maximize(model.new_int_var(0, 9, "x"))
assert cp_solver(5).solve(model) == cp_model.OPTIMAL
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_after_solving_is_one_of_python() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
