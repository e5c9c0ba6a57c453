"""Final passes over the operators: fusion of clips and of slices of last steps, and the order of states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

import numpy as np

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.ir.graph import GraphIO, Operator, State, Tensor
from mcudeploy.ir.opdef import OperatorDef
from mcudeploy.ops.conv.affine import Affine
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.requantize import STORED
from mcudeploy.ops.scalar.elementwise import Binary, Lut


@dataclass(frozen=True, slots=True, eq=False)
class Tidied:
    """The final operators and outputs, and the reference's value of each tensor."""

    operators: tuple[Operator, ...]
    outputs: tuple[GraphIO, ...]
    references: dict[str, GraphIO]


def tidy(
    operators: Sequence[Operator],
    outputs: Sequence[GraphIO],
    references: Mapping[str, GraphIO],
    tensors: Mapping[str, Tensor],
) -> Tidied:
    """Remove dead operators, and tables that only clip: the operator before them clips instead."""
    wanted = {io.tensor for io in outputs}
    remaining, renamed = _with_clips_fused(alive(operators, wanted), wanted, tensors)
    final_references: dict[str, GraphIO] = {}
    for name, io in references.items():
        if name not in renamed.values():
            final = renamed.get(name, name)
            final_references[final] = replace(io, tensor=final)
    final_outputs = tuple(replace(io, tensor=renamed.get(io.tensor, io.tensor)) for io in outputs)
    return Tidied(tuple(remaining), final_outputs, final_references)


def alive(operators: Sequence[Operator], wanted: set[str]) -> list[Operator]:
    """The operators on which these tensors depend."""
    needed = set(wanted)
    living: list[Operator] = []
    for operator in reversed(operators):
        if operator.output in needed:
            needed.update(operator.inputs)
            living.append(operator)
    return living[::-1]


def _with_clips_fused(
    operators: Sequence[Operator], wanted: set[str], tensors: Mapping[str, Tensor]
) -> tuple[list[Operator], dict[str, str]]:
    """The operators, in which a Lut that only clips is fused into the operator before it.

    This operator must be able to clip, and have no other reader. Also returns, by removed tensor, the tensor
    that holds its values.
    """
    readers = Counter(name for operator in operators for name in operator.inputs)
    result: list[Operator] = []
    producers: dict[str, int] = {}
    renamed: dict[str, str] = {}
    for operator in operators:
        source = operator.inputs[0]
        sole = source in producers and readers[source] == 1 and source not in wanted
        fused = None
        if isinstance(operator.op, Lut) and sole:
            fused = _clipped(result[producers[source]], operator, tensors)
        if fused is not None:
            result[producers[source]] = fused
            renamed[operator.output] = source
            continue
        producers[operator.output] = len(result)
        inputs = tuple(renamed.get(name, name) for name in operator.inputs)
        result.append(replace(operator, inputs=inputs))
    return result, renamed


def _clipped(producer: Operator, table: Operator, tensors: Mapping[str, Tensor]) -> Operator | None:
    """The producer with the table's clip; None if the table is not a clip, or the producer cannot clip."""
    op = producer.op
    quantization = tensors[table.output].quantization
    if not isinstance(op, Affine | Conv2d | Binary) or quantization is None:
        return None
    if tensors[producer.output].quantization != quantization:
        return None
    values = table.constants["table"].astype(np.int32)
    first, last = int(values.min()), int(values.max())
    if not np.array_equal(values, np.clip(STORED, first, last)):
        return None
    least = quantization.scale * (first - quantization.zero_point) if first > -128 else -inf
    most = quantization.scale * (last - quantization.zero_point) if last < 127 else inf
    low, high = (min(max(bound, least), most) for bound in (op.low, op.high))
    nodes = tuple(dict.fromkeys((*producer.onnx_nodes, *table.onnx_nodes)))
    return replace(producer, op=replace(op, low=low, high=high), onnx_nodes=nodes)


def fuse_last_steps(builder: Builder, outputs: tuple[GraphIO, ...]) -> tuple[GraphIO, ...]:
    """Let a recurrent operator write its last step alone if only a slice of that step is read.

    Removes the slice, changes the builder, and returns the outputs with the tensors that they then have.
    """
    reads = Counter(name for operator in builder.operators for name in operator.inputs)
    reads.update(io.tensor for io in outputs)
    producers = {operator.output: operator for operator in builder.operators}
    slices: dict[str, str] = {}
    last_step_ops: dict[str, OperatorDef] = {}
    for operator in builder.operators:
        source = operator.inputs[0]
        if isinstance(operator.op, Slice) and reads[source] == 1 and source in producers:
            op = _last_step_op(operator.op, producers[source], builder)
            if op is not None:
                slices[operator.output], last_step_ops[source] = source, op
    operators: list[Operator] = []
    for operator in builder.operators:
        if operator.output in slices:
            continue
        inputs = tuple(slices.get(name, name) for name in operator.inputs)
        op = last_step_ops.get(operator.output, operator.op)
        operators.append(replace(operator, op=op, inputs=inputs))
    builder.operators = operators
    for last, steps in slices.items():
        builder.tensors[steps] = replace(builder.tensors[last], name=steps)
        builder.references.pop(steps, None)
        if last in builder.references:
            builder.references[steps] = replace(builder.references.pop(last), tensor=steps)
    return tuple(replace(io, tensor=slices.get(io.tensor, io.tensor)) for io in outputs)


def _last_step_op(part: Slice, source: Operator, builder: Builder) -> OperatorDef | None:
    """The operator that writes its last step alone, if `part` selects exactly this step."""
    _, steps, hidden = builder.shape_of(source.output)
    last = source.op.last_state(steps)
    if last is None:
        return None
    step, op = last
    return op if part.out_shape == (1, 1, hidden) and part.start == (0, step, 0) else None


def replaced_after_readers(operators: Sequence[Operator], states: Sequence[State]) -> tuple[Operator, ...]:
    """Let the operator that replaces a state run after all other readers of the state.

    The results of readers on which the operator does not depend become further inputs, which it does not use.
    States that depend on each other need this: otherwise an order may replace one of them before the other is
    computed.
    """
    producers = {operator.output: operator for operator in operators}
    replaced_by = {following: present for state in states for present, following in pairwise(state.chain)}
    result = []
    for operator in operators:
        state = replaced_by.get(operator.output, operator.output)
        if state in operator.inputs:
            needed = set(_ancestors(producers, operator))
            names = _views(operators, state)
            others = [
                it.output
                for it in operators
                if not names.isdisjoint(it.inputs) and it is not operator and it.output not in names | needed
            ]
            operator = replace(operator, inputs=(*operator.inputs, *others))  # noqa: PLW2901
        result.append(operator)
    return _in_order(result)


def _in_order(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Sort the operators topologically, with as few changes of their order as possible."""
    producers = {operator.output: operator for operator in operators}
    ordered = dict[str, Operator]()
    for operator in operators:
        waiting = [operator]
        while waiting:
            last = waiting[-1]
            needed = [producers[name] for name in last.inputs if name in producers and name not in ordered]
            if needed and len(waiting) <= len(operators):  # more are waiting only in a cycle
                waiting.append(needed[0])
            else:
                ordered[waiting.pop().output] = last
    return tuple(ordered.values())


def _views(operators: Sequence[Operator], tensor: str) -> set[str]:
    """A tensor and its views."""
    names = {tensor}
    for operator in operators:
        if operator.op.is_view and operator.inputs[0] in names:
            names.add(operator.output)
    return names


def _ancestors(producers: dict[str, Operator], operator: Operator) -> Iterator[str]:
    """The tensors that an operator depends on."""
    pending, seen = list(operator.inputs), set[str]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            yield name
            pending += producers[name].inputs if name in producers else ()
