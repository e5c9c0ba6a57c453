"""How a long stage tells its caller where it is. No terminal code here: the command line draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from mcudeploy.common.text import count_text

if TYPE_CHECKING:
    from mcudeploy.ir.plan import Search

Report = Callable[["Search", int, float], None]
"""Told of a search: what it has done so far, the least arena in bytes, its latency overhead in percent."""


def no_report(_: Search, __: int, ___: float) -> None:
    """Nobody is told."""


class Progress(Protocol):
    """Told of each stage as it begins, and of how far it is where that is known."""

    def stage(self, name: str) -> None:
        """A stage begins, such as "building firmware"; the one before has ended."""

    def update(self, name: str) -> None:
        """The current stage goes on under another name, with newer figures."""

    def advance(self, done: int, total: int) -> None:
        """`done` of `total` units of the current stage are complete."""

    def searched(self, seconds: float, arena_bytes: int, candidates: int) -> None:
        """A search has taken so long, its least arena is this, and it has seen so many candidates."""


class SilentProgress:
    """Tells nobody."""

    def stage(self, name: str) -> None:
        """Ignore the stage."""

    def update(self, name: str) -> None:
        """Ignore the name."""

    def advance(self, done: int, total: int) -> None:
        """Ignore the units."""

    def searched(self, seconds: float, arena_bytes: int, candidates: int) -> None:
        """Ignore the search."""


SILENT: Progress = SilentProgress()


def telling(progress: Progress, counted: Callable[[Search], Search] = lambda search: search) -> Report:
    """What shows a search on a progress display: a line for each gain, kept up to date until the next one.

    `counted` adds what only the source of tile times knows.
    """
    shown: int | None = None

    def told(found: Search, arena_bytes: int, overhead: float) -> None:
        nonlocal shown
        found = counted(found)
        text = (
            f"searching: arena {arena_bytes:,} B at {overhead:+.1f} %, "
            f"{count_text(found.candidates, 'candidate')}, "
            f"{found.candidates / max(found.seconds, 1e-3):,.0f} a second"
        )
        if found.measured or found.cache_hits:
            text += f", {count_text(found.measured, 'tile')} measured, {found.cache_hits:,} known"
        if shown == arena_bytes:
            progress.update(text)
        else:
            progress.stage(text)
        shown = arena_bytes
        progress.searched(found.seconds, arena_bytes, found.candidates)

    return told
