"""`mcudeploy.tune`, `measure` and `flash`: what these commands do, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Unpack

from mcudeploy.commands import commands as api
from mcudeploy.commands import tune as tuning
from mcudeploy.commands.keywords import (
    Choices,
    Named,
    board_of,
    checked,
    options_of,
    with_keywords,
)
from mcudeploy.commands.python import PlanResult, Report
from mcudeploy.device.target import Target
from mcudeploy.report import as_json

_Timing = Literal["instructions", "cycles-model", "traffic"]


@with_keywords
def tune(
    model: str | Path,
    board: Named,
    *,
    emulate: bool = False,
    port: str | None = None,
    **choices: Unpack[Choices],
) -> PlanResult:
    """Search for the plan with the least RAM, timing parts of the model on the device. Raises FitError if
    there is no room.
    """
    target = Target(board_of(board), port, emulate)
    tuned = tuning.tune_model(Path(model), [target], options_of(choices))
    report = as_json(tuned)
    return PlanResult(report["arena_bytes"], report["unsplit_arena_bytes"], report, tuned.deployment, choices)


@with_keywords
def measure(
    model: str | Path,
    board: Named = "host",
    *,
    emulate: bool = False,
    port: str | None = None,
    timing: _Timing = "instructions",
    **choices: Unpack[Choices],
) -> Report:
    """Time every operator of a model on the device: the object of `measure --json`."""
    checked("timing", timing, _Timing)
    target = Target(board_of(board), port, emulate)
    return as_json(api.measure_model(Path(model), target, options_of(choices), timing=timing))


@with_keywords
def flash(
    model: str | Path | None,
    board: Named,
    *,
    emulate: bool = False,
    port: str | None = None,
    dry_run: bool = False,
    **choices: Unpack[Choices],
) -> Report:
    """Write a model's firmware to the board, or with None the measurer alone: the object of `flash --json`.
    `dry_run` builds it, and lists the commands that would write the board.
    """
    target = Target(board_of(board), port, emulate)
    path = None if model is None else Path(model)
    return as_json(api.flash_board(path, target, options_of(choices), dry_run))
