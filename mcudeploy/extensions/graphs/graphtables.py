"""Reports of `graph place` and `graph order` as tables for people."""

from __future__ import annotations

from rich.console import Console

from mcudeploy.cli.output import Values
from mcudeploy.cli.table_grids import facts
from mcudeploy.common.text import agree, count_text, plain


def placed(console: Console, report: Values) -> None:
    """Print the `graph place` report."""
    facts(
        console,
        [
            ("rectangles", f"{report['rectangles']:,}"),
            ("capacity", f"{report['capacity']:,} B"),
            ("used", f"{report['used_bytes']:,} B"),
            ("lower bound", f"{report['lower_bound_bytes']:,} B"),
            ("status", plain(report["status"])),
        ],
    )


def schedule(console: Console, report: Values) -> None:
    """Print the `graph order` report."""
    peak, bound, file_order = (
        report[key] for key in ("peak_bytes", "lower_bound_bytes", "file_order_peak_bytes")
    )
    steps = report["steps"]
    gap = f" (gap {peak / bound - 1:.2%})" if peak > bound > 0 else ""
    facts(
        console,
        [
            ("nodes", f"{report['nodes']:,} ({steps:,} of them {agree(steps, 'computes', 'compute')})"),
            ("peak", f"{peak:,} B"),
            ("file order", f"{file_order:,} B"),
            ("lower bound", f"{bound:,} B{gap}"),
            ("status", plain(report["status"])),
            ("method", f"{plain(report['method'])}, {report['seconds']:.1f} s"),
            *_limited_facts(report),
        ],
    )


def _limited_facts(report: Values) -> list[tuple[str, str]]:
    """Return the steps that keep a memory limit, and their cost."""
    if "memory_limit_bytes" not in report:
        return []
    moved, again = report["transfers"], report["recompute"]
    base = max(1.0, report["base_cycles"])
    exposed, repeated = moved["exposed_cycles"], again["cycles"]
    return [
        ("memory limit", f"{report['memory_limit_bytes']:,} B, {report['fast_peak_bytes']:,} B used"),
        ("transfers", f"{moved['count']:,}, {moved['bytes']:,} B"),
        ("exposed", f"{exposed:,.0f} cycles ({exposed / base:.2%})"),
        (
            "recomputed",
            f"{count_text(again['steps'], 'step')}, {repeated:,.0f} cycles ({repeated / base:.2%})",
        ),
        ("overhead", f"{report['overhead_percent']:.2f} % of {base:,.0f} cycles"),
        ("planned by", plain(report["residency_method"])),
        ("exact model", _least(report["least_cycles"], report["cycles"])),
    ]


def _least(least: float | None, cycles: float) -> str:
    """Return how far a plan is from the lower bound of the exact model in its order."""
    return "" if not least else f"lower bound {least:,.0f} cycles; the plan {cycles / least - 1:+.2%}"


def exported(console: Console, report: Values) -> None:
    """Print the `graph export` report."""
    steps = report["steps"]
    facts(
        console,
        [
            ("nodes", f"{report['nodes']:,} ({steps:,} of them {agree(steps, 'computes', 'compute')})"),
            ("tensors", f"{report['tensors']:,}"),
            ("file order", f"{report['file_order_peak_bytes']:,} B"),
        ],
    )


def exported_plan(console: Console, report: Values) -> None:
    """Print the `graph export --plan` report."""
    moves = report["moves"]
    facts(
        console,
        [
            ("rectangles", f"{report['rectangles']:,}"),
            ("lower bound", f"{report['lower_bound_bytes']:,} B"),
            (
                "arena",
                f"{report['arena_bytes']:,} B" + (f", with {count_text(moves, 'move')}" if moves else ""),
            ),
        ],
    )
