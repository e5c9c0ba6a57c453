"""The task of each form of a model: the same search, with some chains of operators fused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mcudeploy.boards.board import Board
from mcudeploy.costs.tiles import TileSource
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import Plan, Rewrites
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.search.seeds import Chain
from mcudeploy.planner.search.task import SearchTask


@dataclass(frozen=True, slots=True, eq=False)
class FormTasks:
    """The tasks of a model: in the form that is cut, with some of its `fusible` chains fused.

    `source`: of times; `guess`: estimated times, if `source` measures. `unsplit`: the plan to compare with.
    """

    cut: Model
    fusible: tuple[Chain, ...]
    fastest_in: Callable[[Rewrites], Model]
    board: Board
    source: TileSource
    guess: TileSource | None
    unsplit: Plan
    options: Options

    @property
    def runs_plans(self) -> bool:
        """Whether a device measures, so that plans run on it."""
        return self.guess is not None

    def of(self, fused: tuple[Chain, ...]) -> SearchTask:
        """Return the task with these chains fused."""
        model, order, board = self.cut, _order_in(self.cut.graph, self.unsplit), self.board
        if fused:
            model = self.fastest_in(replace(self.cut.form, fused=fused))
            board = board.with_more_stack(model.form.stack_bytes)
            order = _order_with(model.graph, self.cut.graph, order)
        return SearchTask.of(
            model,
            board,
            self.source,
            None if self.guess is None else self.guess(model.graph, ()),
            order=order,
            unsplit=self.unsplit,
            max_overhead=self.options.overhead_limit,
            ram_limit=self.options.ram_limit,
        )


def _order_in(graph: Graph, unsplit: Plan) -> tuple[int, ...]:
    """Return the order of a plan's operators in another form of its graph.

    An operator that is a view in the plan follows the operator that it reads.
    """
    order = [step.operator for step in unsplit.schedule.steps]
    producers = {operator.output: position for position, operator in enumerate(graph.operators)}
    for position, operator in enumerate(graph.operators):
        if not operator.op.is_view and unsplit.graph.operators[position].op.is_view:
            producer = producers.get(operator.inputs[0])
            while producer is not None and producer not in order:
                producer = producers.get(graph.operators[producer].inputs[0])
            order.insert(0 if producer is None else order.index(producer) + 1, position)
    return tuple(order)


def _order_with(fused: Graph, plain: Graph, order: Sequence[int]) -> tuple[int, ...]:
    """Return the order of a graph with fused chains: each runs when its last stage would."""
    outputs = {operator.output: position for position, operator in enumerate(fused.operators)}
    producers = (outputs.get(plain.operators[position].output) for position in order)
    return tuple(position for position in producers if position is not None)
