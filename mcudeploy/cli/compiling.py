"""The search's inner loops, which numba compiles once in each installation: their cache, and a note."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mcudeploy.common.resources import cache_dir

_PACKAGE = Path(__file__).resolve().parents[1]
_CACHE = "NUMBA_CACHE_DIR"
COMPILING = "compiling the search for this machine, which takes up to a minute, once"


@contextmanager
def compiled_code_kept() -> Iterator[None]:
    """Set a cache folder for numba if neither the installation nor the user's cache is writable.

    numba refuses to start without one. A temporary folder lasts until the block ends.
    """
    if _CACHE in os.environ or all(map(_holds_caches, _PACKAGE.iterdir())):
        # Unset, numba would take it from a file in the working directory, and run code from that cache.
        os.environ.setdefault(_CACHE, "")
        yield
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="mcudeploy-", ignore_cleanup_errors=True) as temporary:
        folder = cache_dir() / "compiled"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            folder = Path(temporary)
        os.environ[_CACHE] = str(folder if os.access(folder, os.W_OK) else temporary)
        yield


def _holds_caches(folder: Path) -> bool:
    cache = folder / "__pycache__"
    return not folder.is_dir() or os.access(cache if cache.exists() else folder, os.W_OK)


@contextmanager
def announced_compilation(announce: Callable[[str], None]) -> Iterator[None]:
    """Call `announce` when numba compiles its first function before the block ends; not for cached ones."""
    from mcudeploy.common.compiled import COMPILED

    if not COMPILED:
        yield
        return
    from numba.core.event import Event, Listener, install_listener

    class Compiling(Listener):
        announced = False

        def on_start(self, event: Event) -> None:
            if not self.announced:
                self.announced = True
                announce(COMPILING)

        def on_end(self, event: Event) -> None:
            """Do nothing: compilation ends by itself."""

    with install_listener("numba:compile", Compiling()):
        yield
