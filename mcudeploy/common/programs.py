"""The only place that finds and starts external programs.

The working directory may be anybody's: it never contributes a program, a script or a setting.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from mcudeploy.common.system.folders import SHORT_TEMPORARY
from mcudeploy.common.system.host_tools import program_names
from mcudeploy.common.system.processes import ProcessGroup

_MOST_CHARACTERS = 70
"""The longest path of a temporary folder that leaves room for the name of a socket in it."""
_UNSET = ("PWD", "OLDPWD", "PYTHONSTARTUP")


def find_program(name: str) -> str | None:
    """Return the absolute path of a program, by its name on PATH or by its path; None if there is none.

    Entries of PATH that are relative or empty, or are the working directory, do not count.
    """
    entries = trusted_entries(os.environ.get("PATH", os.defpath)).split(os.pathsep)
    folders = [""] if os.path.dirname(name) else [it for it in entries if it]  # noqa: PTH120
    files = (str(Path(folder, it).absolute()) for folder in folders for it in program_names(name))
    return next((it for it in files if os.access(it, os.X_OK) and Path(it).is_file()), None)


def trusted_entries(search_path: str) -> str:
    """Return the entries of a variable such as PATH that are absolute and not the working directory."""
    try:
        here = os.path.realpath(Path.cwd())
    except OSError:  # it was removed
        here = ""
    entries = search_path.split(os.pathsep)
    return os.pathsep.join(it for it in entries if Path(it).is_absolute() and os.path.realpath(it) != here)


def empty_folder() -> TemporaryDirectory[str]:
    """Return a private temporary folder to run a program in; removed when the block ends.

    Its path is short enough for a socket in it.
    """
    folder = SHORT_TEMPORARY if len(gettempdir()) > _MOST_CHARACTERS else None
    return TemporaryDirectory(prefix="mcudeploy-", dir=folder, ignore_cleanup_errors=True)


def python_module(name: str) -> list[str]:
    """Return the command that runs a module of this Python, without modules of the working directory."""
    return [sys.executable, "-P", "-m", name]


def output_of(
    command: Sequence[str], timeout_s: float, environment: Mapping[str, str] | None = None
) -> bytes:
    """Return a program's stdout. Raises OSError if it cannot be started, TimeoutExpired if slow."""
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    pipes["stdout"] = subprocess.PIPE
    with empty_folder() as folder, start(command, folder, environment, **pipes) as process:
        try:
            return process.communicate(timeout=timeout_s)[0]
        finally:
            process.kill()


def start(
    command: Sequence[str],
    folder: Path | str,
    environment: Mapping[str, str] | None = None,
    group: ProcessGroup | None = None,
    **pipes: Any,
) -> subprocess.Popen[bytes]:
    """Start a program in a folder that is not the user's. Raises OSError if it cannot be started.

    `environment`: by default this process's. `group`: the program ends with it. `pipes`: keywords of Popen.
    """
    program = find_program(command[0])
    if program is None:
        code = errno.EACCES if os.path.dirname(command[0]) and Path(command[0]).exists() else errno.ENOENT  # noqa: PTH120
        raise OSError(code, os.strerror(code), command[0])
    variables = dict(os.environ if environment is None else environment)
    for name in _UNSET:
        variables.pop(name, None)
    for name in ("PATH", "PYTHONPATH"):
        if name in variables:
            variables[name] = trusted_entries(variables[name])
    options = group.options if group is not None else {}
    process = subprocess.Popen([program, *command[1:]], cwd=folder, env=variables, **options, **pipes)
    if group is not None:
        group.add(process)
    return process


@contextmanager
def process_group() -> Iterator[ProcessGroup]:
    """Yield a group whose programs end with the block, or with this process."""
    group = ProcessGroup(start)
    try:
        yield group
    finally:
        group.close()
