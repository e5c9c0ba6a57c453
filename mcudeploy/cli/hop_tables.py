"""Windows that move by a hop, as tables: the rows that a run computes, and RAM against time."""

from __future__ import annotations

from rich.console import Console

from mcudeploy.cli.latencies import milliseconds_text
from mcudeploy.cli.output import Values, cell, is_verbose
from mcudeploy.cli.table_grids import table_of
from mcudeploy.common.text import count_text


def hop_facts(report: Values) -> list[tuple[str, str]]:
    """Return facts about the window: its size, and the work of a run beside that of a whole window."""
    window = report.get("window")
    if not window:
        return []
    size = f"{count_text(window['rows'], 'row')}, {window['hop']} of them new in each run"
    share = f"{report['macs'] / (window['macs'] or 1):.1%} of the {window['macs']:,} of a window"
    facts = [
        ("window", f"{size}; full after {count_text(window['runs_to_fill'], 'run')}"),
        ("MACs of a run", f"{report['macs']:,}, {share}" if window["macs"] else ""),
    ]
    if window["whole"]:
        whole = window["whole"]
        latency = milliseconds_text(whole["latency"])
        facts.append(("whole windows", f"arena {whole['arena_bytes']:,} B unsplit, {latency}, estimated"))
    ends = (f"{name}: {why}" for name, why in window["computed_whole"].items())
    return [*facts, ("computed whole", "; ".join(ends))]


def hop_curve(console: Console, report: Values) -> None:
    """Print RAM against time for several choices of rows to keep; with --verbose, the rows of operators."""
    window = report.get("window")
    if not window:
        return
    if is_verbose():
        rows = table_of("operator", "rows>", "computed>", "kept>")
        for each in window["operators"]:
            rows.add_row(*(cell(each[key]) for key in ("name", "rows", "computed_rows", "kept_rows")))
        console.print(rows)
    if not window["curve"]:
        return
    table = table_of("rows kept of", "states>", "arena>", "MACs>", "latency>", "")
    for each in window["curve"]:
        texts = (
            _kept(each["keeping"]),
            f"{each['state_bytes']:,} B",
            f"{each['arena_bytes']:,} B",
            f"{each['macs']:,}",
            milliseconds_text(each["latency"]),
            "chosen" if each["keeping"] == window["keeping"] else "",
        )
        table.add_row(*map(cell, texts))
    console.print(table)


def _kept(keeping: Values) -> str:
    """Return the number of tensors whose rows are kept, beside the input."""
    if not keeping:
        return "the input"
    last = sum(which == "last" for which in keeping.values())
    some = f", {last} without those at the start" if last else ""
    return f"the input, {count_text(len(keeping), 'tensor')}{some}"
