"""The files of firmware/ that a program needs for its kernels."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path

from mcudeploy.codegen.printed_kernels import FOLDER, PRINTED, PRINTED_TWINS, print_kernel, print_twin
from mcudeploy.common.errors import BuildError, UsageError
from mcudeploy.common.extension_code import kernels_in
from mcudeploy.common.resources import resource_dir
from mcudeploy.extension import foreign_extensions
from mcudeploy.ops.move.constant_pieces import STREAM

ON_UNIT = "on_unit"
"""The kernel that passes its rows to another compute unit: an operator's own kernel runs there."""
MOVE = "move_blocks"
"""The kernel of the tape's record that moves blocks to other places."""
START = "start_transfers"
AWAIT = "await_transfers"
"""The kernels of records that start a transfer by an engine, and that wait for it."""
RUN_CORES = "run_cores"
"""The file that runs the tapes of several cores, instead of the single-core one."""
STREAMS = "run_streams_npu"
"""The kernel of the tape's record that runs the joined command streams of a unit beside the core."""
UNIT_SUFFIX = "_npu"
"""The end of the names of kernels that give a unit beside the core its commands."""
OF_THE_TAPE = frozenset({ON_UNIT, MOVE, START, AWAIT, RUN_CORES, STREAMS, STREAM})
"""All kernels that compute nothing."""
PARAMETERS = "mcud_parameter_table"
"""The file that saves and loads the parameters of replaceable operators."""
_FOLDERS = ("include", "kernels", "arith", "parameters", "heads", "owner")
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"/]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FirmwareSource:
    """A C source or header: a file of a folder of firmware/, or a printed kernel that belongs there.

    The folder of a file of an extension is an absolute path.
    """

    name: str
    folder: str

    @property
    def path(self) -> Path:
        """The file; a printed kernel has none."""
        return resource_dir("firmware") / self.folder / self.name

    @property
    def text(self) -> str:
        """Its text. Raises BuildError if the file is missing or is not text."""
        if self.name in PRINTED_TWINS:
            return print_twin(self.name, read_source(self.path.with_name(PRINTED_TWINS[self.name])))
        return print_kernel(self.name) if self.name in PRINTED else read_source(self.path)

    @property
    def is_printed(self) -> bool:
        """Whether it has no file."""
        return self.name in PRINTED or self.name in PRINTED_TWINS

    @property
    def is_foreign(self) -> bool:
        """Whether it belongs to an extension that does not come with mcudeploy."""
        return self.folder.startswith("/")


def source_index() -> Mapping[str, FirmwareSource]:
    """Return the C sources of all kernels and their headers, by names that no two folders share.

    Raises UsageError for a file of an extension whose name another file has.
    """
    index = _own_index()
    if not foreign_extensions():
        return index
    index = dict(index)
    for extension in foreign_extensions():
        for path in extension.kernel_files:
            other = index.get(path.name)
            if other is not None:
                whose = other.path if other.is_foreign else "mcudeploy's own"
                raise UsageError(f"{path} of extension {extension.name} has the name of {whose}: rename it")
            index[path.name] = FirmwareSource(path.name, path.parent.as_posix())
    return dict(sorted(index.items()))


@cache
def _own_index() -> Mapping[str, FirmwareSource]:
    firmware = resource_dir("firmware")
    paths = (path for folder in _FOLDERS for path in (firmware / folder).rglob("*.[ch]"))
    sources = [FirmwareSource(path.name, path.parent.relative_to(firmware).as_posix()) for path in paths]
    folders = {source.name: source.folder for source in sources}
    sources += [FirmwareSource(name, FOLDER) for name in PRINTED]
    sources += [FirmwareSource(name, folders[original]) for name, original in PRINTED_TWINS.items()]
    return {source.name: source for source in sorted(sources, key=attrgetter("name"))}


def kernel_sources() -> list[FirmwareSource]:
    """Return the C sources of all kernels and of the tape, sorted by name."""
    return [source for source in source_index().values() if source.name.endswith(".c")]


def source_folders() -> list[Path]:
    """Return the folders in which a compiler finds all headers that are not printed."""
    return sorted({source.path.parent for source in source_index().values()})


def kernel_paths(folder: Path) -> list[Path]:
    """Write the printed kernels into a folder, for a compiler; return the C files of all kernels."""
    for source in printed_sources():
        part = folder / f"{source.name}.{os.getpid()}"  # another process never sees half of a file
        part.write_text(source.text, "utf-8", newline="\n")
        part.replace(folder / source.name)
    return [folder / it.name if it.is_printed else it.path for it in kernel_sources()]


def printed_sources() -> list[FirmwareSource]:
    """Return the sources and headers of kernels that have no file."""
    return [source for source in source_index().values() if source.is_printed]


def kernel_files(kernels: Sequence[str]) -> list[FirmwareSource]:
    """Return the tape, the kernels of these names, and every header that they include; sorted by name.

    Raises BuildError if a kernel is unknown, or if the file of an extension does not define it.
    """
    index = source_index()
    for kernel in kernels:
        source = index.get(f"{kernel}.c")
        if source is not None and source.is_foreign and kernel not in kernels_in(source.text):
            line = f"void mcud_{kernel}(const mcud_op *op, int32_t first_row, int32_t end_row)"
            raise BuildError(f"{source.path} does not define its kernel: it needs the function {line}")
    pending = [f"{kernel}.c" for kernel in ("mcud_tape", *kernels)]
    names: set[str] = set()
    while pending:
        name = pending.pop()
        if name in names:
            continue
        if name not in index:
            raise BuildError(f"firmware source {name} does not exist")
        names.add(name)
        included = [it for it in _INCLUDE.findall(index[name].text) if it in index]  # others are generated
        pending += included
        pending += (f"{it[:-2]}.c" for it in included if _is_shared(index, it))
    return [index[name] for name in sorted(names)]


def _is_shared(index: Mapping[str, FirmwareSource], header: str) -> bool:
    """Whether a header declares functions that several kernels call, which its source defines."""
    folders = index[header].folder.split("/")
    return ("arith" in folders or "owner" in folders) and f"{header[:-2]}.c" in index


def read_source(path: Path) -> str:
    """Return the text of a source of the firmware. Raises BuildError if it is missing or is not text."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        raise BuildError(f"firmware source {path.parent.name}/{path.name} does not exist") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"firmware source {path} cannot be read: {error}") from error
