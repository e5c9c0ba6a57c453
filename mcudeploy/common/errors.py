"""All errors shown to the user, one class per stage, each with its exit code.

An error names the thing, the actual value, the requirement and the way out. Nothing else
ends the program: a traceback is a defect of mcudeploy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mcudeploy.common.text import agree, count_text

SHOWN_PATHS: dict[str, str] = {}
"""The text that errors show, by the path of a temporary file: the user's file."""


class DeployError(Exception):
    """Base of all errors shown to the user; `exit_code` ends the process."""

    exit_code = 1

    def __str__(self) -> str:
        text = super().__str__()
        for path, shown in SHOWN_PATHS.items():
            text = text.replace(path, shown)
        return text


class UsageError(DeployError):
    """The command line asks for something impossible."""

    exit_code = 2


class ConfigError(DeployError):
    """A board file, `mcudeploy.toml`, plan file or environment variable is wrong."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """One unsupported node of a model, and the reason."""

    node: str
    op: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason why nodes of a model, all of one operator, are unsupported."""

    nodes: tuple[str, ...]
    op: str
    reason: str

    @property
    def where(self) -> str:
        """The node, or the number of nodes and the first."""
        number = len(self.nodes)
        return self.nodes[0] if number == 1 else f"{count_text(number, 'node')}, first: {self.nodes[0]!r}"

    def __str__(self) -> str:
        number = len(self.nodes)
        if number == 1:
            return f"{self.nodes[0]} ({self.op}): {self.reason}"
        return f"{count_text(number, 'node')} ({self.op}): {self.reason}; first: {self.nodes[0]!r}"


def causes(problems: Iterable[Problem]) -> list[Cause]:
    """Group the problems by operator and reason, in the order of their first node."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        nodes.setdefault((problem.op, problem.reason), []).append(problem.node)
    return [Cause(tuple(names), op, reason) for (op, reason), names in nodes.items()]


class ModelError(DeployError):
    """The model is malformed or contains nodes that are not supported.

    `problems` lists all offending nodes at once; it is empty for a file that cannot be read. `assumed`: the
    notes of the message on sizes that the file leaves open.
    """

    exit_code = 4

    def __init__(
        self, message: str, problems: tuple[Problem, ...] = (), assumed: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.problems, self.assumed = problems, assumed

    @classmethod
    def unsupported(cls, problems: tuple[Problem, ...]) -> ModelError:
        """Return the error for a readable model with unsupported nodes. A traceback lists causes too."""
        number = len(problems)
        error = cls(f"{count_text(number, 'node')} {agree(number, 'is', 'are')} not supported", problems)
        for cause in causes(problems):
            error.add_note(str(cause))
        return error


@dataclass(frozen=True, slots=True)
class Proposal:
    """A tested way to make a model fit: the option or command, and its result.

    `command` is the whole command line with the option, if the original one is known.
    """

    option: str
    says: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.says}:\n    {self.command}" if self.command else f"{self.option}: {self.says}"


class FitError(DeployError):
    """The plan needs more memory than the board has. The message ends with the proposals."""

    exit_code = 5

    def __init__(self, message: str, proposals: tuple[Proposal, ...] = ()) -> None:
        heading = ("This would fit:",) if proposals else ()
        super().__init__("\n".join((message, *heading, *(f"  {each}" for each in proposals))))
        self.reason, self.proposals = message, proposals


class BuildError(DeployError):
    """The toolchain is missing or refused the generated program."""

    exit_code = 6


class BoardNotFoundError(DeployError):
    """No such board, or none is attached."""

    exit_code = 7


class PortError(DeployError):
    """The serial port cannot be opened."""

    exit_code = 8


class FlashError(DeployError):
    """The program could not be written to the board."""

    exit_code = 9


class ProtocolError(DeployError):
    """The board does not answer, or answers what the protocol does not allow."""

    exit_code = 10


class OutputsDifferError(DeployError):
    """The device's outputs differ from the reference."""

    exit_code = 11


class LatencyError(DeployError):
    """No plan keeps the latency limit."""

    exit_code = 12


class BudgetError(DeployError):
    """A model exceeds a budget of `gate`, or its run failed."""

    exit_code = 13


class DivergedError(DeployError):
    """A training step made a loss or a parameter that is not finite."""

    exit_code = 14
