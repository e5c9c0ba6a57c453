"""The values of small outputs over a sequence of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

LEAST_RUNS = 4
"""Fewer runs are printed one by one."""
_MOST_ELEMENTS = 12
_BARS = "▁▂▃▄▅▆▇█"
_NOT_FINITE = "!"


@dataclass(frozen=True, slots=True)
class OutputCurve:
    """An element of an output in each run; `reach` is the least and the largest finite value of the whole
    output.
    """

    name: str
    values: tuple[float, ...]
    reach: tuple[float, float]

    @property
    def peak(self) -> int:
        """The run with the largest value; the first one that is not finite, if there is one."""
        not_finite = (run for run, value in enumerate(self.values) if not isfinite(value))
        return next(not_finite, self.values.index(max(self.values)))

    @property
    def summary(self) -> str:
        """The largest value, or the first that is not finite, and its run, in words."""
        if not isfinite(self.values[self.peak]):
            return f"{self.values[self.peak]:g} in run {self.peak}"
        return f"most {self.values[self.peak]:.4g} in run {self.peak}"

    def bars(self, width: int) -> str:
        """Return the curve as at most `width` characters, each for the largest value of some runs.

        It is `!` for runs with a value that is not finite.
        """
        count = min(width, len(self.values))
        ends = [at * len(self.values) // count for at in range(count + 1)]
        low, high = self.reach
        scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
        groups = [self.values[a:b] for a, b in pairwise(ends)]
        return "".join(
            _BARS[round((max(group) - low) * scale)] if all(map(isfinite, group)) else _NOT_FINITE
            for group in groups
        )


def output_curves(outputs: Sequence[Mapping[str, Any]]) -> list[OutputCurve]:
    """Return the curves of a report's outputs; none for few runs and for outputs of many elements."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for output in outputs:
        if output["elements"] <= _MOST_ELEMENTS and output["values"] is not None:
            by_name.setdefault(output["name"], []).append(output)
    return [curve for runs in by_name.values() if len(runs) >= LEAST_RUNS for curve in _of_output(runs)]


def _of_output(runs: Sequence[Mapping[str, Any]]) -> list[OutputCurve]:
    rows = [[float(value) for value in run["values"]] for run in runs]
    finite = [value for row in rows for value in row if isfinite(value)]
    reach = min(finite, default=0.0), max(finite, default=0.0)
    labels = {it["index"]: it["label"] for run in runs for it in run["top"] if it["label"] is not None}
    name = runs[0]["name"]
    return [
        OutputCurve(f"{name}[{at}]" + (f" {labels[at]}" if at in labels else ""), values, reach)
        for at, values in enumerate(zip(*rows, strict=True))
    ]
