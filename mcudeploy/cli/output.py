"""All printed text: results on stdout, as tables or one JSON object; everything else on stderr."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from mcudeploy.cli.compiling import announced_compilation
from mcudeploy.common import interrupts
from mcudeploy.common.errors import DeployError, FitError, ModelError, causes
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.resources import way_out_of_limit
from mcudeploy.common.system.signals import memory_limit
from mcudeploy.common.text import plain
from mcudeploy.report import as_json

Values = Mapping[str, Any]
"""A report, or an object within one, in its JSON form."""
Render = Callable[[Console, Values], None]
"""Prints a report, or a part of it, for people."""
_PLAIN_WIDTH = 140
_NO_MEMORY = re.compile(r"failed to map segment|annot allocate memory|bad_alloc")
"""Messages of the loader of shared objects, the kernel and C++ if memory runs out."""
_FORMAT = 1
"""Of JSON objects: raised when a key disappears or changes its meaning; see docs/usage.md."""


def lines(text: object) -> str:
    """Return `text` like `plain`, with its line breaks: for messages and compiler output."""
    return "\n".join(plain(line.expandtabs()) for line in str(text).splitlines())


def cell(text: object, style: str = "") -> Text:
    """Return a table cell that shows `text` literally: model and file names are data, never markup."""
    return Text(plain(text), style=style)


def terminal(*, stderr: bool) -> Console:
    """Return the console for people; for a pipe or log it is wide enough that no table is folded."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal and console.width < _PLAIN_WIDTH:
        console.width = _PLAIN_WIDTH
    return console


@dataclass(frozen=True, slots=True)
class Output:
    """Output of one command: `as_json` prints the report as JSON, `quiet` leaves the verdict only."""

    as_json: bool
    quiet: bool

    def result(self, result: Any, render: Render, verdict: Render | None = None) -> Values:
        """Print a command's result on stdout, as JSON or as a table; return its JSON object.

        `verdict` prints the part that a quiet command prints too.
        """
        interrupts.close()
        report = as_json(result)
        shown = verdict if self.quiet else render
        if self.as_json:
            print_json(report)
        elif shown is not None:
            with _naming_stdout():
                _render(terminal(stderr=False), report, shown)
        return report

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Report the progress of long stages on stderr until the block ends."""
        console = terminal(stderr=True)
        if self.quiet:
            yield SILENT
            return
        with announced_compilation(console.print):
            if console.is_terminal:
                from mcudeploy.cli.drawn_progress import DrawnProgress

                with DrawnProgress(console) as drawn:
                    yield drawn
            else:
                yield LoggedProgress(console)


def _render(console: Console, report: Values, render: Render) -> None:
    """Render a report; outside a terminal, lines lose their trailing blanks."""
    if console.is_terminal:
        render(console, report)
        return
    with console.capture() as written:
        render(console, report)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in written.get().splitlines())
    sys.stdout.flush()


class LoggedProgress:
    """Progress as one line per stage, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def stage(self, name: str) -> None:
        """Print the stage's name."""
        self._console.print(plain(name), soft_wrap=True)

    def update(self, name: str) -> None:
        """Ignore the update: a log keeps the figures of the stage's start."""

    def advance(self, done: int, total: int) -> None:
        """Ignore the advance: a log shows stages only."""

    def searched(self, seconds: float, arena_bytes: int, candidates: int) -> None:
        """Ignore the figures: `stage` prints each gain of the search."""


def tell_commands() -> None:
    """Print the command lines of tools on stderr from now on."""
    logger = logging.getLogger("mcudeploy")
    logger.handlers = [logging.StreamHandler(sys.stderr)]
    logger.setLevel(logging.INFO)


def mute_notes() -> None:
    """Leave out notes on packages that are not installed from now on."""
    logging.getLogger("mcudeploy.common.fast").setLevel(logging.ERROR)


def deprecated(old: str, new: str) -> None:
    """Say on stderr that a command or an option has a new name."""
    print(f"mcudeploy {old} is deprecated: use mcudeploy {new}", file=sys.stderr)


def is_verbose() -> bool:
    """Whether -v was given."""
    return logging.getLogger("mcudeploy").isEnabledFor(logging.INFO)


def print_json(report: Values) -> None:
    """Print one JSON object on stdout, with its format. Raises OSError if stdout cannot be written."""
    with _naming_stdout():
        json.dump(_jsonable({"format": _FORMAT, **report}), sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
        sys.stdout.flush()


@contextmanager
def _naming_stdout() -> Iterator[None]:
    """Name stdout in an OSError of the block, such as a full disk."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), "stdout") from error


def print_error(error: BaseException, exit_code: int, message: str, as_json: bool) -> None:
    """Print the final message of a failed command; with `as_json` also an `error` object."""
    problems = error.problems if isinstance(error, ModelError) else ()
    console = terminal(stderr=True)
    console.print(Text.assemble(("error: ", "bold red"), lines(message)), soft_wrap=True)
    for cause in causes(problems):
        console.print(Text(f"  {plain(cause)}"), soft_wrap=True)
    if as_json:
        listed = [asdict(problem) for problem in problems]
        content: Values = {"exit_code": exit_code, "message": message, "problems": listed}
        if isinstance(error, FitError) and error.proposals:
            content = {**content, "proposals": [asdict(each) for each in error.proposals]}
        print_json({"error": content})


def message_of(error: Exception) -> str:
    """Return the message for an error; for one that no stage foresaw it says how to report the defect."""
    if isinstance(error, DeployError):
        return str(error)
    if _ran_out_of_memory(error):
        most = memory_limit()
        if most is None:
            return "memory ran out: end other programs, or run on a computer with more memory"
        return f"memory ran out: this process may take {most // 2**20:,} MiB (`ulimit -v`): raise that limit"
    if isinstance(error, OSError) and error.strerror:
        reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        return ". ".join(filter(None, (reason, way_out_of_limit(error))))
    return (
        f"internal error, {type(error).__name__}: {error}. This is a defect of mcudeploy: "
        "run again with --traceback and report what it prints."
    )


def _ran_out_of_memory(error: BaseException | None) -> bool:
    """Whether the error, or one that caused it, says that memory ran out; a loaded library may say so."""
    while error is not None:
        if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _jsonable(value: object) -> object:
    """Return `value` in its JSON form; a float that JSON cannot express becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):  # a numpy number; importing numpy takes long
        return _jsonable(value.item())
    raise TypeError(f"a report cannot hold a {type(value).__name__}")
