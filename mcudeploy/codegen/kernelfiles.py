"""The files of firmware/ that a program needs for its kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mcudeploy.common.errors import BuildError
from mcudeploy.common.resources import resource_dir

ON_UNIT = "on_unit"
"""The kernel that passes its rows to another compute unit: an operator's own kernel runs there."""
MOVE = "move_blocks"
"""The kernel of the tape's record that moves blocks to other places."""
START = "start_transfers"
AWAIT = "await_transfers"
"""The kernels of records that start a transfer by an engine, and that wait for it."""
RUN_CORES = "run_cores"
"""The file that runs the tapes of several cores, instead of the single-core one."""
OF_THE_TAPE = frozenset({ON_UNIT, MOVE, START, AWAIT, RUN_CORES})
"""All kernels that compute nothing."""
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"/]+)"', re.MULTILINE)


def kernel_files(kernels: Sequence[str]) -> list[Path]:
    """Return the tape, the kernels of these names, and every header that they include; sorted by path.

    Raises BuildError if a kernel is unknown.
    """
    firmware = resource_dir("firmware")
    pending = [firmware / "kernels" / f"{kernel}.c" for kernel in ("mcud_tape", *kernels)]
    found: set[Path] = set()
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found.add(path)
        candidates = [
            firmware / folder / name
            for name in _INCLUDE.findall(read_source(path))
            for folder in ("include", "kernels")
        ]
        pending += filter(Path.is_file, candidates)  # missing: a generated header
    return sorted(found)


def read_source(path: Path) -> str:
    """Return the text of a source of the firmware. Raises BuildError if it is missing or no text."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        raise BuildError(f"firmware source {path.parent.name}/{path.name} does not exist") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"firmware source {path} cannot be read: {error}") from error
