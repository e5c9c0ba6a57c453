"""Chooses the test files that import a module, for `.ci/quick` and faults.py."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


def nearest(files: set[str], root: Path = Path()) -> dict[str, int]:
    """Return the tests of changed files, with the number of their imports: the fewer, the closer.

    These are the changed test files, with 0, and those that import a changed module. Names are relative to
    `root`.
    """
    stems = {name.removesuffix(".py").removesuffix("/__init__") for name in files if name.endswith(".py")}
    modules = {stem.replace("/", ".") for stem in stems}
    distance = dict.fromkeys(filter(_is_test, files), 0)
    for path in (root / "tests").rglob("test_*.py"):
        pairs = _imports(path)
        imported = {name for module, first in pairs for name in (module, f"{module}.{first}")}
        if not modules.isdisjoint(imported):
            distance.setdefault(path.relative_to(root).as_posix(), len(pairs))
    return distance


@cache
def _imports(path: Path) -> list[tuple[str, str]]:
    """Return the modules that a file imports from, each with the first name."""
    return re.findall(r"^from ([\w.]+) import \(?\s*(\w+)", path.read_text("utf-8"), re.M)


def in_order(distance: dict[str, int]) -> list[str]:
    """Return the names by ascending distance."""
    return sorted(distance, key=lambda name: (distance[name], name))


def _is_test(name: str) -> bool:
    return name.startswith("tests/") and Path(name).name.startswith("test_") and name.endswith(".py")
