"""The packages of the extra `mcudeploy[fast]`, without which a search takes longer or proves less."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

COSTS = {
    "numba": "the search runs as plain Python: the same plans in up to ten times the time",
}
"""The cost of each package's absence."""

INSTALL = "pip install 'mcudeploy[fast]'"


@cache
def lacking() -> tuple[str, ...]:
    """Return the packages of the extra that are not installed."""
    return tuple(name for name in COSTS if find_spec(name) is None)
