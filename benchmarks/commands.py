"""The reference of commands in docs/commands.md, generated from the command line itself.

    python benchmarks/commands.py [--check]

`--check` changes nothing, and fails if the file differs.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
from generated import write_or_check

from mcudeploy.cli.config import all_settings
from mcudeploy.cli.help import EXAMPLES, leaves
from mcudeploy.cli.main import cli

FILE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
COMMANDS = leaves(cli)
SHARED = 3
"""An option that this number of commands share is described once."""

HEAD = """# Commands

For users at the command line: every command and option.
Made by `python benchmarks/commands.py` from what `mcudeploy COMMAND --help-all` prints.
[usage.md](usage.md) has what holds for all commands: settings, files, streams, exit codes.
"""


def text() -> str:
    """Return the whole file."""
    entries = {name: [entry(it) for it in options(command)] for name, command in sorted(COMMANDS.items())}
    count = Counter(each for listed in entries.values() for each in listed)
    shared = {each for each, number in count.items() if number >= SHARED}
    lines = [HEAD, "| command | does |", "|---|---|"]
    lines += [
        f"| [`{name}`](#{name.replace(' ', '-')}) | {cell(described(COMMANDS[name]))} |" for name in entries
    ]
    for name, listed in entries.items():
        lines += ["", f"## {name}", "", described(COMMANDS[name]), ""]
        lines += ["```", usage(name), EXAMPLES[name], "```", ""]
        own = [f"- {first}: {rest}" for first, rest in listed if (first, rest) not in shared]
        common = sorted(long_name(first) for first, rest in listed if (first, rest) in shared)
        lines += [*own, ""] if own else []
        lines += ["[Also](#options-of-several-commands): " + ", ".join(f"`{name}`" for name in common) + "."]
    lines += ["", "## Options of several commands", ""]
    lines += [f"- {first}: {rest}" for first, rest in sorted(shared)]
    lines += ["", "## Options that are not settings", "", *unset(), ""]
    return "\n".join(lines)


def long_name(written: str) -> str:
    """Return an option's name without its letter and its value."""
    return written.rsplit(", ", maxsplit=1)[-1].strip("`").split(" ")[0]


def options(command: click.Command) -> Iterator[click.Option]:
    """Yield the options in `--help`, except `--help`."""
    for it in command.params:
        if isinstance(it, click.Option) and not it.hidden:
            yield it


def entry(option: click.Option) -> tuple[str, str]:
    """Return an option as written, and its help."""
    names = [
        f"{on}/{off}" for on, off in zip(option.opts, option.secondary_opts, strict=False)
    ] or option.opts
    value = "" if option.is_flag or option.count else f" {metavar(option)}"
    default = option.opts[-1] if option.default is True else option.default
    default_text = (
        f" [default: {default}]" if option.show_default is True and option.default not in {0, None} else ""
    )
    return ", ".join(f"`{name}{value}`" for name in names), paragraph((option.help or "") + default_text)


def metavar(option: click.Option) -> str:
    """Return the placeholder of the value."""
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return option.type.name.upper()


def described(command: click.Command) -> str:
    """Return the first paragraph of a command's help."""
    return paragraph((command.help or "").split("\n\n")[0])


def usage(name: str) -> str:
    """Return the line of arguments, without options."""
    context = click.Context(COMMANDS[name], info_name=f"mcudeploy {name}")
    return " ".join((context.command_path, *COMMANDS[name].collect_usage_pieces(context)))


def unset() -> list[str]:
    """Return the options that exist only on the command line."""
    settings = {f"--{name}" for name in all_settings(cli.commands)}
    names = {it.opts[-1] for command in COMMANDS.values() for it in options(command)} - settings
    text = "These stand on the command line only, all others in [settings](usage.md#settings) as well:"
    return [text, ", ".join(f"`{name}`" for name in sorted(names)) + "."]


def paragraph(words: str) -> str:
    """Return a text in one line, with HTML's characters escaped outside of code."""
    parts = " ".join(words.split()).split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", r"\*") for part in parts[::2]]
    return "`".join(parts)


def cell(words: str) -> str:
    """Return a text for a table."""
    return words.replace("|", r"\|")


def main() -> int:
    """Write the file, or compare it."""
    return write_or_check(__doc__, FILE, text(), f"{len(COMMANDS)} commands")


if __name__ == "__main__":
    sys.exit(main())
