"""`gate --against`: the report to compare with, stored or of an earlier revision of the budgets."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import read_regular, work_folder
from mcudeploy.common.programs import output_of
from mcudeploy.common.progress import Progress
from mcudeploy.common.text import plain
from mcudeploy.extensions.evaluation.gate import read_budgets, run_gate
from mcudeploy.extensions.evaluation.gate_report import NAMES, Report, gate_object

_MOST_BYTES = 2**24
_MOST = 2**53
"""The largest value of a figure."""
_UNITS = {name: {"latency": "ms", "accuracy": "%"}.get(name, "B") for name in NAMES}
_GIT_S = 300.0
"""Time limit of a call of git."""


def base_figures(base: str, file: Path, progress: Progress) -> dict[tuple[str, str], float]:
    """Return figures to compare with, by the names of budget and figure, of budgets whose name is unique.

    `base` is a report, or a revision of git at which the budgets of `file` run. Raises UsageError if it is
    neither.
    """
    path = Path(base)
    if path.is_file():
        try:
            return _figures(json.loads(read_regular(path, _MOST_BYTES)))
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise UsageError(f"{base!r} is not a report of `mcudeploy gate --json`") from error
    with work_folder("mcudeploy-") as folder:
        budgets = read_budgets(_checked_out(base, file.resolve(), folder))
        return _figures(gate_object(run_gate(budgets, progress)))


def _figures(report: Report) -> dict[tuple[str, str], float]:
    results = report["results"]
    names = Counter(it["name"] for it in results)
    return {
        (it["name"], each["figure"]): _value(each)
        for it in results
        for each in it["figures"]
        if names[it["name"]] == 1
    }


def _value(figure: Report) -> float:
    """The value of a figure. Raises ValueError for one that no run can have."""
    name, value = figure["figure"], figure["value"]
    if figure["unit"] != _UNITS[name] or not 0 <= value <= _MOST:
        raise ValueError(f"{name} is {value}")
    return float(value)


def _checked_out(revision: str, file: Path, folder: Path) -> Path:
    """Write the repository of a file as it is at a revision into a folder; return the file there."""
    where, name = f"--against {revision!r}", plain(file.name)
    fault = f"{where}: neither a report of `gate --json` nor a revision of git with {name}"
    try:
        top = _git(file.parent, "rev-parse", "--show-toplevel").decode().strip()
        archive = _git(Path(top), "archive", "--format=tar", "--end-of-options", revision)
        path = folder / file.relative_to(Path(top).resolve())
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise UsageError(fault) from error
    if not archive:
        raise UsageError(fault)
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as content:
            content.extractall(folder, filter=_inside)
    except tarfile.TarError as error:
        raise UsageError(f"{where}: the files of that revision cannot be unpacked: {error}") from error
    if not path.is_file():
        raise UsageError(fault)
    return path


def _inside(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """A file to unpack; None for a link that leads out of the repository."""
    try:
        return tarfile.data_filter(member, folder)
    except (tarfile.AbsoluteLinkError, tarfile.LinkOutsideDestinationError):
        return None


def _git(folder: Path, *arguments: str) -> bytes:
    return output_of(["git", "-C", str(folder), *arguments], _GIT_S)
