"""The commands with their JSON objects as results, for tests of figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcudeploy.commands import build, checking, commands, tune
from mcudeploy.execution.deployment import Deployment
from mcudeploy.report import as_json

Report = Mapping[str, Any]


def _reporting(command: Callable[..., Any]) -> Callable[..., Report]:
    return lambda *args, **named: as_json(command(*args, **named))


run_model = _reporting(commands.run_model)
measure_model = _reporting(commands.measure_model)
flash_board = _reporting(commands.flash_board)
check_model = _reporting(checking.check_model)
fit_model = _reporting(checking.fit_model)
build_models = _reporting(build.build_models)
init_project = _reporting(build.init_project)


def tune_model(*args: Any, **named: Any) -> tuple[Deployment, Report]:
    """Return the deployment too."""
    tuned = tune.tune_model(*args, **named)
    return tuned.made, as_json(tuned)
