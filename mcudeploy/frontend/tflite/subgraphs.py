"""Replacement of CALL, IF and WHILE by the operators of their subgraphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mcudeploy.common.text import count_text
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.constant_folding import folded
from mcudeploy.frontend.tflite.contents import Contents, TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.operator_options import CALLS
from mcudeploy.frontend.tflite.tensor_lists import TensorLists


def without_calls(contents: Contents) -> Contents:
    """Replace CALL by the operators of the subgraph. Calls that do not fit, and calls inside calls, stay."""
    if all(it.op != "CALL" for it in contents.operators):
        return contents
    draft = _CallDraft(list(contents.tensors))
    for operator in contents.operators:
        called = contents.called.get(_subgraph(operator)) if operator.op == "CALL" else None
        if called is not None and _fits(contents, operator, called):
            draft.call(operator, called)
        else:
            draft.add(operator)
    remaining = {_subgraph(it) for it in draft.operators if it.op in CALLS}
    return replace(
        contents,
        tensors=tuple(draft.tensors),
        operators=tuple(draft.operators),
        called={number: each for number, each in contents.called.items() if number in remaining},
        continued=draft.continued,
    )


def _subgraph(operator: TfliteOperator) -> int:
    return operator.integer(CALLS[operator.op])


def _fits(contents: Contents, call: TfliteOperator, called: Contents) -> bool:
    """Whether a call has inputs and outputs of the same types and shapes as the subgraph."""
    for outer, inner in ((call.inputs, called.inputs), (call.outputs, called.outputs)):
        if len(outer) != len(inner) or min(outer, default=0) < 0:
            return False
        pairs = [(contents.tensors[a], called.tensors[b]) for a, b in zip(outer, inner, strict=True)]
        if any((a.kind, a.shape, a.scales) != (b.kind, b.shape, b.scales) for a, b in pairs):
            return False
    # A result that is an input or a constant of the subgraph would need a copy.
    written = {number for operator in called.operators for number in operator.outputs}
    return written.issuperset(called.outputs)


@dataclass(slots=True)
class _CallDraft:
    """Tensors and operators so far.

    `first`: for each subgraph, the first operator of its first call, and the tensors that all its calls
    share, by number in the subgraph.
    """

    tensors: list[TfliteTensor]
    operators: list[TfliteOperator] = field(default_factory=list)
    continued: dict[int, int] = field(default_factory=dict)
    first: dict[int, tuple[int, dict[int, int]]] = field(default_factory=dict)

    def add(self, operator: TfliteOperator) -> None:
        self.operators.append(replace(operator, index=len(self.operators)))

    def call(self, call: TfliteOperator, called: Contents) -> None:
        """Add the operators of a subgraph. Its calls share constants and variables alone."""
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
            self.add(_renumbered(operator, numbers))


_MAX_OPERATORS = 1 << 14
_MAX_TENSORS = 1 << 19
_MAX_DEPTH = 16
_CONTROL = ("IF", "WHILE")
_STATEFUL = (
    *("ASSIGN_VARIABLE", "CALL", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE"),
    *("SignalDelay", "SignalFilterBankSpectralSubtraction", "SignalFramer", "SignalOverlapAdd"),
    "SignalStacker",
)
"""Operators with a state outside of variable tensors. All rounds share it, while copies would not."""
_FAULTS = (ArithmeticError, LookupError, TypeError, ValueError, Unsupported)
"""Exceptions for options and shapes that do not fit."""


class _UnknownError(Exception):
    """Raised for control flow that depends on values of a run, or exceeds a limit, so that it stays."""


def without_control_flow(contents: Contents) -> Contents:
    """Replace IF and WHILE by the operators of their subgraphs. Those that need values of a run stay.

    Both branches of an IF with a computed condition run, and SELECT_V2 chooses between their results.
    """
    if not any(operator.op in _CONTROL for operator in contents.operators):
        return contents
    draft = _Draft(contents, list(contents.tensors))
    for operator in contents.operators:
        draft.add(operator, 0)
    numbered = (replace(each, index=at) for at, each in enumerate(draft.operators))
    operators = tuple(numbered)
    return replace(
        contents, tensors=tuple(draft.tensors), operators=operators, notes=(*contents.notes, *draft.notes)
    )


@dataclass(slots=True)
class _Draft:
    """Operators and tensors of the whole file; `same` maps a tensor to another one with the same value."""

    contents: Contents
    tensors: list[TfliteTensor]
    operators: list[TfliteOperator] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    same: dict[int, int] = field(default_factory=dict)
    copied: int = 0
    """Number of tensors of all subgraphs that were added, even if they were removed again."""
    lists: TensorLists = field(init=False)

    def __post_init__(self) -> None:
        self.lists = TensorLists(self.tensors)

    def add(self, operator: TfliteOperator, depth: int) -> None:
        """Add an operator, or the operators that replace it; `depth`: subgraphs around it."""
        inputs = tuple(self.same.get(number, number) for number in operator.inputs)
        operator = replace(operator, inputs=inputs)
        if operator.op not in _CONTROL:
            self._append(operator)
            return
        operators, tensors, notes = len(self.operators), len(self.tensors), len(self.notes)
        same = dict(self.same)
        try:
            (self._if if operator.op == "IF" else self._while)(operator, depth)
        except (_UnknownError, *_FAULTS):
            del self.operators[operators:], self.tensors[tensors:], self.notes[notes:]
            self.same = same
            self.operators.append(operator)

    def _append(self, operator: TfliteOperator) -> None:
        constant = self._folded(operator)
        if constant is not None and constant.index not in self.contents.outputs:
            self.tensors[constant.index] = constant
            self.operators.append(operator)
            return
        try:
            replacements, same = self.lists.replaced(operator)
        except _FAULTS:
            replacements, same = [operator], None
        self.operators += replacements
        if same is not None:
            self._alias(operator.outputs, [same])

    def _folded(self, operator: TfliteOperator) -> TfliteTensor | None:
        """The result as a constant, if it follows from shapes and integers of the file; else None."""
        if len(operator.outputs) != 1:
            return None
        try:
            sources = [self.tensors[number] for number in operator.inputs if number >= 0]
            return folded(operator, sources, self.tensors[operator.outputs[0]])
        except _FAULTS:
            return None

    def _if(self, operator: TfliteOperator, depth: int) -> None:
        condition, *arguments = operator.inputs
        names = "ThenSubgraphIndex", "ElseSubgraphIndex"
        branches = [self._body(operator.integer(name)) for name in names]
        known = self._truth(condition)
        if known is not None:
            inlined = self._inline(branches[0 if known else 1], arguments, depth, operator.outputs)
            self._alias(operator.outputs, inlined)
            return
        results = [self._inline(branch, arguments, depth, ()) for branch in branches]
        for number, one, other in zip(operator.outputs, *results, strict=True):
            self._choose(number, condition, one, other)
        self.notes.append(f"{operator.label}: both branches run, and a choice between their results follows")

    def _choose(self, number: int, condition: int, one: int, other: int) -> None:
        """Add a choice between two tensors of the same type, shape and scale, as the tensor `number`."""
        facts = [(it.kind, it.shape, it.scales) for it in (self.tensors[at] for at in (one, other))]
        if facts[0] != facts[1]:
            raise _UnknownError
        kind, shape, scales = facts[0]
        self.tensors[number] = replace(self.tensors[number], kind=kind, shape=shape, scales=scales)
        self._append(TfliteOperator(0, "SELECT_V2", False, (condition, one, other), (number,), {}))

    def _while(self, operator: TfliteOperator, depth: int) -> None:
        condition, body = (
            self._body(operator.integer(name)) for name in ("CondSubgraphIndex", "BodySubgraphIndex")
        )
        values = list(operator.inputs)
        rounds, first = 0, len(self.operators)
        while self._holds(condition, values, depth):
            values = self._inline(body, values, depth, ())
            rounds += 1
        self._alias(operator.outputs, values)
        if depth == 0:
            operators_text = count_text(len(self.operators) - first, "operator")
            unrolled = f"its {count_text(rounds, 'round')} are {operators_text}"
            self.notes.append(f"{operator.label}: {unrolled}, each with its steps and tables in flash")

    def _holds(self, condition: Contents, values: Sequence[int], depth: int) -> bool:
        """Whether a loop continues. Raises _UnknownError if this depends on values of a run."""
        count = len(self.operators)
        (result,) = self._inline(condition, values, depth, ())
        del self.operators[count:]
        truth = self._truth(result)
        if truth is None:
            raise _UnknownError
        return truth

    def _truth(self, number: int) -> bool | None:
        """The value of a condition; None if it is computed in a run."""
        tensor = self.tensors[number]
        return None if tensor.data is None else bool(tensor.array().reshape(-1)[0])

    def _body(self, number: int) -> Contents:
        body = self.contents.bodies[number]
        stateful = any(operator.op in _STATEFUL for operator in body.operators)
        if stateful or any(tensor.variable for tensor in body.tensors):
            raise _UnknownError
        return body

    def _inline(
        self, body: Contents, arguments: Sequence[int], depth: int, results: Sequence[int]
    ) -> list[int]:
        """Add the operators of a subgraph; return its outputs, as the tensors `results` if possible."""
        self.copied += len(body.tensors)
        if self.copied > _MAX_TENSORS or depth > _MAX_DEPTH or len(arguments) != len(body.inputs):
            raise _UnknownError
        numbers = dict(zip(body.inputs, arguments, strict=True))
        written = {number for operator in body.operators for number in operator.outputs}
        for inner, outer in zip(body.outputs, results, strict=False):
            if inner in written and inner not in numbers and outer not in numbers.values():
                numbers[inner] = outer
        for tensor in body.tensors:
            if tensor.index in numbers:
                continue
            numbers[tensor.index] = len(self.tensors)
            self.tensors.append(replace(tensor, index=len(self.tensors)))
        for operator in body.operators:
            if len(self.operators) >= _MAX_OPERATORS:
                raise _UnknownError
            self.add(_renumbered(operator, numbers), depth + 1)
        return [self.same.get(numbers[number], numbers[number]) for number in body.outputs]

    def _alias(self, outputs: Sequence[int], values: Sequence[int]) -> None:
        """Let these tensors take the place of the outputs of an operator; an output of the file is a copy."""
        for number, value in zip(outputs, values, strict=True):
            if number == value:
                continue
            source = self.tensors[value]
            self.tensors[number] = replace(source, index=number, name=self.tensors[number].name)
            if number in self.contents.outputs:
                self.tensors[number] = replace(self.tensors[number], data=None)
                self.operators.append(TfliteOperator(0, "RESHAPE", False, (value,), (number,), {}))
            else:
                self.same[number] = value


def _renumbered(operator: TfliteOperator, numbers: Mapping[int, int]) -> TfliteOperator:
    inputs = tuple(numbers.get(number, number) for number in operator.inputs)
    return replace(operator, inputs=inputs, outputs=tuple(numbers[number] for number in operator.outputs))
