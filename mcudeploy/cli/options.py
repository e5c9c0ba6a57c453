"""Options that several commands share; each decorator packs its options into one value for the command."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rich_click as click
from click import get_current_context
from click.core import ParameterSource

from mcudeploy.cli.config import FILE_NAME
from mcudeploy.cli.output import Output, mute_notes, tell_commands
from mcudeploy.cli.parameter_types import Finite, InputFile, InputModel, NewFile, NewFolder, ParsedText
from mcudeploy.common.errors import UsageError
from mcudeploy.common.text import first_repeated
from mcudeploy.extension import added, extension_files, value_of
from mcudeploy.planner.plan_options import OPTIONS, Options, OptionSpec

Command = Callable[..., None]
_TRUST = "mcudeploy.trust-extension"
"""Key of --trust-extension in the context, for --extension."""


def added_options(name: str) -> Callable[[Command], Command]:
    """Add the options that extensions have for the command `name`."""

    def decorated(command: Command) -> Command:
        for options in reversed([*added("options")]):
            for option in reversed(options.get(name, ())):
                command = option(command)
        return command

    return decorated


def packed_as(name: str, kind: str, /, *fields: str, **renamed: str) -> Callable[[Command], Command]:
    """Pack values of options into one, the parameter `name`. The command's function stands right below.

    `kind`: `module:NAME` of the value's class, imported when the command runs. `fields`: fields with the
    names of their options; `renamed`: other fields, with the names of their options. A field that no option
    sets keeps its default.
    """
    options = {**{field: field for field in fields}, **renamed}

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def packed(*args: Any, **values: Any) -> None:
            known = {field: values.pop(option) for field, option in options.items() if option in values}
            command(*args, **{name: value_of(kind)(**known)}, **values)

        return packed

    return decorated


def extension_options(command: Command) -> Command:
    """Add --extension and --trust-extension: the files are in use until the command ends."""
    trust = click.option(
        "--trust-extension",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=lambda context, _, wanted: context.meta.update({_TRUST: wanted}),
        help="Allow running the files of --extension, and the C that they name, until any of it changes.",
    )
    files = click.option(
        "--extension",
        metavar="FILE.py",
        multiple=True,
        type=InputFile(),
        expose_value=False,
        callback=_use_extensions,
        help="File of operators of your own, with their kernels; may be repeated.",
    )
    return files(trust(command))


def _use_extensions(context: click.Context, _: click.Parameter, paths: tuple[Path, ...]) -> None:
    if paths:
        context.with_resource(extension_files(*paths, trust=bool(context.meta.get(_TRUST))))


def model_argument(command: Command) -> Command:
    """Add MODEL as `model: Path`, and the options of extensions that it may need."""
    return click.argument("model", type=InputModel())(extension_options(command))


def planning_options(*names: str) -> Callable[[Command], Command]:
    """Add the options that set these fields of `Options`, all if none is named, packed as `options`.

    `options` has also the value of --name, if `library_options` stand above.
    """
    specs = [spec for spec in OPTIONS if not names or spec.field in names]

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def packed(*args: Any, **values: Any) -> None:
            given = {spec.field: values.pop(spec.field) for spec in specs}
            for spec in specs:
                if spec.field in ("memory_limits", "shapes", "constants", "states"):
                    _require_once(spec.flag, [name for name, _ in given[spec.field]])
            options = Options(**given, name=values.pop("name", None))
            if options.placement == "tags" and (options.split or options.plan_file is not None):
                raise UsageError(
                    "--placement tags places whole tensors: add --no-split, and leave out --plan"
                )
            if options.order_file is not None and options.split and is_typed("split"):
                raise UsageError("--order is the order of whole operators: leave out --split")
            command(*args, options=options, **values)

        result: Command = packed
        for spec in reversed(specs):
            result = _option(spec)(result)
        return result

    return decorated


def _option(spec: OptionSpec) -> Callable[[Command], Command]:
    default = getattr(Options(), spec.field)
    return click.option(
        f"--{spec.flag}/--no-{spec.flag}" if spec.kind is bool else f"--{spec.flag}",
        spec.field,
        metavar=spec.metavar,
        type=_type_of(spec),
        multiple=isinstance(default, tuple),
        default=default,
        show_default=default not in (None, ()) and default is not False,
        help=spec.help,
    )


def _type_of(spec: OptionSpec) -> click.ParamType[Any] | None:
    """Return the type of an option's value; None for a flag, and for any text."""
    if isinstance(spec.kind, tuple):
        return click.Choice(spec.kind)
    if spec.kind is int:
        return click.IntRange(min=int(spec.least or 0))
    if spec.kind is float:
        return Finite(min=spec.least, min_open=spec.above)
    if spec.kind is Path:
        return InputFile()
    return None if spec.kind in (bool, str) else ParsedText(spec.kind)


def _require_once(flag: str, names: list[str]) -> None:
    twice = first_repeated(names)
    if twice is not None:
        raise UsageError(f"--{flag} {twice} is given twice")


def destination_option(
    text: str, metavar: str = "FILE", *, endings: Sequence[str] = (), required: bool = False
) -> Callable[[Command], Command]:
    """Add -o as `destination: Path`, or None unless it is `required`."""
    return click.option(
        "-o",
        "--output",
        "destination",
        metavar=metavar,
        type=NewFile(*endings),
        required=required,
        help=text,
    )


def plan_file_options(command: Command) -> Command:
    """Add -o and --chart: files for the plan and for its picture."""
    destination = destination_option("Write the plan to this file, for --plan.")
    picture = click.option(
        "--chart",
        metavar="FILE",
        type=NewFile(".svg", ".html"),
        help="Draw the plan, the arena over steps, as .svg or .html.",
    )
    return destination(picture(files_option(command)))


def files_option(command: Command) -> Command:
    """Add --force, and refuse to overwrite an input file or a file that mcudeploy did not write.

    Every command with a `NewFile` needs it.
    """

    @click.option("--force", is_flag=True, help="Overwrite files that mcudeploy did not write.")
    @functools.wraps(command)
    def guarded(*args: Any, force: bool, **rest: Any) -> None:
        _require_new_files(get_current_context(), force)
        command(*args, **rest)

    return guarded


def _require_new_files(context: click.Context, force: bool) -> None:
    from mcudeploy.common.files import is_ours, same_file

    known = [(FILE_NAME, Path(FILE_NAME)), *_paths(context, InputFile)]
    for name, path in _paths(context, NewFile):
        for other, taken in known:
            if same_file(path, taken):
                raise UsageError(f"{name} {path} is also {other}: choose another file")
        if path.is_file() and not force and not is_ours(path):
            raise UsageError(
                f"{path} exists and was not written by mcudeploy: choose another file, or overwrite it with "
                "--force"
            )
        known.append((name, path))


def _paths(context: click.Context, kind: type[click.ParamType[Any]]) -> list[tuple[str, Path]]:
    """Return the name and the path of each parameter of this kind, as the user gave them."""
    given = [(each, context.params.get(each.name or "")) for each in context.command.params]
    return [
        (parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.make_metavar(context), path)
        for parameter, value in given
        if isinstance(parameter.type, kind) and value is not None
        for path in (value if isinstance(value, tuple) else (value,))
    ]


force_option = click.option(
    "--force", is_flag=True, help="Overwrite files in the folder that mcudeploy did not write, or you edited."
)
"""--force of commands that write a folder."""


def library_options(contents: str) -> Callable[[Command], Command]:
    """Add --output, --name and --force of commands that write a C library; the folder has these contents."""
    folder = click.option(
        "-o",
        "--output",
        "directory",
        metavar="DIR",
        required=True,
        type=NewFolder(),
        help=f"Folder for {contents}; an earlier build there is replaced.",
    )
    name = click.option(
        "--name",
        help="Prefix of the model's functions and files in C, or name of a library of several models; the "
        "name of the file or folder by default.",
    )
    return lambda command: folder(name(force_option(command)))


def is_typed(name: str) -> bool:
    """Whether the command line has an option; `mcudeploy.toml` and variables have less weight."""
    return get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def typed_arguments() -> tuple[str, ...]:
    """Return the arguments of `mcudeploy`; none if another program runs the command."""
    return get_current_context().find_object(tuple) or ()


def timing_option(command: Command) -> Command:
    """Add --timing as `timing: str`."""
    return click.option(
        "--timing",
        type=click.Choice(["instructions", "cycles-model", "traffic"]),
        default="instructions",
        show_default=True,
        help="Metric that the emulator counts: executed instructions; cycles by a model of the core; or "
        "instructions and what slow memories add. The last two also count bytes by memory.",
    )(command)


def _quiet(wanted: bool) -> bool:
    if wanted:
        mute_notes()
    return wanted


def output_options(command: Command) -> Command:
    """Add --json, --quiet, --verbose and --traceback, packed as `output: Output`."""

    @click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object on stdout instead of tables."
    )
    @click.option(
        "-q",
        "--quiet",
        is_flag=True,
        is_eager=True,
        callback=lambda _, __, wanted: _quiet(wanted),
        help="Print the verdict of a run and errors only: no tables, no progress.",
    )
    @click.option(
        "-v",
        "--verbose",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=lambda _, __, wanted: tell_commands() if wanted else None,
        help="Print the command lines of the tools that run, and the files that are written.",
    )
    @click.option(
        "--traceback", is_flag=True, expose_value=False, help="Show the Python traceback of an error."
    )
    @functools.wraps(command)
    def packed(*args: Any, as_json: bool, quiet: bool, **rest: Any) -> None:
        command(*args, output=Output(as_json, quiet), **rest)

    return packed
