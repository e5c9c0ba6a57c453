"""The `mcudeploy` command: its group, and how every way to fail ends in one message and one exit code."""

from __future__ import annotations

import codecs
import io
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import rich_click as click

from mcudeploy import __version__
from mcudeploy.cli.command_table import CommandTable
from mcudeploy.cli.compiling import compiled_code_kept
from mcudeploy.cli.config import load_settings, settable
from mcudeploy.cli.help import group_commands
from mcudeploy.cli.output import message_of, print_error
from mcudeploy.cli.proposed import with_commands
from mcudeploy.common import interrupts
from mcudeploy.common.errors import ConfigError, DeployError, FitError

_COMPLETING = "_MCUDEPLOY_COMPLETE"
"""The variable by which a shell asks for completions."""
_WITHOUT_SETTINGS = {"-h", "--help", "--help-all", "--version"}
"""Options that need no settings."""


class CommandLine(click.RichGroup):
    """A group with options from `mcudeploy.toml` and variables, and one way to end for every error."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Run one command and end the process with its exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in arguments
        try:
            _spell_out()
            ignores_settings = _COMPLETING in os.environ or not _WITHOUT_SETTINGS.isdisjoint(arguments)
            settings = {} if ignores_settings else load_settings(_here(), os.environ, self.commands)
            as_json = as_json or bool(settings.get("json"))
            extra |= {
                "prog_name": "mcudeploy",
                "standalone_mode": False,
                "default_map": _defaults(self.commands, settings) if settings else {},
                "obj": tuple(arguments),
            }
            result = super().main(arguments, **extra)
            code = result if isinstance(result, int) else 0
        except (click.Abort, KeyboardInterrupt) as error:
            code = _report(error, interrupts.INTERRUPTED, "interrupted", as_json)
        except interrupts.Terminated as error:
            code = _report(error, int(str(error.code)), interrupts.WORDS[int(str(error.code))], as_json)
        except BrokenPipeError:  # whoever read stdout has seen enough: `mcudeploy boards | head -1`
            code = _muted(1)
        except click.ClickException as error:
            code = _report(error, error.exit_code, _usage(error), as_json)
        except FitError as error:
            code = _failed(with_commands(error, arguments, self.commands), arguments, as_json)
        except Exception as error:
            if code := interrupts.signalled():  # the signal caused the error: the terminal is gone, say
                code = _report(error, code, interrupts.WORDS[code], as_json)
            else:
                code = _failed(error, arguments, as_json)
        sys.exit(code)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ConfigError("the working directory does not exist any more: cd to another one") from None


def _defaults(commands: Mapping[str, click.Command], settings: Mapping[str, object]) -> dict[str, Any]:
    """Return the settings as click's `default_map`: by command and option, nested for a group's commands."""
    return {
        name: _defaults(command.commands, settings)
        if isinstance(command, click.Group)
        else {
            str(option.name): settings[key]
            for key, option in settable(name, command).items()
            if key in settings
        }
        for name, command in commands.items()
    }


_SPELT = {"\N{GREATER-THAN OR EQUAL TO}": ">="}
"""Text for characters that a stream's encoding lacks; other such characters are written as escapes."""


def _spelt(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError) and (text := _SPELT.get(error.object[error.start])):
        return text, error.start + 1
    return codecs.backslashreplace_errors(error)


def _spell_out() -> None:
    """Let stdout and stderr take every character, whatever their encodings are."""
    codecs.register_error("mcudeploy", _spelt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="mcudeploy")


def _usage(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"\nTry '{context.command_path} --help'." if context else ""
    return error.format_message() + hint


def _failed(error: Exception, arguments: Sequence[str], as_json: bool) -> int:
    """Report the error of a stage, or a defect, and return its exit code."""
    if "--traceback" in arguments:
        traceback.print_exception(error, file=sys.stderr)
    code = error.exit_code if isinstance(error, DeployError) else 1
    return _report(error, code, message_of(error), as_json)


def _report(error: BaseException, code: int, message: str, as_json: bool) -> int:
    """Print the error and return the exit code, also if no stream can be written any more."""
    interrupts.close()
    try:
        print_error(error, code, message, as_json)
    except OSError:
        return _muted(code)
    return code


def _muted(code: int) -> int:
    """Return the exit code, and write nothing from now on, also not when Python ends."""
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    return code


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from mcudeploy.toolchain import versions

    click.echo(f"mcudeploy {__version__}")
    for name, version in versions():
        click.echo(f"{name}: {version}")
    context.exit()


@click.group(name="mcudeploy", cls=CommandLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version, and those of the tools that are called.",
)
def cli() -> None:
    """Run an ONNX or TFLite model on a microcontroller."""


cli.commands = CommandTable("mcudeploy")
group_commands("mcudeploy")


def main() -> NoReturn:
    """Run the command line of this process; see `mcudeploy.__main__`."""
    with compiled_code_kept():
        cli.main()
