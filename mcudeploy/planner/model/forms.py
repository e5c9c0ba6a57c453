"""Rewrites that prepare a graph for cutting: streamed inputs, vectors as rows, operators that accumulate."""

from __future__ import annotations

from dataclasses import replace

from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.plan import Rewrites
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.feed import StreamedInput
from mcudeploy.ops.pool import AveragePool
from mcudeploy.planner.model.channels import channels_as_rows


def in_form(graph: Graph, has: Rewrites, wanted: Rewrites) -> Graph:
    """Return a graph in a form with more rewrites. Raises ValueError if a rewrite would have to be undone.

    Inputs are streamed before operators accumulate, so that a streamed vector can arrive in parts.
    """
    if has.streamed > wanted.streamed or (has.accumulating and has != wanted):
        raise ValueError(f"a graph in the form {has} does not go back to {wanted}")
    if wanted.streamed and not has.streamed:
        graph = stream_inputs(graph)
    if wanted.accumulating and not has.accumulating:
        graph = accumulate_rows(channels_as_rows(graph))
    return graph


def stream_inputs(graph: Graph) -> Graph:
    """Return the graph with an operator before every input that requests its rows from the application."""
    feeds = tuple(
        Operator(
            f"feed_{border.tensor}", StreamedInput(i, graph.tensors[border.tensor].shape), (), border.tensor
        )
        for i, border in enumerate(graph.own_inputs())
    )
    return replace(graph, operators=feeds + graph.operators)


def accumulate_rows(graph: Graph) -> Graph:
    """Return the graph with every operator that reads all rows of its input once in the accumulating form.

    In one step it computes the same; in parts, its input need not exist whole.
    """
    return replace(graph, operators=tuple(_accumulating(graph, operator) for operator in graph.operators))


def _accumulating(graph: Graph, operator: Operator) -> Operator:
    if not isinstance(operator.op, Conv2d | AveragePool):
        return operator
    by_rows = operator.op.by_rows(graph.tensors[operator.inputs[0]].shape)
    return operator if by_rows is None else replace(operator, op=by_rows)
