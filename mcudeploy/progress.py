"""How a long stage tells its caller where it is. No terminal code here: the command line draws."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told of each stage as it begins, and of how far it is where that is known."""

    def stage(self, name: str) -> None:
        """A stage begins, such as "building firmware"; the one before has ended."""

    def update(self, name: str) -> None:
        """The current stage goes on under another name, with newer figures."""

    def advance(self, done: int, total: int) -> None:
        """`done` of `total` units of the current stage are complete."""


class SilentProgress:
    """Tells nobody."""

    def stage(self, name: str) -> None:
        """Ignore the stage."""

    def update(self, name: str) -> None:
        """Ignore the name."""

    def advance(self, done: int, total: int) -> None:
        """Ignore the units."""


SILENT: Progress = SilentProgress()
