"""The values of small outputs over a sequence of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

LEAST_RUNS = 4
"""Fewer runs are printed one by one."""
_MOST_ELEMENTS = 12
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class OutputCurve:
    """An element of an output in each run; `reach` is the least and the largest value of the whole output."""

    name: str
    values: tuple[float, ...]
    reach: tuple[float, float]

    @property
    def peak(self) -> int:
        """The run with the largest value."""
        return self.values.index(max(self.values))

    @property
    def summary(self) -> str:
        """The largest value and its run, in words."""
        return f"most {self.values[self.peak]:.4g} in run {self.peak}"

    def bars(self, width: int) -> str:
        """The curve in at most `width` letters, each with the largest value of some runs."""
        count = min(width, len(self.values))
        ends = [at * len(self.values) // count for at in range(count + 1)]
        low, high = self.reach
        scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
        groups = pairwise(ends)
        return "".join(_BARS[round((max(self.values[a:b]) - low) * scale)] for a, b in groups)


def output_curves(outputs: Sequence[Mapping[str, Any]]) -> list[OutputCurve]:
    """The curves of a report's outputs; none for few runs and for outputs of many elements."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for output in outputs:
        if output["elements"] <= _MOST_ELEMENTS and output["values"] is not None:
            by_name.setdefault(output["name"], []).append(output)
    return [curve for runs in by_name.values() if len(runs) >= LEAST_RUNS for curve in _of_output(runs)]


def _of_output(runs: Sequence[Mapping[str, Any]]) -> list[OutputCurve]:
    rows = [[float(value) for value in run["values"]] for run in runs]
    reach = min(map(min, rows)), max(map(max, rows))
    labels = {it["index"]: it["label"] for run in runs for it in run["top"] if it["label"] is not None}
    name = runs[0]["name"]
    return [
        OutputCurve(f"{name}[{at}]" + (f" {labels[at]}" if at in labels else ""), values, reach)
        for at, values in enumerate(zip(*rows, strict=True))
    ]
