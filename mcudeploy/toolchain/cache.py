"""The cache of built firmware: entries appear whole or not at all, even with concurrent builds.

- firmware/<board>-<key>/firmware.elf and firmware.json: complete builds
- firmware/tmp-*/: builds in progress; renamed when complete
- logs/<board>-<key>.log: of failed builds
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mcudeploy.common.errors import ConfigError
from mcudeploy.common.files import write_file
from mcudeploy.common.resources import cache_dir, cache_fault

KEPT_ENTRIES = 200
_ABANDONED_SECONDS = 24 * 3600.0


def lookup(name: str) -> Path | None:
    """Return the complete entry of that name, marked as used; None if there is none."""
    entry = cache_dir() / "firmware" / name
    if not (entry / "firmware.json").is_file():
        return None
    with suppress(OSError):
        os.utime(entry)
    return entry


@contextmanager
def build_folder() -> Iterator[Path]:
    """Yield a fresh folder to build in, on the cache's disk; removed afterwards, also after an interrupt."""
    folder: Path | None = None
    try:
        parent = cache_dir() / "firmware"
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="tmp-", dir=parent)).resolve()
        yield folder
    except OSError as error:
        raise ConfigError(cache_fault(error, cache_dir())) from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def exists(name: str) -> bool:
    """Return whether there is an entry of that name, complete or not."""
    return (cache_dir() / "firmware" / name).exists()


def store(folder: Path, name: str, *, replace: bool) -> Path:
    """Make a finished folder the entry of that name by one rename, and return the entry.

    `replace`: the entry exists and is damaged. Otherwise a complete entry that another process wrote
    meanwhile stays, since it may be in use.
    """
    entry = cache_dir() / "firmware" / name
    try:
        folder.rename(entry)
    except OSError:
        if not replace and lookup(name) is not None:
            return entry
        with suppress(OSError):
            entry.rename(folder.with_name("replaced"))
        try:
            folder.rename(entry)
        except OSError:
            if lookup(name) is None:
                raise
    _prune(entry.parent)
    return entry


def keep_log(name: str, text: str) -> Path:
    """Write the log of a failed build to a place that outlives the build's folder."""
    path = cache_dir() / "logs" / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text)
    return path


def _prune(parent: Path) -> None:
    """Remove the least recently used entries beyond the limit, and the remains of killed builds."""
    ages: list[tuple[float, Path]] = []
    for path in parent.iterdir():
        with suppress(OSError):
            ages.append((path.stat().st_mtime, path))
    limit = time.time() - _ABANDONED_SECONDS
    abandoned = [path for used, path in ages if path.name.startswith("tmp-") and used < limit]
    entries = [path for _, path in sorted(ages, reverse=True) if not path.name.startswith("tmp-")]
    for path in abandoned + entries[KEPT_ENTRIES:]:
        shutil.rmtree(path, ignore_errors=True)
