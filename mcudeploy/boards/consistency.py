"""What parts of a board file must agree on. Each function raises ValueError, which names the fault."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from mcudeploy.boards.facts import Link, Unit
from mcudeploy.ir.engine import CPU


def check_units(units: Sequence[Unit], memories: Collection[str]) -> None:
    """Compute units have names of their own, and reach memories that there are."""
    names = [unit.name for unit in units]
    if len(set(names)) != len(names):
        raise ValueError(f"unit names must differ: {', '.join(names)}")
    for unit in units:
        unknown = {*unit.memories, *unit.cached}.difference(memories)
        if unknown:
            raise ValueError(f"unit {unit.name} names memories that the board lacks: {sorted(unknown)}")


def check_links(links: Sequence[Link], units: Sequence[str], memories: Collection[str]) -> None:
    """Engines have names of their own and one driver, and join memories that there are."""
    names = [CPU, *units, *(link.engine for link in links)]
    if len(set(names)) != len(names):
        raise ValueError(f"engines must differ from each other and from units: {', '.join(names)}")
    if len({link.source for link in links}) > 1:
        raise ValueError("one driver serves all links: they name the same source, or none")
    for link in links:
        unknown = set(link.memories).difference(memories, ["flash"])
        if unknown:
            raise ValueError(f"link {link.engine} names memories that the board lacks: {sorted(unknown)}")


def check_own_sources(sources: Collection[str]) -> None:
    """Sources beside the board file are compiled in one folder: their names must differ."""
    names = [Path(it).name for it in sorted(sources) if Path(it).is_absolute()]
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        raise ValueError(f"two sources beside the board file are called {twice}")
