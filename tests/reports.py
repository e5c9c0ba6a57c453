"""The commands with their JSON objects as results, for tests of figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import build, checking, commands, tune
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import BuildRequest, RunRequest
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

Report = Mapping[str, Any]
HOST, QUICK = Target(load_board("host")), Options(time_limit=0.5)


def _reporting(command: Callable[..., Any]) -> Callable[..., Report]:
    return lambda *args, **named: as_json(command(*args, **named))


measure_model = _reporting(commands.measure_model)
flash_board = _reporting(commands.flash_board)
check_model = _reporting(checking.check_model)
fit_model = _reporting(checking.fit_model)
init_project = _reporting(build.init_project)


def run_model(
    path: Path, target: Target, options: Options, progress: Progress = SILENT, **asked: Any
) -> Report:
    """The report of a run; `asked`: fields of `RunRequest`."""
    return as_json(commands.run_model(path, target, options, RunRequest(**asked), progress))


def verified(path: Path, target: Target = HOST, options: Options = QUICK, **asked: Any) -> Report:
    """The report of a verified run on random inputs."""
    report = run_model(path, target, options, **{"inputs": [], "expected": [], **asked})
    assert report["verified"], report["reason"]
    return report


def build_models(
    paths: Sequence[Path],
    board: Board,
    options: Options,
    directory: Path,
    progress: Progress = SILENT,
    **asked: Any,
) -> Report:
    """The report of a library; `asked`: fields of `BuildRequest`."""
    return as_json(build.build_models(BuildRequest(paths, board, options, directory, **asked), progress))


def tune_model(*args: Any, **named: Any) -> tuple[Deployment, Report]:
    """Return the deployment too."""
    tuned = tune.tune_model(*args, **named)
    return tuned.deployment, as_json(tuned)
