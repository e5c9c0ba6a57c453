"""mcudeploy: runs an ONNX model on a microcontroller.

`load` reads a model, and the functions do from Python what the commands of their names do: docs/python.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcudeploy.boards.board import list_boards
    from mcudeploy.commands.keywords import Choices
    from mcudeploy.commands.loaded import LoadedModel, load
    from mcudeploy.commands.ondevice import evaluate, flash, measure, quantize, tune
    from mcudeploy.commands.python import (
        BuildResult,
        PlanResult,
        RunResult,
        build,
        check,
        fit,
        plan,
        run,
    )
    from mcudeploy.common.errors import (
        BoardNotFoundError,
        BuildError,
        ConfigError,
        DeployError,
        DivergedError,
        FitError,
        FlashError,
        LatencyError,
        ModelError,
        OutputsDifferError,
        PortError,
        ProtocolError,
        UsageError,
    )
    from mcudeploy.extensions.heads.parameter_exchange import make_parameters
    from mcudeploy.extensions.training.learning import TrainResult, build_training, train

__version__ = "0.1.0"
__all__ = [
    "BoardNotFoundError",
    "BuildError",
    "BuildResult",
    "Choices",
    "ConfigError",
    "DeployError",
    "DivergedError",
    "FitError",
    "FlashError",
    "LatencyError",
    "LoadedModel",
    "ModelError",
    "OutputsDifferError",
    "PlanResult",
    "PortError",
    "ProtocolError",
    "RunResult",
    "TrainResult",
    "UsageError",
    "__version__",
    "build",
    "build_training",
    "check",
    "evaluate",
    "fit",
    "flash",
    "list_boards",
    "load",
    "make_parameters",
    "measure",
    "plan",
    "quantize",
    "run",
    "train",
    "tune",
]
_HOMES = {
    "list_boards": "boards.board",
    "Choices": "commands.keywords",
    **dict.fromkeys(("TrainResult", "build_training", "train"), "extensions.training.learning"),
    **dict.fromkeys(("LoadedModel", "load"), "commands.loaded"),
    "make_parameters": "extensions.heads.parameter_exchange",
    **dict.fromkeys(("evaluate", "flash", "measure", "quantize", "tune"), "commands.ondevice"),
    **dict.fromkeys((name for name in __all__ if name.endswith("Error")), "common.errors"),
}
"""The modules of these names; those of all others are in commands.python."""


def __getattr__(name: str) -> Any:
    """A name of `__all__`, imported on first use: the command line starts without it."""
    if name in __all__:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(f"mcudeploy.{_HOMES.get(name, 'commands.python')}"), name)
    raise AttributeError(f"module 'mcudeploy' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, for completion in a notebook."""
    return __all__
