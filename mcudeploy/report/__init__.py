"""Reports of commands: JSON objects and charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def as_json(result: Any) -> Mapping[str, Any]:
    """Return the JSON object that a command prints for its result; a mapping is one already."""
    if isinstance(result, Mapping):
        return result
    from mcudeploy.execution.results import Checked  # noqa: PLC0415 - `--help` and `boards` have no results

    if isinstance(result, Checked):
        from mcudeploy.report.support import check  # noqa: PLC0415 - loads neither toolchain nor generator

        return check(result)
    from mcudeploy.report.objects import report_of  # noqa: PLC0415

    return report_of(result)
