"""mcudeploy: runs an ONNX model on a microcontroller.

`load` reads a model, and the functions do from Python what the commands of their names do: docs/python.md.
Type checkers read `__init__.pyi`.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
_NAMES = {
    "boards.catalogue": ("list_boards",),
    "commands.keywords": ("Choices",),
    "commands.loaded": ("LoadedModel", "load"),
    "commands.ondevice": ("flash", "measure", "tune"),
    "commands.python": ("BuildResult", "PlanResult", "RunResult", "build", "check", "fit", "plan", "run"),
    "common.errors": (
        "BoardNotFoundError",
        "BuildError",
        "ConfigError",
        "DeployError",
        "DivergedError",
        "FitError",
        "FlashError",
        "LatencyError",
        "ModelError",
        "OutputsDifferError",
        "PortError",
        "ProtocolError",
        "UsageError",
    ),
    "extension": ("extension_files",),
}
"""The public names of the core, by their modules; extensions add theirs."""


def _homes() -> dict[str, str]:
    """Return the module of each public name. Raises UsageError for a name that is defined twice."""
    from mcudeploy.common.errors import UsageError  # noqa: PLC0415
    from mcudeploy.extension import extensions  # noqa: PLC0415

    homes = {name: f"mcudeploy.{module}" for module, names in _NAMES.items() for name in names}
    for extension in extensions():
        for text in extension.functions:
            module, _, name = text.partition(":")
            if name in homes:
                raise UsageError(
                    f"{text} is a second mcudeploy.{name}: uninstall the package of {extension.name}"
                )
            homes[name] = module
    return homes


def __getattr__(name: str) -> Any:
    """A public name, imported on first use: the command line starts without it."""
    if name == "__all__":
        return __dir__()
    if not name.startswith("_") and name in (homes := _homes()):
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(homes[name]), name)
    raise AttributeError(f"module 'mcudeploy' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, for completion in a notebook and `import *`."""
    return sorted(("__version__", *_homes()))
