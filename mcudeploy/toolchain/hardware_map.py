"""Twister's hardware maps: YAML files that list the boards of a desk, with their ports and probes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.usb import usb_kinds
from mcudeploy.common.errors import BoardNotFoundError, ConfigError, UsageError
from mcudeploy.common.files import read_limited, write_file
from mcudeploy.common.text import first_repeated
from mcudeploy.toolchain.attached import AttachedDevice
from mcudeploy.toolchain.ports import SAFE_SERIAL

_MOST_BYTES = 2**20
_MOST_ALIASES = 32
"""Limit of YAML's aliases: the values of nested ones grow exponentially."""
_MOST_LEVELS = 32
"""Limit of nested values; PyYAML takes a time that grows with the square of the depth."""
_UNKNOWN = "unknown"
_RUNNERS = {"esp32": "esptool", "teensy": "teensy_loader_cli", "rp2040": "picotool"}
"""Zephyr's name of a flasher, if it differs from the tool's."""
_RUNNER_OF_TOOL = {tool: runner for runner, tool in _RUNNERS.items()}


@dataclass(frozen=True, slots=True)
class MappedBoard:
    """A board of the desk: its port, and probe serial number and flasher if the map names them."""

    platform: str
    port: str
    probe: str | None = None
    flasher: str | None = None


def entries_for(board: Board, path: Path) -> list[MappedBoard]:
    """Return the connected boards of a map of this kind: by `platform`, or by `product` if that is unknown.

    Raises ConfigError for a file that is not a map, BoardNotFoundError if no board matches.
    """
    rows = [row for row in _read(path) if row.get("connected") and row.get("available", True)]
    entries = [_entry(row, board) for row in rows if _fits(row, board) and _text(row, "serial")]
    if not entries:
        platforms = sorted({_text(row, "platform") or _UNKNOWN for row in rows})
        raise BoardNotFoundError(
            f"{path} has no connected {board.name} with a `serial` port; connected are: "
            f"{', '.join(platforms) or 'none'}. `platform: {board.name}` says that an entry is one."
        )
    twice = first_repeated([it.port for it in entries])
    if twice is not None:
        raise ConfigError(f"{path} names {twice} twice")
    return entries


def write_map(path: Path, devices: Iterable[AttachedDevice]) -> list[dict[str, Any]]:
    """Write the attached boards with a serial port in twister's format, and return the entries.

    Entries of an existing map stay. They become not connected if they are not attached, unless the port is a
    URL.
    """
    rows = _read(path) if path.exists() else []
    for row in rows:
        if "://" not in _text(row, "serial"):
            row |= {"connected": False, "serial": None}
    for device in devices:
        if not device.port or not device.usb_id:
            continue
        key = device.serial or _UNKNOWN, device.name
        same = (it for it in rows if (_text(it, "id"), _text(it, "product")) == key)
        row = next((it for it in same if not it.get("connected")), {})
        if not row:
            rows.append(row)
        known = {"platform": _UNKNOWN, "runner": _UNKNOWN} | _facts(device)
        row |= {name: text for name, text in known.items() if _text(row, name) in ("", _UNKNOWN)}
        row |= {"connected": True, "id": key[0], "product": key[1], "serial": device.port}
    content = _yaml().safe_dump(rows, allow_unicode=True)
    try:
        write_file(path, content)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    return rows


def _facts(device: AttachedDevice) -> dict[str, str]:
    """Return platform and runner of a device if only one board is possible."""
    if len(device.boards) != 1:
        return {}
    tool = next((it.tool for it in load_board(device.boards[0]).flashers), _UNKNOWN)
    return {"platform": device.boards[0], "runner": _RUNNER_OF_TOOL.get(tool, tool)}


def _entry(row: Mapping[str, Any], board: Board) -> MappedBoard:
    probe = _text(row, "probe_id") or _text(row, "id")
    runner = _text(row, "runner")
    tool = _RUNNERS.get(runner, runner)
    return MappedBoard(
        _text(row, "platform"),
        _text(row, "serial"),
        probe if SAFE_SERIAL.fullmatch(probe) and probe != _UNKNOWN else None,
        tool if any(it.tool == tool for it in board.flashers) else None,
    )


def _fits(row: Mapping[str, Any], board: Board) -> bool:
    platform, product = _text(row, "platform"), _text(row, "product")
    if platform and platform != _UNKNOWN:
        return _names(platform, board)
    words = _words(product)
    families = {
        family for kind in usb_kinds() if product and kind.name == product for family in kind.families
    }
    return board.name in words or board.family in (*words, *families)


def _names(platform: str, board: Board) -> bool:
    """Whether Zephyr's name of a board, such as `nucleo_h743zi/stm32h743xx`, is of this board's chip."""
    words = _words(platform)
    own = _words(board.name)
    if any(words[at : at + len(own)] == own for at in range(len(words))):
        return _revisions(words) == _revisions(own)
    short = board.name.removeprefix("stm32")
    begins = (board.name, short) if len(own) == 1 else ()
    return any(word.startswith(begins) for word in words)


def _revisions(words: list[str]) -> set[str]:
    return {word for word in words if re.fullmatch(r"v\d+", word)}


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return "" if value is None else str(value).strip()


def _read(path: Path) -> list[dict[str, Any]]:
    yaml = _yaml()
    try:
        text = read_limited(path, _MOST_BYTES).decode()
        _require_small(path, yaml.scan(text))
        content = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except AttributeError as error:  # PyYAML's fault for a timestamp that is none
        raise ConfigError(f"{path} is not YAML: a value does not fit its tag (!!name)") from error
    if content is None:
        return []
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise ConfigError(
            f"{path} is not a hardware map: it must be a list of entries with `platform`, `serial`"
        )
    return content


def _require_small(path: Path, tokens: Iterable[Any]) -> None:
    """Raise ConfigError for more aliases, or for deeper nesting, than any map needs."""
    aliases = depth = 0
    for token in tokens:
        kind = type(token).__name__
        aliases += kind == "AliasToken"
        depth += kind.endswith("StartToken") - kind.endswith("EndToken")
        if depth > _MOST_LEVELS:
            raise ConfigError(f"{path} nests values more than {_MOST_LEVELS} levels deep; a map needs 3")
    if aliases > _MOST_ALIASES:
        raise ConfigError(
            f"{path} has {aliases:,} aliases (*name), the limit is {_MOST_ALIASES}: write the values out"
        )


def _yaml() -> Any:
    """Return PyYAML, which an extra installs."""
    try:
        import yaml  # noqa: PLC0415
    except ImportError:
        raise UsageError("hardware maps need PyYAML: pip install pyyaml") from None
    return yaml
