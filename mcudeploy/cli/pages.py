"""--report and --trace: pages about plans, written after a command has its result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context

from mcudeploy.cli.options import Command, typed_arguments
from mcudeploy.cli.output import Values
from mcudeploy.cli.parameter_types import NewFile

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.common.errors import FitError
    from mcudeploy.execution.deployment import Deployment
    from mcudeploy.execution.results import VerifiedRun
    from mcudeploy.report.html import Misfit, Subject


@dataclass(frozen=True, slots=True)
class Pages:
    """The files of the pages to write; None for a page that the user does not want."""

    report: Path | None
    trace: Path | None

    @property
    def requested(self) -> bool:
        return self.report is not None or self.trace is not None

    def subject(self, deployment: Deployment, report: Values) -> Subject:
        """Return a plan as a page shows it, with its earlier measurements."""
        from mcudeploy.report.html import Subject

        return Subject(
            deployment, report, deployment.measured() if self.requested else None, _command_within()
        )

    def run(self, result: VerifiedRun) -> Subject:
        """Return a run as a page shows it."""
        from mcudeploy.report import as_json
        from mcudeploy.report.html import Subject

        device_run = result.measured.device_run
        return Subject(
            device_run.deployment, as_json(result), device_run.observed.measurement, _command_within()
        )

    def misfit(self, board: Board, error: FitError) -> Misfit:
        """Return a board that the model does not fit, as a page shows it."""
        from mcudeploy.report.html import Misfit

        return Misfit(board, str(error))

    def write_misfit(self, model: Path, board: Board, error: FitError) -> None:
        """Write the page about a model that does not fit; there is no trace of it."""
        if self.report is not None:
            Pages(self.report, None).write(model, [self.misfit(board, error)])

    def write(self, model: Path, subjects: Sequence[Subject | Misfit], plan: Path | None = None) -> None:
        """Write the pages; `plan` is the file with the plan. Raises OSError that names the file."""
        from mcudeploy.common.files import write_file
        from mcudeploy.report import html
        from mcudeploy.report.perfetto import trace

        if self.report is not None:
            write_file(self.report, html.page(model, subjects, typed_arguments(), plan))
        if self.trace is not None:
            (subject,) = (each for each in subjects if isinstance(each, html.Subject))
            write_file(self.trace, trace(subject.deployment, subject.measured))


def _command_within() -> Callable[[int], str] | None:
    """Return a function that gives this command line with another --max-overhead; None in other programs."""
    from mcudeploy.cli.proposed import command_line

    arguments, root = typed_arguments(), get_current_context().find_root().command
    if not arguments or not isinstance(root, click.Group):
        return None
    return lambda limit: command_line(arguments, root.commands, f"--max-overhead {limit}")


def page_options(command: Command) -> Command:
    """Add --report and --trace, packed as `pages: Pages`; `files_option` stands above."""

    @click.option(
        "--report",
        metavar="FILE.html",
        type=NewFile(".html", ".htm"),
        help="Write one page with everything: budgets, arena, RAM against latency, operators.",
    )
    @click.option(
        "--trace",
        metavar="FILE.json",
        type=NewFile(),
        help="Write the steps over time, for Perfetto or chrome://tracing.",
    )
    @functools.wraps(command)
    def packed(*args: Any, report: Path | None, trace: Path | None, **rest: Any) -> None:
        command(*args, pages=Pages(report, trace), **rest)

    return packed
