"""The packages of the extra `mcudeploy[fast]`, without which a search takes longer or proves less."""

from __future__ import annotations

import logging
from functools import cache
from importlib.util import find_spec

_LOG = logging.getLogger(__name__)

COSTS = {
    "numba": "searches run as plain Python: the same plans in 1.1 to 3.3 times the CPU time",
    "ortools": "first fit chooses among several memories, and methods that use CP-SAT are missing",
}
"""The cost of each package's absence."""


@cache
def lacking() -> tuple[str, ...]:
    """Return the packages of the extra that are not installed."""
    return tuple(name for name in COSTS if find_spec(name) is None)


@cache
def note_lacking() -> None:
    """Log the cost of what is not installed, once."""
    if missing := lacking():
        costs = "; ".join(f"without {name}, {COSTS[name]}" for name in missing)
        _LOG.warning("%s (pip install %s)", costs, " ".join(missing))
