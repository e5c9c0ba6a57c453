"""Folders: shipped files (`templates`, `firmware`, `boards`), and the cache."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def resource_dir(name: str) -> Path:
    """Return the folder `templates`, `firmware` or `boards`: in the wheel, or in a checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def cache_dir() -> Path:
    """Return MCUDEPLOY_CACHE_DIR, or ~/.cache/mcudeploy, as an absolute path. It may not exist yet."""
    chosen = os.environ.get("MCUDEPLOY_CACHE_DIR")
    return Path(chosen).absolute() if chosen else Path("~/.cache/mcudeploy").expanduser()


def cache_fault(error: OSError, path: Path) -> str:
    """Return the error of a cache that cannot be written, with the way out that fits it."""
    where = Path(error.filename or path)
    why = error.strerror or str(error)
    if way := way_out_of_limit(error):
        return f"cannot write {where}: {why}. {way}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write {where}: {why}. Free some space, or set MCUDEPLOY_CACHE_DIR to another folder."
    return f"cannot write {where}: {why}. Set MCUDEPLOY_CACHE_DIR to a folder that can be written."


def way_out_of_limit(error: OSError) -> str:
    """Return the way out if a file is larger than this process may write; "" for other errors."""
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if error.strerror != os.strerror(errno.EFBIG) or most == resource.RLIM_INFINITY:
        return ""
    return f"A file of this process may have {most:,} bytes (`ulimit -f`): raise that limit"
