"""Progress reports of long stages. No terminal code here: the command line draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from mcudeploy.common.text import count_text

if TYPE_CHECKING:
    from mcudeploy.ir.plan import Search

Report = Callable[["Search", int, float], None]
"""Receives a search's state, its least arena in bytes, and its latency overhead in percent."""


def no_report(_: Search, __: int, ___: float) -> None:
    """Ignore the report."""


class Progress(Protocol):
    """Receives each stage when it begins, and its progress if that is known."""

    def stage(self, name: str) -> None:
        """Begin a stage, such as "building firmware"; the previous one has ended."""

    def update(self, name: str) -> None:
        """Rename the current stage, with newer figures."""

    def advance(self, done: int, total: int) -> None:
        """Report `done` of `total` units of the current stage."""

    def searched(self, seconds: float, arena_bytes: int, candidates: int) -> None:
        """Report a search's seconds, least arena and candidates so far."""


class SilentProgress:
    """Progress that is not shown."""

    def stage(self, name: str) -> None:
        """Ignore the stage."""

    def update(self, name: str) -> None:
        """Ignore the name."""

    def advance(self, done: int, total: int) -> None:
        """Ignore the units."""

    def searched(self, seconds: float, arena_bytes: int, candidates: int) -> None:
        """Ignore the search."""


SILENT: Progress = SilentProgress()


def search_report(progress: Progress, counted: Callable[[Search], Search] = lambda search: search) -> Report:
    """Return a report that shows a search as stages: a line for each gain, kept up to date.

    `counted` adds the numbers of timed and of known tiles.
    """
    shown: int | None = None

    def report(so_far: Search, arena_bytes: int, overhead: float) -> None:
        nonlocal shown
        so_far = counted(so_far)
        text = (
            f"searching: arena {arena_bytes:,} B at {overhead:+.1f} %, "
            f"{count_text(so_far.candidates, 'candidate')}, "
            f"{so_far.candidates / max(so_far.seconds, 1e-3):,.0f} a second"
        )
        if so_far.measured or so_far.cache_hits:
            text += f", {count_text(so_far.measured, 'tile')} timed, {so_far.cache_hits:,} known"
        if shown == arena_bytes:
            progress.update(text)
        else:
            progress.stage(text)
        shown = arena_bytes
        progress.searched(so_far.seconds, arena_bytes, so_far.candidates)

    return report
