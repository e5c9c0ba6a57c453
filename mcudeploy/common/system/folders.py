"""Folders of this user."""

from __future__ import annotations

import os
from pathlib import Path

from mcudeploy.common.system import MACOS, WINDOWS

SHORT_TEMPORARY = None if WINDOWS else "/tmp"
"""A temporary folder with a path that is short enough for a socket in it."""


def cache_folder() -> Path:
    """Return the folder of this user that holds caches."""
    return _users_folder("~/Library/Caches", "LOCALAPPDATA", "~/.cache")


def config_folder() -> Path:
    """Return the folder of this user that holds settings."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    usual = str(base) if base.is_absolute() else "~/.config"
    return _users_folder("~/Library/Application Support", "APPDATA", usual)


def _users_folder(of_macos: str, variable: str, usual: str) -> Path:
    if WINDOWS and (chosen := os.environ.get(variable)):
        return Path(chosen)
    return Path(of_macos if MACOS else usual).expanduser()
