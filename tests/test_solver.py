"""The side effects of a solver."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mcudeploy.common import solver
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import UsageError
from mcudeploy.ir.trace import MemoryLink, Trace
from mcudeploy.planner.offload.exact_cycles import exact_cycles
from mcudeploy.planner.order.order_problem import OrderProblem
from mcudeploy.planner.order.portfolio import best_order

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


def test_methods_that_need_it_say_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "lacking", lambda: ("ortools",))
    message = r"^the method ilp needs OR-Tools: pip install ortools$"
    with pytest.raises(UsageError, match=message):
        best_order(OrderProblem(((),), ()), Effort(1), ("ilp",))
    with pytest.raises(UsageError, match=r"^the exact model needs OR-Tools: "):
        exact_cycles(Trace((), ()), 1, MemoryLink(1, 1), Effort(1))
    best_order(OrderProblem(((),), ()), Effort(1))
