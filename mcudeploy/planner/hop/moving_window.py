"""A window that moves by a hop: its graph, and the one that computes it from new rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

from mcudeploy.common.errors import UsageError
from mcudeploy.common.text import count_text, printable
from mcudeploy.ir.graph import Graph, Hop, KeptRows
from mcudeploy.planner.hop.computed_rows import ComputedRows, computed_rows
from mcudeploy.planner.hop.rewrite import incremental
from mcudeploy.planner.hop.row_io import window_axis, with_rows
from mcudeploy.planner.hop.steady import Steadiness, UnevenHopError, steady_rows

_MOST_HOPS = 4
"""The number of hops that an error lists."""


@dataclass(frozen=True, slots=True, eq=False)
class MovingWindow:
    """A graph of a whole window, and the rows that a run computes of each of its tensors.

    `keeping`: the tensors whose rows may stay from one run to the next; the input always stays.
    """

    graph: Graph
    steady: Steadiness
    keeping: Mapping[str, KeptRows]
    rows: Mapping[str, ComputedRows]

    @classmethod
    def of(cls, graph: Graph, hop: int) -> MovingWindow:
        """Return the window of a graph that keeps all rows it can. Raises UsageError if there is none."""
        graph = with_rows(graph) if len(graph.inputs) == 1 else graph
        _require_window(graph, hop)
        try:
            steady = steady_rows(graph, hop)
        except UnevenHopError as error:
            raise UsageError(f"{error}. {_hops_that_work(graph)}") from error
        names: dict[str, KeptRows] = dict.fromkeys(steady.tensors, "all")
        everything = cls(graph, steady, names, computed_rows(graph, steady, names))
        return everything.keeps(dict.fromkeys(everything.states, "all"))

    def keeps(self, keeping: Mapping[str, KeptRows]) -> MovingWindow:
        """Return the window that keeps rows of these tensors only."""
        return replace(self, keeping=keeping, rows=computed_rows(self.graph, self.steady, keeping))

    @property
    def states(self) -> tuple[str, ...]:
        """The tensors of which rows are stored, beside the input, in the order of execution."""
        source = self.graph.inputs[0].tensor
        order = (it.output for it in self.graph.operators)
        return tuple(name for name in order if name in self.rows and name != source and self.rows[name].kept)

    def run_graph(self) -> Graph:
        """Return the graph of one run."""
        graph = incremental(self.graph, self.steady, self.rows)
        hop = Hop(
            new_rows=self.hop,
            window_rows=_rows(self.graph),
            keeping=tuple(sorted(self.keeping.items())),
        )
        return replace(graph, hop=hop)

    @property
    def hop(self) -> int:
        """The new rows of a run."""
        return self.steady.tensors[self.graph.inputs[0].tensor].hop


def _hops_that_work(graph: Graph) -> str:
    works = list(islice(filter(lambda hop: _works(graph, hop), range(1, _rows(graph))), _MOST_HOPS))
    if not works:
        return "No hop works for this model"
    return f"Hops that work: {', '.join(map(str, works))}{', ...' if len(works) == _MOST_HOPS else ''}"


def _works(graph: Graph, hop: int) -> bool:
    try:
        steady_rows(graph, hop)
    except UnevenHopError:
        return False
    return True


def _rows(graph: Graph) -> int:
    """Return the rows of the window."""
    return graph.tensors[graph.inputs[0].tensor].shape[0]


def _require_window(graph: Graph, hop: int) -> None:
    """Raise UsageError if the graph has no window that could move by a hop."""
    if hop < 1:
        raise UsageError(f"--hop {hop}: each run takes at least 1 new row")
    if graph.states:
        raise UsageError("--hop is for models without states; this one keeps its own from run to run")
    if len(graph.inputs) != 1:
        raise UsageError(f"--hop is for models with one input; this one has {len(graph.inputs)}")
    (io,) = graph.inputs
    tensor = graph.tensors[io.tensor]
    name, shape = printable(io.name), list(io.shape)
    if tensor.shape[0] == 1 or window_axis(io, tensor) is None:
        raise UsageError(
            f"--hop: the model does not read its input {name!r} {shape} by rows, so that no window can move: "
            "time is the first spatial axis, H of [1, C, H, W] or L of [1, C, L]"
        )
    if hop >= tensor.shape[0]:
        raise UsageError(
            f"--hop {hop}: the input {name!r} {shape} has {count_text(tensor.shape[0], 'row')}, and a hop is "
            "smaller than the window"
        )
