"""Extensions: what a feature, or the package of a user, adds to the core, which asks for it by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcudeploy.common.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_INSTALLED = "mcudeploy.extensions.installed:EXTENSIONS"
_GROUP = "mcudeploy"


@dataclass(frozen=True, slots=True)
class Extension:
    """The additions of a feature. A text is `module:NAME`, a value that is imported at its first use, or "".

    An operator of the core stays that of the core.

    `readers`: functions that change a parsed model in place, and return notes.
    `states`: functions that return the states of a parsed model, and hide in place what declares them.
    `rules`: by domain and operator, functions that replace an ONNX node by others.
    `lowerings`: by domain and operator, functions that emit the operators of an ONNX node.
    `layouts`: by domain and operator, the `Layout` that an ONNX node requires.
    `translations`: by "INT16" or "CUSTOM", and operator, functions that translate a .tflite operator.
    `integer_forms`: functions from a model and the same in float32 to a model on stored integers, or None.
    `ways_out`: by domain, what to do about operators that are not supported.
    `commands`: click commands and groups of the command line.
    `options`: by command of the core, decorators that add options to it.
    `section`: a `ReportSection` of the reports of `build` and `run`.
    `functions`: texts of functions and classes that `import mcudeploy` has by their names.
    """

    name: str
    readers: str = ""
    states: str = ""
    rules: str = ""
    lowerings: str = ""
    layouts: str = ""
    translations: str = ""
    integer_forms: str = ""
    ways_out: str = ""
    commands: str = ""
    options: str = ""
    section: str = ""
    functions: tuple[str, ...] = ()


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the built-in extensions, then those of installed packages, by name.

    Raises UsageError for a package whose extension cannot be imported.
    """
    return (*_value(_INSTALLED), *map(_loaded, _entry_points()))


def added(field: str) -> Iterator[Any]:
    """Yield what each extension adds to a field. Raises UsageError for a value that cannot be imported."""
    for extension in extensions():
        text: str = getattr(extension, field)
        if text:
            yield _value(text)


@cache
def added_by_domain(field: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the tables of a field, joined. Raises UsageError for an operator that two extensions add."""
    joined: dict[str, dict[str, Any]] = {}
    for tables in added(field):
        for domain, table in tables.items():
            known = joined.setdefault(domain, {})
            if twice := sorted(known.keys() & table.keys()):
                raise UsageError(
                    f"two extensions add {field} of {domain or 'ai.onnx'}::{twice[0]}: uninstall one of them"
                )
            known.update(table)
    return joined


def _entry_points() -> list[EntryPoint]:
    """Return the entry points of our group by name.

    Importing `importlib.metadata` takes a fifth of `--help`: it waits until a package may have some.
    """
    if not any(_may_have_entry_points(Path(path)) for path in sys.path):
        return []
    from importlib.metadata import entry_points  # noqa: PLC0415

    return sorted(entry_points(group=_GROUP), key=lambda point: point.name)


def _may_have_entry_points(path: Path) -> bool:
    """Whether packages in a folder of `sys.path` name our group, or it is an archive."""
    if not path.is_dir():
        return path.is_file()
    packages = (each for each in path.iterdir() if each.name.endswith((".dist-info", ".egg-info")))
    texts = (each / "entry_points.txt" for each in packages)
    return any(f"[{_GROUP}]" in text.read_text("utf-8") for text in texts if text.is_file())


def _loaded(point: EntryPoint) -> Extension:
    extension = _value(point.value)
    if not isinstance(extension, Extension):
        raise UsageError(f"entry point {point.name} is {point.value}, which is not an Extension")
    return extension


def _value(text: str) -> Any:
    module, _, name = text.partition(":")
    try:
        return getattr(import_module(module), name)
    except (AttributeError, ImportError, ValueError) as fault:
        raise UsageError(f"{text} of an extension cannot be imported: {fault}") from fault
