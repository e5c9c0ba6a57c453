"""Which rows to keep: from everything that saves work to the input alone.

A kept row costs memory, and saves the work of computing it again. From the choice that keeps all rows, steps
lead to the one that keeps the input only. Each step drops the rows of one tensor, or those at its start, that
cost the most bytes for each multiply-accumulate that they save.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from mcudeploy.ir.graph import Graph, KeptRows
from mcudeploy.planner.hop.moving_window import MovingWindow

Keeping = Mapping[str, KeptRows]
"""The tensors whose rows are kept, and which."""

_MOST_STATES = 16
"""Above this number of states, only the first ones are kept or dropped together."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """Rows to keep, their bytes, and the work of a run: multiply-accumulates, or elements without them."""

    keeping: Keeping
    state_bytes: int
    work: float


def choices(window: MovingWindow, most: int) -> list[Keeping]:
    """Return up to `most` choices of rows to keep, those that keep the most bytes first."""
    path = list(_path(window))
    front: list[_Choice] = []
    for each in sorted(path, key=lambda it: (it.work, it.state_bytes)):
        if not front or each.state_bytes < front[-1].state_bytes:
            front.append(each)
    if len(front) > most:
        places = {round(at * (len(front) - 1) / (most - 1)) for at in range(most)}
        front = [front[at] for at in sorted(places)]
    return [each.keeping for each in front]


def _path(window: MovingWindow) -> Iterator[_Choice]:
    costs = _row_costs(window.graph)
    last: KeptRows = "last"

    def choice(keeping: Keeping) -> _Choice:
        rows = window.keeps(keeping).rows
        tensors = window.graph.tensors
        size = sum(len(each.stored) * tensors[name].row_bytes for name, each in rows.items() if each.kept)
        return _Choice(keeping, size, sum(each.count * costs[name] for name, each in rows.items()))

    current = choice(dict.fromkeys(window.states, "all"))
    yield current
    yield choice(dict.fromkeys(window.states, last))
    if len(window.states) > _MOST_STATES:
        for count in range(len(window.states)):
            yield choice(dict.fromkeys(window.states[:count], "all"))
            yield choice(dict.fromkeys(window.states[:count], last))
        return
    while current.keeping:
        others = [choice(each) for each in _fewer(current.keeping)]
        current = max(others, key=lambda it: _gain(current, it))
        yield current


def _fewer(keeping: Keeping) -> Iterator[Keeping]:
    for name, rows in keeping.items():
        if rows == "all":
            yield {**keeping, name: "last"}
        yield {other: its for other, its in keeping.items() if other != name}


def _gain(before: _Choice, after: _Choice) -> tuple[bool, float]:
    """Return the saved bytes for each unit of added work; choices that save none come last."""
    fewer_bytes = before.state_bytes - after.state_bytes
    return fewer_bytes > 0, fewer_bytes / max(after.work - before.work, 1.0)


def _row_costs(graph: Graph) -> dict[str, float]:
    """Return the work of a row of each tensor."""
    costs = {io.tensor: 0.0 for io in graph.inputs}
    for operator in graph.operators:
        rows, cols, channels = graph.tensors[operator.output].shape
        macs = graph.loops(operator).macs()
        costs[operator.output] = macs / rows if macs else float(prod((cols, channels)))
    return costs
