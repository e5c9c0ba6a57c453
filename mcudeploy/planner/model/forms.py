"""Rewrites that make a graph ready to be cut: fed inputs, vectors as rows, operators that accumulate."""

from __future__ import annotations

from dataclasses import replace

from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.plan import Rewrites
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.feed import StreamedInput
from mcudeploy.ops.pool import AveragePool
from mcudeploy.planner.model.channels import channels_as_rows


def in_form(graph: Graph, has: Rewrites, wanted: Rewrites) -> Graph:
    """A graph of one form in another that has more. Raises ValueError where it would have to go back.

    Inputs are fed before operators accumulate: a vector that is fed may be fed in parts then.
    """
    if has.streamed > wanted.streamed or (has.accumulating and has != wanted):
        raise ValueError(f"a graph in the form {has} does not go back to {wanted}")
    if wanted.streamed and not has.streamed:
        graph = stream_inputs(graph)
    if wanted.accumulating and not has.accumulating:
        graph = accumulate_rows(channels_as_rows(graph))
    return graph


def stream_inputs(graph: Graph) -> Graph:
    """The graph with an operator in front of every input that asks the application for its rows."""
    feeds = tuple(
        Operator(
            f"feed_{border.tensor}", StreamedInput(i, graph.tensors[border.tensor].shape), (), border.tensor
        )
        for i, border in enumerate(graph.own_inputs())
    )
    return replace(graph, operators=feeds + graph.operators)


def accumulate_rows(graph: Graph) -> Graph:
    """The graph with every operator that reads all rows of its input once in the form that accumulates.

    Taken in one step it is the same; taken in parts, the tensor in front of it need not exist whole.
    """
    return replace(graph, operators=tuple(_accumulating(graph, operator) for operator in graph.operators))


def _accumulating(graph: Graph, operator: Operator) -> Operator:
    if not isinstance(operator.op, Conv2d | AveragePool):
        return operator
    by_rows = operator.op.by_rows(graph.tensors[operator.inputs[0]].shape)
    return operator if by_rows is None else replace(operator, op=by_rows)
