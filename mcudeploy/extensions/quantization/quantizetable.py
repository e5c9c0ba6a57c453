"""The tables of `quantize` for people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from mcudeploy.cli.output import Values, cell
from mcudeploy.cli.table_grids import facts, table_of
from mcudeploy.common.text import count_text, plain

_LONGEST = 64
_CHOICES = ("method", "activations", "weights", "rounding")


def quantize(console: Console, report: Values) -> None:
    """Print methods, outputs, the worst layers, sizes, and the next command."""
    methods = table_of("method", "same class>", "SQNR of outputs>", "largest error>", "")
    for one in report["methods"]:
        chosen = "chosen" if all(one[key] == report[key] for key in _CHOICES) else ""
        weights = {"int4": " int4", "auto": " int4 and int8"}.get(one["weights"], "")
        activations = {"auto": ", int8 and int16", "int16": ", int16"} if report["mixtures"] else {}
        name = one["method"] + activations.get(one["activations"], "")
        name += f",{weights} rounded adaptively" if one["rounding"] == "adaptive" else ""
        figures = (_share(one["top1_agreement"]), _decibels(one["sqnr_db"]), f"{one['max_abs_error']:.4g}")
        methods.add_row(*map(cell, (name, *figures, chosen)))
    console.print(methods)
    if report["mixtures"]:
        console.print(_mixtures(report["mixtures"]))
    if len(report["outputs"]) > 1:
        outputs = table_of("output", "SQNR>", "largest error>")
        for one in report["outputs"]:
            error = f"{one['max_abs_error']:.4g}"
            outputs.add_row(*map(cell, (_short(one["name"]), _decibels(one["sqnr_db"]), error)))
        console.print(outputs)
    if report["layers"]:
        layers = table_of("worst layers", "operator", "SQNR>", "SQNR of its inputs>")
        for one in report["layers"]:
            noises = (_decibels(one["sqnr_db"]), _decibels(one["input_sqnr_db"]))
            layers.add_row(*map(cell, (_short(one["node"]), one["op"], *noises)))
        console.print(layers)
    facts(console, [*_facts(report)])
    for note in report["notes"]:
        console.print(cell(f"note: {note}"), soft_wrap=True)
    console.print(cell(f"next: {report['next']}"), soft_wrap=True)


def _mixtures(mixtures: list[dict[str, Any]]) -> Table:
    """Mixtures of int8 and int16, the fewest layers in int16 first."""
    table = table_of("layers in int16>", "SQNR, nearest weights>", "arena, unsplit>", "latency>", "")
    for one in mixtures:
        time = one["latency"]
        figures = (
            _decibels(one["sqnr_db"]),
            f"{one['arena_bytes']:,} B",
            f"{time['value']:,} {time['unit']}",
        )
        chosen = "chosen" if one["chosen"] else ""
        table.add_row(*map(cell, (f"{len(one['int16_nodes']):,}", *figures, chosen)))
    return table


def _facts(report: Values) -> list[tuple[str, str]]:
    used, size, accuracy = report["samples"], report["size_bytes"], report["accuracy"]
    comparison = "others" if used["held_out"] else "the same"
    wide = report["weight_outliers"]
    loudest = report["worst_step"]
    return [
        ("method", report["method"]),
        ("weights", f"{report['weights']}, rounding {report['rounding']}"),
        (
            "samples",
            f"{used['found']:,} found; calibrated with {used['calibration']:,}, compared with "
            f"{used['comparison']:,} ({comparison})",
        ),
        ("same class", _share(report["top1_agreement"], "")),
        (
            "accuracy",
            f"{_share(accuracy['float'])} float, {_share(accuracy['int8'])} int8" if accuracy else "",
        ),
        ("in int16", _named(name for it in report["mixtures"] if it["chosen"] for name in it["int16_nodes"])),
        ("int4 weights", _named(report["int4_nodes"])),
        ("most is lost", "" if loudest is None else f"at {plain(_short(loudest))}"),
        ("in float", _in_float(report["float_nodes"])),
        ("wide channels", "; ".join(_wide(it) for it in wide[:3])),
        ("size", f"{size['float']:,} B float, {size['int8']:,} B quantised"),
        ("written", report["output"]),
    ]


def _named(names: Iterable[str]) -> str:
    shown = [plain(_short(name)) for name in names]
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")


def _in_float(nodes: list[dict[str, Any]]) -> str:
    if not nodes:
        return ""
    named = ", ".join(f"{_short(it['nodes'][0])} ({plain(it['op'])})" for it in nodes[:6])
    more = f" and {len(nodes) - 6} more" if len(nodes) > 6 else ""
    return f"{count_text(len(nodes), 'operator')}: {named}{more}"


def _wide(outlier: dict[str, Any]) -> str:
    where = f"{_short(outlier['node'])}, channel {outlier['channel']}"
    return f"{where}: {outlier['times_median']:.0f} times the median"


def _share(value: float | None, none: str = "-") -> str:
    return none if value is None else f"{100 * value:.1f} %"


def _decibels(value: float) -> str:
    return "exact" if math.isinf(value) else f"{value:.1f} dB"


def _short(name: str) -> str:
    """Return the end of a long name: names of nodes differ there."""
    return name if len(name) <= _LONGEST else f"...{name[3 - _LONGEST :]}"
