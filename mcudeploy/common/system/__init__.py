"""Differences between Linux, macOS and Windows. No other package asks which system this is.

Its modules import little, for `interrupts`. What exists on one system only is imported where it is called.
"""

from __future__ import annotations

import sys

WINDOWS, MACOS = sys.platform == "win32", sys.platform == "darwin"
