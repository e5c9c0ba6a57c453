"""The commands by name, of the core and of extensions, each imported at its first use."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import cached_property
from importlib import import_module

import rich_click as click

from mcudeploy.cli.help import describe
from mcudeploy.common.errors import UsageError
from mcudeploy.extension import extensions, value_of

_MODULES = {
    **dict.fromkeys(("boards", "devices", "doctor"), "boards_command"),
    **dict.fromkeys(("build", "init", "flash"), "build_command"),
    "fit": "fit_command",
    **dict.fromkeys(("check", "plan", "tune"), "model_commands"),
    **dict.fromkeys(("measure", "run"), "run_command"),
}
"""The modules of the core's commands."""


class CommandTable(MutableMapping[str, click.Command]):
    """Commands by name, each with its example and its options in groups."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._imported: dict[str, click.Command] = {}

    @cached_property
    def _added(self) -> dict[str, str]:
        """The places `module:NAME` of the commands of extensions. UsageError if two have the same name."""
        places: dict[str, str] = {}
        for place in (each for extension in extensions() for each in extension.commands):
            name = place.rpartition(":")[2]
            if name in places or name in _MODULES:
                raise UsageError(f"an extension adds a second command {name}: uninstall its package")
            places[name] = place
        return places

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._imported:
            if name in _MODULES:
                command = getattr(import_module(f"mcudeploy.cli.{_MODULES[name]}"), name)
            else:
                command = value_of(self._added[name])
            describe(self._program, name, command)
            self._imported[name] = command
        return self._imported[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._imported[name] = command

    def __delitem__(self, name: str) -> None:
        del self._imported[name]

    def __contains__(self, name: object) -> bool:
        return name in _MODULES or name in self._added

    def __iter__(self) -> Iterator[str]:
        return iter((*_MODULES, *self._added))

    def __len__(self) -> int:
        return len(_MODULES) + len(self._added)
