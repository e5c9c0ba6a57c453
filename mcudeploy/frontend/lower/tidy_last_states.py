"""Recurrent operators of which only the last state is read: they compute it alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.ir.graph import GraphIO, Operator
from mcudeploy.ops.lstm_int8 import LstmInt8
from mcudeploy.ops.lstm_int16 import LstmInt16
from mcudeploy.ops.move import Slice
from mcudeploy.ops.recurrent import Recurrent


def last_states_alone(builder: Builder, outputs: tuple[GraphIO, ...]) -> tuple[GraphIO, ...]:
    """Replace a slice of the last state if nothing else reads the steps; return the outputs."""
    reads = Counter(name for operator in builder.operators for name in operator.inputs)
    reads.update(border.tensor for border in outputs)
    made = {operator.output: operator for operator in builder.operators}
    slices = {
        operator.output: operator.inputs[0]
        for operator in builder.operators
        if isinstance(operator.op, Slice)
        and reads[operator.inputs[0]] == 1
        and _is_last(operator.op, made.get(operator.inputs[0]), builder)
    }
    operators: list[Operator] = []
    for operator in builder.operators:
        if operator.output in slices:
            continue
        if operator.output in slices.values():
            assert isinstance(operator.op, Recurrent | LstmInt8 | LstmInt16)
            operator = replace(operator, op=replace(operator.op, result="last"))  # noqa: PLW2901
        inputs = tuple(slices.get(name, name) for name in operator.inputs)
        operators.append(replace(operator, inputs=inputs))
    builder.operators = operators
    for last, steps in slices.items():
        builder.tensors[steps] = replace(builder.tensors[last], name=steps)
        builder.references.pop(steps, None)
        if last in builder.references:
            builder.references[steps] = replace(builder.references.pop(last), tensor=steps)
    return tuple(replace(border, tensor=slices.get(border.tensor, border.tensor)) for border in outputs)


def _is_last(part: Slice, source: Operator | None, builder: Builder) -> bool:
    """Whether a slice selects the state after the last step of a recurrent operator."""
    if (
        source is None
        or not isinstance(source.op, Recurrent | LstmInt8 | LstmInt16)
        or source.op.result != "steps"
    ):
        return False
    _, steps, hidden = builder.shape_of(source.output)
    last = 0 if isinstance(source.op, Recurrent) and source.op.reverse else steps - 1
    return part.out_shape == (1, 1, hidden) and part.start == (0, last, 0)
