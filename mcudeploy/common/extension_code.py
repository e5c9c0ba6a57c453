"""The code of an extension outside mcudeploy: its Python file, and the folders of C and tables beside it."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import read_regular
from mcudeploy.common.trusted import TrustList

TRUSTED = TrustList("extensions")
MOST_BYTES = 2**24
"""The most bytes of one file of an extension."""
_KERNEL = re.compile(r"^void\s+mcud_(\w+)\s*\(\s*const\s+mcud_op\s*\*[^,)]*,", re.MULTILINE)
_C_NAME = re.compile(r"(?!mcud)[A-Za-z]\w*\.[ch]", re.ASCII)


def kernels_in(text: str) -> tuple[str, ...]:
    """Return names (without `mcud_`) of the kernels that a C source defines, in its order."""
    return tuple(_KERNEL.findall(text))


def content_of(path: Path) -> bytes:
    """Return the content of a file of an extension. Raises UsageError if it cannot be read."""
    try:
        return read_regular(path, MOST_BYTES)
    except OSError as error:
        raise UsageError(f"{path} of an extension cannot be read: {error.strerror}") from error


def module_of(path: Path, content: bytes) -> ModuleType:
    """Run a Python file and return its module, which can be imported by its name from now on.

    Raises UsageError for any exception of the file, and if it exits.
    """
    module = ModuleType(f"mcudeploy_extension_{hashlib.sha256(bytes(path) + content).hexdigest()[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look for the module of a class
    try:
        exec(compile(content, path, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def folder_beside(file: Path, text: str, label: str) -> Path:
    """Return the folder that the extension in `file` names.

    Raises UsageError unless it is a folder below that of `file`, also after its links.
    """
    folder = file.parent / text
    if not folder.is_dir():
        raise UsageError(f"{label}: {folder} is not a folder")
    if not folder.resolve().is_relative_to(file.parent.resolve()):
        raise UsageError(f"{label}: {text!r} leads out of {file.parent}, the folder of {file.name}")
    return folder


def files_below(folder: Path, endings: Iterable[str]) -> tuple[Path, ...]:
    """Return the files with these endings below a folder, by name.

    Raises UsageError for a file that is a link out of it, or that cannot be a file of a C library.
    """
    inside, files = folder.resolve(), []
    for path in sorted(folder.rglob("*"), key=lambda path: path.name):
        if path.suffix not in endings or path.is_dir():
            continue
        if not path.resolve().is_relative_to(inside):
            raise UsageError(f"{path} is a link out of the folder {folder}: put the file there")
        if path.suffix != ".csv" and not _C_NAME.fullmatch(path.name):
            raise UsageError(
                f"{path.name!r} in {folder} is not a name for a C file: use letters, digits and _, "
                "and begin with a letter, but not with mcud"
            )
        files.append(path)
    return tuple(files)


def digest_of(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of files: of their paths and contents. Raises UsageError."""
    entries = [f"{path} {hashlib.sha256(content_of(path)).hexdigest()}" for path in paths]
    return hashlib.sha256("\n".join(entries).encode()).hexdigest()
