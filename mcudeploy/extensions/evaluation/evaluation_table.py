"""The report of `evaluate` for people."""

from __future__ import annotations

from rich.console import Console

from mcudeploy.cli.output import Values, cell
from mcudeploy.cli.result_tables import warnings
from mcudeploy.cli.table_grids import facts, table_of
from mcudeploy.common.text import count_text
from mcudeploy.report.wording import EVALUATED, class_name, percent, quality_texts, verdict_text

_MOST_CLASSES, _MOST_SAMPLES = 20, 8
"""Rows of the tables of classes and of the worst samples."""


def evaluate(console: Console, report: Values) -> None:
    """Print the figures of every model, their agreement, each class, the worst samples, and the verdict."""
    _models(console, report)
    _agreement(console, report)
    _classes(console, report)
    _worst(console, report)
    if report["layers"]:
        layers = table_of("most is lost at", "operator", "SQNR>", "SQNR of its inputs>")
        for one in report["layers"]:
            layers.add_row(
                *map(
                    cell, (one["node"], one["op"], _decibels(one["sqnr_db"]), _decibels(one["input_sqnr_db"]))
                )
            )
        console.print(layers)
    run = report["run"]
    latency = run["latency"]
    facts(
        console,
        [
            ("task", f"{report['task']}, output {report['output']}"),
            ("samples", f"{report['samples']:,} on {count_text(report['devices'], 'device')}"),
            ("arena", f"{run['arena_bytes']:,} B"),
            ("latency", f"{latency['milliseconds']:,.3f} ms" if latency else ""),
        ],
    )
    for failure in report["failures"]:
        console.print(cell(failure, "red"), soft_wrap=True)
    warnings(console, report)
    console.print(cell(verdict_text(report), "bold"))


def _models(console: Console, report: Values) -> None:
    rows = {EVALUATED[one["model"]]: quality_texts(report, one) for one in report["models"]}
    names = [name for name in next(iter(rows.values())) if any(texts[name] for texts in rows.values())]
    if not names:
        return
    table = table_of("", *(f"{name}>" for name in names))
    for title, texts in rows.items():
        table.add_row(*map(cell, (title, *(texts[name] for name in names))))
    console.print(table)


def _agreement(console: Console, report: Values) -> None:
    table = table_of("compared", "same class>", "lost>", "gained>", "equal outputs>", "largest difference>")
    for one in report["agreement"]:
        first, second = (EVALUATED[name] for name in one["models"])
        table.add_row(
            *map(
                cell,
                (
                    f"{first}, {second}",
                    percent(one["same_class"]),
                    "" if one["lost"] is None else f"{one['lost']:,}",
                    "" if one["gained"] is None else f"{one['gained']:,}",
                    f"{one['equal_outputs']:,}",
                    f"{one['largest_difference']:.4g}",
                ),
            )
        )
    console.print(table)


def _classes(console: Console, report: Values) -> None:
    """The figures of each class on the device, those with the least recall if there are many."""
    classes = report["models"][0]["by_class"]
    if not classes:
        return
    shown = classes
    if len(classes) > _MOST_CLASSES:
        present = [it for it in classes if it["recall"] is not None]
        shown = sorted(present, key=lambda it: it["recall"])[:_MOST_CLASSES]
    table = table_of("class", "samples>", "precision>", "recall>", "F1>")
    for one in shown:
        shares = (percent(one[key]) for key in ("precision", "recall", "f1"))
        table.add_row(*map(cell, (class_name(report, one["class"]), f"{one['samples']:,}", *shares)))
    console.print(table)
    if len(shown) < len(classes):
        console.print(cell(f"the {len(shown)} of {len(classes)} classes with the least recall"))


def _worst(console: Console, report: Values) -> None:
    worst = report["worst"][:_MOST_SAMPLES]
    if not worst:
        return
    table = table_of("worst samples", "class>", "computed>", "by>")
    for one in worst:
        names = ("" if one[key] is None else class_name(report, one[key]) for key in ("wanted", "computed"))
        table.add_row(*map(cell, (one["name"], *names, f"{one['loss']:.4g}")))
    console.print(table)


def _decibels(value: float) -> str:
    return f"{value:.1f} dB"
