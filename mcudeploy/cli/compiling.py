"""What is said where the search's inner loops have to be compiled: once in each installation, by numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

COMPILING = "compiling the search for this machine, which takes up to a minute, once"


@contextmanager
def compiling_told(tell: Callable[[str], None]) -> Iterator[None]:
    """Tells of the first function that is compiled before the block ends; of none that is in the cache."""
    from numba.core.event import Event, Listener, install_listener

    class Compiling(Listener):
        told = False

        def on_start(self, event: Event) -> None:
            if not self.told:
                self.told = True
                tell(COMPILING)

        def on_end(self, event: Event) -> None:
            """Nothing to say: what is compiled goes on at once."""

    with install_listener("numba:compile", Compiling()):
        yield
