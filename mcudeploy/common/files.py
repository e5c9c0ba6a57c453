"""Files of the user: read within a limit, written whole or not at all, overwritten only if they are ours."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcudeploy.common.errors import ConfigError

_HEAD_BYTES = 4096
_OURS = (
    rb'\{\n "format": \d+,\n "model_sha256": ',  # a plan
    rb'\{\n"displayTimeUnit": "ms",\n"otherData": \{\n"model": ',  # a trace
    rb"<svg [^\n]*\n<title>[^\n]*: (arena over steps|(memory|stages) over time)</title>\n",  # a chart
    rb'<!DOCTYPE html>\n[^\0]*<meta name="generator" content="mcudeploy">',  # a page with a chart
    rb'\{"name": "[^\n]*", "peak_bytes": \d+, "order": \[',  # of `graph order`
    rb"MCUP\x01\0\0\0",  # a blob of parameters
    rb"(\*\*Not all|All) budgets are kept\.(\*\*)?( In [^\n]*)?\n\n\| \| arena \|",  # `gate --markdown`
    rb"<\?xml [^\n]*\?>\n<testsuite name=\"mcudeploy gate\"",  # `gate --junit`
    rb"id,lower,upper,size(,alignment)?(,stack)?,offset\n",  # of `graph place` and `graph export`
    rb'\{\n  "board": "[^\n]*",\n  "core": "[^\n]*",\n  "clock_hz": ',  # factors of `calibrate`
    rb"\x08[\x01-\x7f]\x12\x09mcudeploy[\x1a:]",  # a model: IR version and producer
)


def read_limited(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file or a pipe. Raises OSError for anything else, or a larger one."""
    with path.open("rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise OSError(errno.EINVAL, "not a file", str(path))
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes / 2**20:g} MiB, the limit", str(path))
    return content


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file only: the command would wait for the writer of a pipe."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a file", str(path))
    return read_limited(path, most_bytes)


def read_toml(path: Path, most_bytes: int) -> dict[str, Any]:
    """Return the table of a TOML file of the user, in UTF-8 with or without a mark.

    Raises ConfigError for a file that cannot be read or is not valid TOML.
    """
    import tomllib  # noqa: PLC0415 - most commands read no TOML

    try:
        return tomllib.loads(read_regular(path, most_bytes).decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # also for bytes that are not UTF-8, and huge integers
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def is_ours(path: Path) -> bool:
    """Whether a file may be overwritten: it is a plan, chart, model or result of mcudeploy, or empty."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    return not head or any(re.match(pattern, head) for pattern in _OURS)


def same_file(one: Path, other: Path) -> bool:
    """Whether both paths are one file, through any links; also if it does not exist yet."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def path_name(name: str) -> str:
    """Return a name of a model as a name of a file, with `_` for characters that paths cannot contain."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".") or "_"


def write_file(path: Path, content: str | bytes) -> None:
    """Write one file as `write_files` does."""
    write_files({path: content})


def write_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write files in existing folders. None is changed before all of them are on the disk.

    Links are followed; devices and pipes are written to directly. Raises OSError that names the file.
    """
    staged: list[tuple[Path, Path, Path]] = []
    try:
        for path, content in contents.items():
            data = content.encode() if isinstance(content, str) else content
            with _named(path):
                if path.exists() and not path.is_file():
                    path.write_bytes(data)
                    continue
                target = Path(os.path.realpath(path))
                temporary = target.with_name(f".mcudeploy-{secrets.token_hex(8)}")
                staged.append((path, target, temporary))
                _stage(temporary, target, data)
        for path, target, temporary in staged:
            with _named(path):
                temporary.replace(target)
    finally:
        for _, _, temporary in staged:
            temporary.unlink(missing_ok=True)


@contextmanager
def work_folder(prefix: str) -> Iterator[Path]:
    """Yield a temporary folder, and name it in errors of writing that name no file."""
    with TemporaryDirectory(prefix=prefix) as folder:
        try:
            yield Path(folder)
        except OSError as error:
            if error.filename is not None or not error.strerror:
                raise
            raise OSError(error.errno, error.strerror, folder) from error


def require_room(path: Path, size: int) -> None:
    """Raise OSError that names a file if it cannot be written with this number of bytes."""
    if path.exists() and not path.is_file():
        return
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".mcudeploy-{secrets.token_hex(8)}")
    try:
        with _named(path):
            _stage(temporary, target, bytes(size))
    finally:
        temporary.unlink(missing_ok=True)


def _stage(temporary: Path, target: Path, data: bytes) -> None:
    """Write the content beside its target, with the permissions of the file that it will replace."""
    with temporary.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    if target.exists():
        shutil.copymode(target, temporary)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file that the user asked for in errors."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
