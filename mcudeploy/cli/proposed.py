"""Proposals that make a model fit, as command lines to paste: the user's, with the options proposed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import rich_click as click

from mcudeploy.common.errors import FitError, Proposal

_OPPOSITE = {"--split": "--no-split", "--stream-input": "--no-stream-input"}
_OF_ANY_BOARD = (["plan"], ["build"], ["adapt", "build"])
"""Commands that run with another board unchanged; for others the proposal names `plan`."""

Word = tuple[str, list[str]]
"""An option with its value, as written; other arguments have no name."""


def with_commands(
    error: FitError, arguments: Sequence[str], commands: Mapping[str, click.Command], board: str = ""
) -> FitError:
    """Return the error with a whole command line in each proposal that is an option.

    `arguments` are those of `mcudeploy`, starting with a command; `board`: the error's, if there are several.
    """
    if not arguments or arguments[0] not in commands:
        return error
    own = [f"--board {board}"] if board else []

    def commanded(proposal: Proposal) -> Proposal:
        if proposal.command:
            return proposal
        if not proposal.option.startswith("-"):
            return replace(proposal, command=proposal.option)
        given = " ".join((*own, proposal.option)) if "--board " not in proposal.option else proposal.option
        return replace(proposal, command=command_line(arguments, commands, given))

    return FitError(error.reason, tuple(map(commanded, error.proposals)))


def command_line(arguments: Sequence[str], commands: Mapping[str, click.Command], proposed: str) -> str:
    """Return the command line of `arguments` with the `proposed` options, in place of equal ones."""
    names, command = _command(arguments, commands)
    words = list(_words(arguments[len(names) :], command))
    added = list(_words(shlex.split(proposed), commands["build"]))
    if names not in _OF_ANY_BOARD and any(option == "--board" for option, _ in added):
        names, words = ["plan"], [it for it in words if not it[0] or _named(commands["plan"])(it[0])]
    replaced = ({option for option, _ in added} | {_OPPOSITE.get(option, "") for option, _ in added}) - {""}
    others = [parts for option, parts in words if option not in replaced]
    return shlex.join(["mcudeploy", *names, *chain(*others, *(parts for _, parts in added))])


def _command(
    arguments: Sequence[str], commands: Mapping[str, click.Command]
) -> tuple[list[str], click.Command]:
    """Return the command that arguments begin with, and its names: several if it is one of a group."""
    names, command = [arguments[0]], commands[arguments[0]]
    for name in arguments[1:]:
        if not isinstance(command, click.Group) or name not in command.commands:
            break
        names, command = [*names, name], command.commands[name]
    return names, command


def _words(arguments: Sequence[str], command: click.Command) -> Iterator[Word]:
    """Yield the arguments, each option with its value."""
    named, rest = _named(command), iter(arguments)
    for text in rest:
        name, equals, _ = text.partition("=") if text.startswith("--") else (text, "", "")
        option = named(name)
        if option is None:
            yield "", [text]
        else:
            takes = not (option.is_flag or option.count or equals)
            yield name, [text, *([next(rest, "")] if takes else [])]


def _named(command: click.Command) -> Callable[[str], click.Option | None]:
    """Return a function that finds an option of a command by its name."""
    known = {
        name: it
        for it in command.params
        if isinstance(it, click.Option)
        for name in (*it.opts, *it.secondary_opts)
    }
    return known.get
