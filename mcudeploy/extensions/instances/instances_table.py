"""The RAM of instances in the report of `build`."""

from __future__ import annotations

from mcudeploy.cli.output import Values
from mcudeploy.cli.table_grids import ReportSection
from mcudeploy.common.text import plain


def instances_facts(report: Values) -> list[tuple[str, str]]:
    """Return the arenas of all instances, and the share of each."""
    known = report.get("instances")
    if not known:
        return []
    arenas = ", ".join(f"{plain(memory)} {size:,} B" for memory, size in known["arenas"].items())
    text = f"{arenas}: arena and states; {known['state_bytes']:,} B of states each"
    return [(f"{known['count']} instances", text)]


SECTION = ReportSection(lambda _console, _report: None, instances_facts)
