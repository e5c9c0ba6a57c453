"""The results of commands; `report.as_json` makes the JSON object of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.codegen.arenas import ArenaKind
    from mcudeploy.codegen.program import Program
    from mcudeploy.codegen.selftest import SelfTest
    from mcudeploy.common.errors import Problem
    from mcudeploy.costs.estimate import TimeUnit
    from mcudeploy.execution.counted import Timing
    from mcudeploy.execution.cycles.memory_traffic import MemoryTraffic
    from mcudeploy.execution.cycles.profile import Profile
    from mcudeploy.execution.deployment import Deployment
    from mcudeploy.execution.iterating import Iteration
    from mcudeploy.execution.running import DeviceRun, Observation
    from mcudeploy.ir.plan import Plan
    from mcudeploy.planner.fit import Fit
    from mcudeploy.planner.model.model import Model
    from mcudeploy.toolchain import Firmware
    from mcudeploy.verify.data_faults import InputFacts
    from mcudeploy.verify.verdict import Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """Sizes of a model, and its plans for a board by name. If it is not supported: its unsupported nodes,
    and what was `assumed` of its inputs.

    `period_ms`: the milliseconds between runs, if the user states them; `unit`: that of the plans' times.
    """

    model: Model | None = None
    parameters: int = 0
    arena_bytes: int = 0
    board: Board | None = None
    plans: Mapping[str, tuple[Plan, Model]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    assumed: tuple[str, ...] = ()
    unit: TimeUnit = "instructions"
    period_ms: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """How a model fits boards, the smallest that fits first."""

    fits: Sequence[Fit]


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The chosen plan, its observation, that of the unsplit plan (None if it does not fit), and the number of
    plans that ran.
    """

    deployment: Deployment
    observed: Observation
    unsplit: Observation | None
    tried: int
    iterations: Sequence[Iteration] = ()
    measurers: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class BuiltModel:
    """A model that is ready to be written. `stack_unknown`: the reason if the stack has no bound.

    `facts`: what parts of the library state about the model, by key of its report.
    """

    deployment: Deployment
    program: Program
    verdict: Verdict | None
    firmware: Firmware | None
    selftest: SelfTest | None
    stack_unknown: str | None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """A library that was written. `arenas`: bytes of all models together by memory; `facts`: what its parts
    state, by key of its report.
    """

    files: Sequence[Path]
    models: Sequence[BuiltModel]
    arena: ArenaKind
    arenas: Mapping[str, int]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Initialised:
    """A PlatformIO project that was written. `model`: the path of the model's copy in it."""

    board: Board
    model: str
    files: Sequence[Path]
    directory: Path


@dataclass(frozen=True, slots=True, eq=False)
class Flashed:
    """A program on a board, or for a dry run the commands that would write it there. `firmware`: None for a
    program of the user.
    """

    board: Board
    firmware: Firmware | None
    port: str | None
    flasher: str | None
    commands: Sequence[Sequence[str]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A model that ran on a device. `traffic`, by operator, and `profile`: what the emulator counted for
    `timing`.
    """

    device_run: DeviceRun
    timing: Timing
    traffic: Mapping[str, MemoryTraffic] = field(default_factory=dict)
    profile: Profile | None = None


@dataclass(frozen=True, slots=True, eq=False)
class VerifiedRun:
    """A run whose outputs were compared with the reference. `classes`: their names.

    `inputs`: the values of the inputs that were given; `warnings`: faults of the data. `facts`: what analyses
    state, by key of the report.
    """

    measured: Measured
    verdict: Verdict
    classes: tuple[str, ...] = ()
    inputs: Sequence[InputFacts] = ()
    warnings: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
