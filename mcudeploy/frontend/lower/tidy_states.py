"""States that are replaced only after all operators have read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from mcudeploy.ir.graph import Operator, State


def replaced_last(operators: Sequence[Operator], states: Sequence[State]) -> tuple[Operator, ...]:
    """Let the operator that replaces a state depend on all other readers of the state.

    It takes the results of those that it does not depend on as further inputs, which it does not use. States
    that depend on each other need this: without it, an order may replace one before the other is computed.
    """
    makers = {operator.output: operator for operator in operators}
    before = {following: held for state in states for held, following in pairwise(state.chain)}
    result = []
    for operator in operators:
        state = before.get(operator.output, operator.output)
        if state in operator.inputs:
            needed = set(_ancestors(makers, operator))
            names = _views(operators, state)
            others = [
                it.output
                for it in operators
                if not names.isdisjoint(it.inputs) and it is not operator and it.output not in names | needed
            ]
            operator = replace(operator, inputs=(*operator.inputs, *others))  # noqa: PLW2901
        result.append(operator)
    return tuple(result)


def _views(operators: Sequence[Operator], tensor: str) -> set[str]:
    """A tensor and its views."""
    names = {tensor}
    for operator in operators:
        if operator.op.is_view and operator.inputs[0] in names:
            names.add(operator.output)
    return names


def _ancestors(makers: dict[str, Operator], operator: Operator) -> Iterator[str]:
    """The tensors that an operator depends on."""
    pending, seen = list(operator.inputs), set[str]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            yield name
            pending += makers[name].inputs if name in makers else ()
