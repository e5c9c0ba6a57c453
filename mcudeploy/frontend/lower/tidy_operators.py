"""Final passes over the operators: they fuse clamps and last states into producers, and order the replacement
of states.
"""

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
    """The final operators and outputs, and the values of the reference by tensor."""

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
    remaining, renamed = _clips_fused(alive(operators, wanted), wanted, tensors)
    results: dict[str, GraphIO] = {}
    for name, io in references.items():
        if name not in renamed.values():
            final = renamed.get(name, name)
            results[final] = replace(io, tensor=final)
    ends = tuple(replace(io, tensor=renamed.get(io.tensor, io.tensor)) for io in outputs)
    return Tidied(tuple(remaining), ends, results)


def alive(operators: Sequence[Operator], wanted: set[str]) -> list[Operator]:
    """The operators on which these tensors depend."""
    needed = set(wanted)
    living: list[Operator] = []
    for operator in reversed(operators):
        if operator.output in needed:
            needed.update(operator.inputs)
            living.append(operator)
    return living[::-1]


def _clips_fused(
    operators: Sequence[Operator], wanted: set[str], tensors: Mapping[str, Tensor]
) -> tuple[list[Operator], dict[str, str]]:
    """Fuse a Lut that only clamps into its producer, if that has a clip and no other reader.

    Also returns the removed tensors, each with the name of the tensor that holds its values.
    """
    readers: dict[str, int] = {}
    for operator in operators:
        for name in operator.inputs:
            readers[name] = readers.get(name, 0) + 1
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
    """The producer with the table's clamp; None if the table is not a clamp or the producer has no clip."""
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


def last_states_alone(builder: Builder, outputs: tuple[GraphIO, ...]) -> tuple[GraphIO, ...]:
    """Replace a slice of the last state if nothing else reads the steps; return the outputs."""
    reads = Counter(name for operator in builder.operators for name in operator.inputs)
    reads.update(io.tensor for io in outputs)
    producers = {operator.output: operator for operator in builder.operators}
    slices: dict[str, str] = {}
    alone: dict[str, OperatorDef] = {}
    for operator in builder.operators:
        source = operator.inputs[0]
        if isinstance(operator.op, Slice) and reads[source] == 1 and source in producers:
            op = _last_state(operator.op, producers[source], builder)
            if op is not None:
                slices[operator.output], alone[source] = source, op
    operators: list[Operator] = []
    for operator in builder.operators:
        if operator.output in slices:
            continue
        inputs = tuple(slices.get(name, name) for name in operator.inputs)
        operators.append(replace(operator, op=alone.get(operator.output, operator.op), inputs=inputs))
    builder.operators = operators
    for last, steps in slices.items():
        builder.tensors[steps] = replace(builder.tensors[last], name=steps)
        builder.references.pop(steps, None)
        if last in builder.references:
            builder.references[steps] = replace(builder.references.pop(last), tensor=steps)
    return tuple(replace(io, tensor=slices.get(io.tensor, io.tensor)) for io in outputs)


def _last_state(part: Slice, source: Operator, builder: Builder) -> OperatorDef | None:
    """The operator of the last state alone, if a slice selects it from all states."""
    _, steps, hidden = builder.shape_of(source.output)
    last = source.op.last_state(steps)
    if last is None:
        return None
    step, op = last
    return op if part.out_shape == (1, 1, hidden) and part.start == (0, step, 0) else None


def replaced_last(operators: Sequence[Operator], states: Sequence[State]) -> tuple[Operator, ...]:
    """Let the operator that replaces a state depend on all other readers of the state.

    It takes the results of those that it does not depend on as further inputs, which it does not use. States
    that depend on each other need this: without it, an order may replace one before the other is computed.
    """
    producers = {operator.output: operator for operator in operators}
    before = {following: present for state in states for present, following in pairwise(state.chain)}
    result = []
    for operator in operators:
        state = before.get(operator.output, operator.output)
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
    """Sort the operators topologically; keep the present order otherwise."""
    producers = {operator.output: operator for operator in operators}
    ordered = dict[str, Operator]()
    for operator in operators:
        waiting = [operator]
        while waiting:
            last = waiting[-1]
            needed = [producers[name] for name in last.inputs if name in producers and name not in ordered]
            if needed and len(waiting) <= len(operators):  # more wait only if they depend on each other
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
