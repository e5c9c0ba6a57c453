"""The outputs of a run as a table for people."""

from __future__ import annotations

from rich.console import Console

from mcudeploy.cli.output import Values, cell
from mcudeploy.cli.table_grids import table_of
from mcudeploy.common.text import count_text, plain
from mcudeploy.report.output_curves import output_curves

_MOST_SAMPLES = 3
_CURVE_WIDTH = 60


def outputs(console: Console, report: Values) -> None:
    """Print the largest values of each one-row output and the range of others, for three samples.

    Small outputs of more samples are printed as curves.
    """
    listed = report["outputs"]
    samples = 1 + max((it["sample"] for it in listed), default=0)
    for output in listed:
        if output["sample"] >= _MOST_SAMPLES:
            break
        sample = f"sample {output['sample']}, " if samples > 1 else ""
        shape = ",".join(map(str, output["shape"]))
        name = f"{sample}output {plain(output['name'])} {output['type']} [{shape}]"
        if output["elements"] == max(output["shape"], default=1):
            _top(console, name, output)
        else:
            reach = f"from {output['least']:g} to {output['most']:g}"
            console.print(cell(f"{name}: {count_text(output['elements'], 'value')} {reach}"), soft_wrap=True)
    for curve in output_curves(listed):
        console.print(
            cell(f"{plain(curve.name)}  {curve.bars(_CURVE_WIDTH)}  {curve.summary}"), soft_wrap=True
        )
    if samples > _MOST_SAMPLES:
        console.print(cell(f"{count_text(samples - _MOST_SAMPLES, 'more sample')}: --json lists them"))


def _top(console: Console, name: str, output: Values) -> None:
    labels = any(it["label"] is not None for it in output["top"])
    real = any(it["real"] is not None for it in output["top"])
    headings = ["index>", *(["label"] if labels else []), "value>", *(["stands for>"] if real else [])]
    table = table_of(*headings)
    console.print(cell(name), soft_wrap=True)
    for it in output["top"]:
        texts = [str(it["index"]), *([it["label"]] if labels else []), f"{it['value']:g}"]
        table.add_row(*map(cell, [*texts, *([f"{it['real']:.4g}"] if real else [])]))
    console.print(table)
