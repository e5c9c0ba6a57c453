"""Option values from `mcudeploy.toml` and `MCUDEPLOY_*`, named as options and checked when read."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import rich_click as click

from mcudeploy.cli.parameter_types import NewFile, NewFolder, ParsedText
from mcudeploy.common.errors import ConfigError

FILE_NAME = "mcudeploy.toml"
_MOST_BYTES = 2**20
_PREFIX = "MCUDEPLOY_"
_BUDGETS = "gate"
"""The key of the tables that `gate` reads."""
_NOT_OPTIONS = frozenset({"MCUDEPLOY_CACHE_DIR"})
_LISTS = {
    *("input", "expected", "assign", "memory", "shape", "bind", "state"),
    *("int8-cache", "replaceable", "extension"),
}
_NO_SETTINGS = {
    *("capacity", "chart", "data", "dry-run", "explain", "for", "force", "help-all", "keep-float"),
    *("classes", "float", "labels", "library-only", "like", "link", "link-latency", "mode", "new"),
    *("output-name", "prepare", "recompute", "report", "save-outputs", "samples", "topology"),
    *("batch", "clip-norm", "loss", "momentum", "rate", "save-model", "update", "weight-decay"),
    *("baud", "features", "head", "library", "junit", "markdown", "statistics", "trace", "traceback"),
    *("trust-board", "trust-extension"),
}
"""Options that stand on the command line only."""
_OTHER_MEANING = {
    *(("order", "memory"), ("schedule", "memory"), ("pipeline", "objective"), ("quantize", "method")),
    *(("boards", "output"), ("fit", "boards"), ("fit", "top")),
}
"""Pairs of a command and an option that is not the setting of that name."""
_Origin = Callable[[str], str]
_Settings = Mapping[str, click.Option]
_Commands = Mapping[str, click.Command]


def settable(name: str, command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command that a file or a variable may set, by their long names."""
    options = {it.opts[-1].removeprefix("--"): it for it in command.params if isinstance(it, click.Option)}
    return {
        key: it
        for key, it in options.items()
        if key not in _NO_SETTINGS and (name, key) not in _OTHER_MEANING
    }


def all_settings(commands: Mapping[str, click.Command]) -> dict[str, click.Option]:
    """Return the settings of all commands, by name; of several options with the same name the first."""
    options: dict[str, click.Option] = {}
    for name, command in commands.items():
        group = command if isinstance(command, click.Group) else None
        own = settable(name, command) if group is None else all_settings(group.commands)
        options = {**own, **options}
    return options


def load_settings(
    directory: Path, environment: Mapping[str, str], commands: Mapping[str, click.Command]
) -> dict[str, object]:
    """Return the values that `mcudeploy.toml` in `directory` and the environment set, by option name.

    The environment wins. An empty variable counts as unset.
    Raises ConfigError that names the file or variable, the key and the fault.
    """
    return {**_from_file(directory / FILE_NAME, commands), **_from_environment(environment, commands)}


def _from_file(path: Path, commands: _Commands) -> dict[str, object]:
    from mcudeploy.common.files import read_toml

    if not path.exists():
        return {}
    table = read_toml(path, _MOST_BYTES)
    return _validated(table, commands, lambda key: f"{path.name}: key {key!r}")


def _from_environment(environment: Mapping[str, str], commands: _Commands) -> dict[str, object]:
    table: dict[str, object] = {}
    for name, text in environment.items():
        if text and name.startswith(_PREFIX) and name not in _NOT_OPTIONS:
            key = name.removeprefix(_PREFIX).lower().replace("_", "-")
            table[key] = text.split(os.pathsep) if key in _LISTS else text
    return _validated(table, commands, lambda key: _PREFIX + key.upper().replace("-", "_"))


def _validated(table: Mapping[str, object], commands: _Commands, origin: _Origin) -> dict[str, object]:
    if not table:
        return {}
    options = all_settings(commands)  # imports every command
    values, faults = dict[str, object](), list[str]()
    for key, value in table.items():
        if key == _BUDGETS:
            continue
        try:
            if key not in options:
                raise ValueError(_unknown(key, options))
            values[key] = _valid(key, value, options[key])
        except ValueError as error:
            faults.append(f"{origin(key)}: {error}")
        except click.BadParameter as error:
            faults.append(f"{origin(key)}: {error.message}")
    if faults:
        raise ConfigError("\n".join(faults))
    return values


def _valid(key: str, value: object, option: click.Option) -> object:
    """Return a value as an option's default. Raises ValueError or BadParameter."""
    if key in _LISTS:
        return tuple(_valid("", each, option) for each in (value if isinstance(value, list) else [value]))
    numeric = isinstance(option.type, click.IntRange | click.FloatRange | ParsedText)
    accepted = bool | str if option.is_flag else int | float | str if numeric else str
    if not isinstance(value, accepted) or (isinstance(value, bool) and not option.is_flag):
        raise ValueError(f"{value!r} is not a {option.type.name}")
    if not isinstance(option.type, NewFile | NewFolder):  # those differ between commands
        checked = option.type.convert(str(value), option, None)
    return checked if option.is_flag else value


def _unknown(key: str, options: _Settings) -> str:
    known = sorted(options)
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"no such option; {hint}"
