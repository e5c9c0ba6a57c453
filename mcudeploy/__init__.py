"""mcudeploy: runs an ONNX model on a microcontroller.

`plan`, `build`, `run`, `check` and `fit` do from Python what the commands of these names do: docs/python.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcudeploy.commands.python import (
        BuildResult,
        Choices,
        PlanResult,
        RunResult,
        build,
        check,
        fit,
        plan,
        run,
    )

__version__ = "0.1.0"
__all__ = [
    "BuildResult",
    "Choices",
    "PlanResult",
    "RunResult",
    "__version__",
    "build",
    "check",
    "fit",
    "plan",
    "run",
]


def __getattr__(name: str) -> Any:
    """The functions, imported when the first of them is asked for: the command line starts without them."""
    if name in __all__:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module("mcudeploy.commands.python"), name)
    raise AttributeError(f"module 'mcudeploy' has no attribute {name!r}")
