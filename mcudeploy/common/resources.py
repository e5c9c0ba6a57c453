"""Folders: shipped files (`templates`, `firmware`, `boards`), and the cache."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from mcudeploy.common.system.folders import cache_folder
from mcudeploy.common.system.signals import file_limit

_DISK_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
_PACKAGE = Path(__file__).resolve().parents[1]


def resource_dir(name: str) -> Path:
    """Return the folder `templates`, `firmware` or `boards`: in the wheel, or in a checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def cache_dir() -> Path:
    """Return MCUDEPLOY_CACHE_DIR, or `mcudeploy` in the user's caches, as an absolute path. It may not exist
    yet.
    """
    chosen = os.environ.get("MCUDEPLOY_CACHE_DIR")
    return Path(chosen).absolute() if chosen else cache_folder() / "mcudeploy"


def cache_fault(error: OSError, path: Path) -> str:
    """Return the error of a cache that cannot be written, with the way out that fits it."""
    where = Path(error.filename or path)
    why = error.strerror or str(error)
    if way := way_out_of_limit(error):
        return f"cannot write {where}: {why}. {way}."
    if error.errno in _DISK_FULL:
        return f"cannot write {where}: {why}. Free some space, or set MCUDEPLOY_CACHE_DIR to another folder."
    return f"cannot write {where}: {why}. Set MCUDEPLOY_CACHE_DIR to a folder that can be written."


def way_out_of_limit(error: OSError) -> str:
    """Return the way out if a file is larger than this process may write; "" for other errors."""
    most = file_limit()
    if error.strerror != os.strerror(errno.EFBIG) or most is None:
        return ""
    return f"A file of this process may have {most:,} bytes (`ulimit -f`): raise that limit"
