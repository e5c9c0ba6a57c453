"""A starter PlatformIO project: a board's start-up code, a main() that runs the model, its library."""

from __future__ import annotations

import configparser
import io
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import list_boards
from mcudeploy.boards.flashers import Uf2
from mcudeploy.boards.trust import require_trusted
from mcudeploy.codegen.exporters import example_values
from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.licences import licensed
from mcudeploy.codegen.render import LibraryModel, render
from mcudeploy.common.errors import BoardNotFoundError, UsageError
from mcudeploy.toolchain.board_texts import openocd_of
from mcudeploy.toolchain.emulator import emulator_of, qemu_command
from mcudeploy.toolchain.flash_tools import TOOLS
from mcudeploy.toolchain.project import assemble

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def require_start(board: Board, *, emulate: bool = False) -> None:
    """Raise UsageError for a board without start-up code or emulator, and for frameworks other than Arduino.

    Raises ConfigError for a board that is not trusted.
    """
    require_trusted(board)
    if emulate:
        emulator_of(board)
    if board.is_host:
        raise UsageError("a project is for a board; for this computer there is build --for cmake")
    if board.facts_only and board.framework is None:
        raise UsageError(
            f"there is no start-up code for {board.name}: name it as PlatformIO does, --board pio:ID, or put "
            "the library into your own project with build --for"
        )
    if board.framework is not None and board.framework.name != "arduino":
        build_system = {"espidf": "esp-idf"}.get(board.framework.name, board.framework.name)
        raise UsageError(
            f"{board.name}: init writes sketches for Arduino only; build --for {build_system} "
            "writes a library with an example"
        )


def starter_files(
    member: LibraryModel, name: str, board: Board, model: str, *, emulate: bool
) -> dict[str, Content]:
    """Return the project's files by path, without the library and the model's file (named `model`)."""
    emulate = emulate or board.emulated_only
    values = example_values([member], name, board) | {
        "model": model,
        "emulate": emulate,
        "emulator": _emulator(board) if emulate else "",
        "openocd": openocd_of(board) is not None,
        "drive": next((it.drive for it in board.flashers if isinstance(it, Uf2)), ""),
        "buttons": list(dict.fromkeys(filter(None, (TOOLS[it.tool].button for it in board.flashers)))),
        "flashers": " or ".join(it.tool for it in board.flashers),
        "stated": board.framework is not None or board in list_boards(),
    }
    templates = {"README.md": "project.md", "mcudeploy.toml": "mcudeploy.toml"}
    if board.framework is not None:
        templates |= {"platformio.ini": "framework.ini", "src/main.cpp": "sketch.cpp"}
        return licensed(_rendered(templates, values))
    files = assemble(board, {}, [], emulate=emulate, measurer=False).files
    rendered = _rendered(templates | {"src/main.c": "board_main.c"}, values)
    board_files = {
        name: text for name, text in files.items() if not name.startswith(("src/kernels/", "include/"))
    }
    headers = {name: text for name, text in files.items() if name.startswith("include/")}
    board_files["platformio.ini"] = _with_libraries(files["platformio.ini"])
    sources = [*board_files.values(), str(rendered["src/main.c"])]
    return licensed({**board_files, **_included(sources, headers), **rendered})


def _rendered(templates: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Content]:
    return {path: render(f"exporters/{template}.j2", **values) for path, template in templates.items()}


def _with_libraries(text: str) -> str:
    """Return platformio.ini with lib/ as a library folder."""
    ini = configparser.ConfigParser(interpolation=None)
    ini.read_string(text)
    ini["env"]["lib_ldf_mode"] = "chain"
    ini["env"]["build_flags"] = "-Isrc/hal -Llinker"
    out = io.StringIO()
    ini.write(out)
    return out.getvalue().rstrip() + "\n"


def _included(sources: Iterable[str], headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that the sources include, directly or through others."""
    pending = [name for text in sources for name in _INCLUDE.findall(text)]
    included: dict[str, str] = {}
    while pending:
        path = f"include/{pending.pop()}"
        if path in headers and path not in included:
            included[path] = headers[path]
            pending += _INCLUDE.findall(headers[path])
    return included


def _emulator(board: Board) -> str:
    elf = Path(".pio", "build", board.name, "firmware.elf")
    try:
        return shlex.join(qemu_command(board, elf, ("-serial", "stdio")))
    except BoardNotFoundError as error:
        return f"# {error}"
