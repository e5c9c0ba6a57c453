"""CP-SAT with the settings of this project."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mcudeploy.common.errors import UsageError
from mcudeploy.common.fast import lacking

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


def require_solver(method: str) -> None:
    """Raise UsageError if OR-Tools, which a method needs, is not installed."""
    if "ortools" in lacking():
        raise UsageError(f"{method} needs OR-Tools: pip install ortools")


def cp_solver(seconds: float, *, effort: float = math.inf) -> cp_model.CpSolver:
    """Return a solver that ends after `seconds` by the clock, or after an `effort` in its deterministic
    measure.

    The same model and effort give the same solution.
    """
    from ortools.sat.python import cp_model  # noqa: PLC0415 - it takes long to import, with pandas

    solver = cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False  # else Ctrl-C would end this process from then on
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.max_deterministic_time = effort
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    return solver
