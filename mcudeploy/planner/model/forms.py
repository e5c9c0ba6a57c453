"""Rewrites that prepare a graph for cutting.

These are streamed inputs, vectors as rows, copies in place of some views, and operators that accumulate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from mcudeploy.ir.graph import Graph, Operator, Tensor
from mcudeploy.ir.plan import Rewrites
from mcudeploy.ops.fused.fused import MOST_STAGES, Fused, fused_name, is_stage
from mcudeploy.ops.move.depth_to_space import DepthToSpace
from mcudeploy.ops.move.feed import StreamedInput
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.planner.model.channels import channels_as_rows


def in_form(graph: Graph, has: Rewrites, wanted: Rewrites, whole_inputs: Collection[str] = ()) -> Graph:
    """Return a graph in a form with more rewrites. Raises ValueError if a rewrite would have to be undone.

    `whole_inputs`: as in `stream_inputs`. Inputs are streamed before operators accumulate, so that a streamed
    vector can arrive in parts.
    """
    goes_back = has.streamed > wanted.streamed or (has.accumulating and replace(wanted, fused=()) != has)
    if has.fused or goes_back:
        raise ValueError(f"a graph in the form {has} does not go back to {wanted}")
    if wanted.streamed and not has.streamed:
        graph = stream_inputs(graph, whole_inputs)
    if wanted.accumulating and not has.accumulating:
        graph = accumulate_rows(copy_regrouped_rows(channels_as_rows(graph)))
    return fuse(graph, wanted.fused) if wanted.fused else graph


def fuse(graph: Graph, chains: Collection[tuple[str, ...]]) -> Graph:
    """Return the graph with every chain as one operator, named after its first and last stage.

    Raises ValueError for a chain that the graph does not have.
    """
    by_name = {operator.name: operator for operator in graph.operators}
    _require_chains(graph, by_name, chains)
    ends = {names[-1]: names for names in chains}
    inner = {name for names in chains for name in names[:-1]}
    tensors = dict(graph.tensors)
    operators = []
    for operator in graph.operators:
        if operator.name in inner:
            continue
        if operator.name in ends:
            stages = tuple(by_name[name] for name in ends[operator.name])
            between = tuple(tensors.pop(stage.output) for stage in stages[:-1])
            operators.append(_fused(stages, between))
        else:
            operators.append(operator)
    references = {name: io for name, io in graph.references.items() if io.tensor in tensors}
    return replace(graph, operators=tuple(operators), tensors=tensors, references=references)


def _require_chains(
    graph: Graph, by_name: Mapping[str, Operator], chains: Collection[tuple[str, ...]]
) -> None:
    """Raise ValueError unless each stage of a chain is the only reader of the stage before, and of nothing
    else.
    """
    readers, wanted = graph.readers(), {io.tensor for io in graph.outputs}
    used, taken = set[str](), set(by_name)
    for names in chains:
        if not 1 < len(names) <= MOST_STAGES:
            raise ValueError(f"a chain to fuse has 2 to {MOST_STAGES} operators, not {len(names)}")
        unfit = next((it for it in names if it not in by_name or not is_stage(graph, by_name[it])), None)
        if unfit is not None:
            raise ValueError(f"there is no operator {unfit} to fuse")
        for name, following in pairwise(names):
            output, reader = by_name[name].output, by_name[following]
            alone = [graph.operators[at] for at in readers[output]] == [reader] and output not in wanted
            if reader.inputs != (output,) or not alone:
                raise ValueError(f"{name} and {following} are not a chain to fuse")
        if not used.isdisjoint(names):
            raise ValueError("an operator is in two chains to fuse")
        used.update(names)
        if fused_name(names) in taken:
            raise ValueError(f"an operator has the name of a chain to fuse, {fused_name(names)}")
        taken.add(fused_name(names))


@lru_cache(maxsize=512)  # the forms of a graph share operators
def _fused(stages: tuple[Operator, ...], between: tuple[Tensor, ...]) -> Operator:
    nodes = tuple(node for stage in stages for node in stage.onnx_nodes)
    name = fused_name([stage.name for stage in stages])
    return Operator(name, Fused(stages, between), stages[0].inputs, stages[-1].output, onnx_nodes=nodes)


def stream_inputs(graph: Graph, whole: Collection[str] = ()) -> Graph:
    """Return the graph with an operator before every input that requests its rows from the application.

    Inputs with a name in `whole` stay as they are.
    """
    feeds = tuple(
        Operator(f"feed_{io.tensor}", StreamedInput(i, graph.tensors[io.tensor].shape), (), io.tensor)
        for i, io in enumerate(graph.own_inputs())
        if io.name not in whole
    )
    return replace(graph, operators=feeds + graph.operators)


def copy_regrouped_rows(graph: Graph) -> Graph:
    """Return the graph with a copy in place of every view that joins or divides rows.

    A view needs its input whole; a copy passes on the rows of a block. A transposed convolution in one
    dimension ends with such a view.
    """
    return replace(graph, operators=tuple(_copying(graph, operator) for operator in graph.operators))


def _copying(graph: Graph, operator: Operator) -> Operator:
    if not operator.op.is_view:
        return operator
    source, output = graph.tensors[operator.inputs[0]], graph.tensors[operator.output]
    few, many = sorted((source.shape[0], output.shape[0]))
    regroups = 1 < few < many and many % few == 0 and source.shape[1] == output.shape[1]
    if not regroups or source.quantization != output.quantization:
        return operator
    if source.shape[:2] == (few, 1):
        return replace(operator, op=DepthToSpace((many // few, 1), (many, output.shape[1])))
    return replace(operator, op=Transpose(output.shape, (0, 1, 2), output.shape))


def accumulate_rows(graph: Graph) -> Graph:
    """Return the graph with every operator that reads all rows of its input once in the accumulating form.

    In one step it computes the same; in parts, its input need not exist whole.
    """
    return replace(graph, operators=tuple(_accumulating(graph, operator) for operator in graph.operators))


def _accumulating(graph: Graph, operator: Operator) -> Operator:
    by_rows = operator.op.by_rows(tuple(graph.tensors[name].shape for name in operator.inputs))
    return operator if by_rows is None else replace(operator, op=by_rows)
