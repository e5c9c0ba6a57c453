"""Subgraphs that a run calls, written out: CALL becomes the operators of the subgraph.

Calls of one subgraph share its states: each call continues from the previous one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mcudeploy.frontend.tflite.contents import Contents, TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.operator_options import CALLS


def written_out(contents: Contents) -> Contents:
    """The contents without calls, as far as they fit: calls that do not, and calls inside of calls, stay."""
    if all(it.op != "CALL" for it in contents.operators):
        return contents
    draft = _CallDraft(list(contents.tensors))
    for operator in contents.operators:
        called = contents.called.get(_subgraph(operator)) if operator.op == "CALL" else None
        if called is not None and _fits(contents, operator, called):
            draft.call(operator, called)
        else:
            draft.add(operator)
    left = {_subgraph(it) for it in draft.operators if it.op in CALLS}
    return replace(
        contents,
        tensors=tuple(draft.tensors),
        operators=tuple(draft.operators),
        called={number: each for number, each in contents.called.items() if number in left},
        continued=draft.continued,
    )


def _subgraph(operator: TfliteOperator) -> int:
    return operator.integer(CALLS[operator.op])


def _fits(contents: Contents, call: TfliteOperator, called: Contents) -> bool:
    """Whether inputs and outputs of a call have the types and shapes of the subgraph's."""
    for own, inner in ((call.inputs, called.inputs), (call.outputs, called.outputs)):
        if len(own) != len(inner) or min(own, default=0) < 0:
            return False
        pairs = [(contents.tensors[a], called.tensors[b]) for a, b in zip(own, inner, strict=True)]
        if any((a.kind, a.shape, a.scales) != (b.kind, b.shape, b.scales) for a, b in pairs):
            return False
    # A result that is an input or a constant of the subgraph would need a copy.
    made = {number for operator in called.operators for number in operator.outputs}
    return made.issuperset(called.outputs)


@dataclass(slots=True)
class _CallDraft:
    """Tensors and operators so far; `first`: by subgraph, the first operator of its first call, and the
    numbers of its tensors that all calls share.
    """

    tensors: list[TfliteTensor]
    operators: list[TfliteOperator] = field(default_factory=list)
    continued: dict[int, int] = field(default_factory=dict)
    first: dict[int, tuple[int, dict[int, int]]] = field(default_factory=dict)

    def add(self, operator: TfliteOperator) -> None:
        self.operators.append(replace(operator, index=len(self.operators)))

    def call(self, call: TfliteOperator, called: Contents) -> None:
        """Add the operators of a subgraph, which share only constants and variables with other calls."""
        begin = len(self.operators)
        first, shared = self.first.setdefault(_subgraph(call), (begin, {}))
        numbers = dict(zip(called.inputs, call.inputs, strict=True))
        numbers |= zip(called.outputs, call.outputs, strict=True)
        for tensor in called.tensors:
            if tensor.index in numbers:
                continue
            number = shared.get(tensor.index, len(self.tensors))
            if number == len(self.tensors):
                self.tensors.append(replace(tensor, index=number))
            if tensor.data is not None or tensor.variable:
                shared[tensor.index] = number
            numbers[tensor.index] = number
        for at, operator in enumerate(called.operators):
            if begin != first:
                self.continued[begin + at] = first + at
            self.add(_on(operator, numbers))


def _on(operator: TfliteOperator, numbers: Mapping[int, int]) -> TfliteOperator:
    """The operator on other tensors."""
    return replace(
        operator,
        inputs=tuple(numbers.get(number, -1) for number in operator.inputs),
        outputs=tuple(numbers[number] for number in operator.outputs),
    )
