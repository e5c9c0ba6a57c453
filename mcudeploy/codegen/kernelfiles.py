"""The files of firmware/ that a program needs for its kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter
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
PARAMETERS = "mcud_parameter_table"
"""The file that saves and loads the parameters of replaceable operators."""
_FOLDERS = ("include", "kernels", "arith", "parameters", "heads")
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"/]+)"', re.MULTILINE)


@cache
def source_index() -> Mapping[str, Path]:
    """Return the C files of all kernels and their headers, by names that no two folders share."""
    firmware = resource_dir("firmware")
    sources = (path for folder in _FOLDERS for path in (firmware / folder).rglob("*.[ch]"))
    return {path.name: path for path in sorted(sources, key=attrgetter("name"))}


def source_folders() -> list[Path]:
    """Return the folders of `source_index`, in which a compiler finds all headers."""
    return sorted({path.parent for path in source_index().values()})


def kernel_sources() -> list[Path]:
    """Return the C sources of all kernels and of the tape, sorted by name."""
    return [path for path in source_index().values() if path.suffix == ".c"]


def kernel_files(kernels: Sequence[str]) -> list[Path]:
    """Return the tape, the kernels of these names, and every header that they include; sorted by name.

    Raises BuildError if a kernel is unknown.
    """
    index = source_index()
    pending = [f"{kernel}.c" for kernel in ("mcud_tape", *kernels)]
    files: dict[str, Path] = {}
    while pending:
        name = pending.pop()
        if name in files:
            continue
        if name not in index:
            raise BuildError(f"firmware source {name} does not exist")
        files[name] = index[name]
        included = [it for it in _INCLUDE.findall(read_source(files[name])) if it in index]
        pending += included  # others are generated headers
        pending += (f"{it[:-2]}.c" for it in included if _is_shared(index, it))
    return [files[name] for name in sorted(files)]


def _is_shared(index: Mapping[str, Path], header: str) -> bool:
    """Whether a header declares functions that several kernels call, which its source defines."""
    return "arith" in index[header].parts and f"{header[:-2]}.c" in index


def read_source(path: Path) -> str:
    """Return the text of a source of the firmware. Raises BuildError if it is missing or no text."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        raise BuildError(f"firmware source {path.parent.name}/{path.name} does not exist") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"firmware source {path} cannot be read: {error}") from error
