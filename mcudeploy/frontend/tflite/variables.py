"""Resource variables, which keep values from one inference to the next, as states of the graph.

A variable that each inference replaces by its last rows and newer rows becomes a queue, which is also the
concatenation that the file computes. Any other variable that is read before it is assigned is copied when it
is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import topological_order
from mcudeploy.frontend.tflite.contents import Contents, TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.variable_states import Translation, Variable, VariableState, nothing, queue_of
from mcudeploy.frontend.tflite.writer import Writer


@dataclass(frozen=True, slots=True)
class Variables:
    """Operators in an order in which states can be replaced in place; by number, translations of some."""

    operators: tuple[TfliteOperator, ...]
    translations: Mapping[int, Translation]


def variables_of(contents: Contents) -> Variables:
    """Make the translations of the operators that read or write variables of the file.

    An operator whose variable VAR_HANDLE does not name has none.
    """
    translations: dict[int, Translation] = {}
    variables: dict[str, Variable] = {}
    handles = _handles(contents)
    for operator in contents.operators:
        if operator.op in ("CALL_ONCE", "VAR_HANDLE"):
            translations[operator.index] = nothing
        elif operator.op in ("READ_VARIABLE", "ASSIGN_VARIABLE") and operator.inputs[0] in handles:
            name = handles[operator.inputs[0]]
            variable = variables.setdefault(name, Variable(initial=_initial(contents, name)))
            if operator.op == "ASSIGN_VARIABLE":
                variable.assigned.append(operator)
            elif variable.assigned:
                variable.later[operator.index] = variable.assigned[-1].inputs[1]
            else:
                variable.reads.append(operator)
    contents = _with_assigned(contents, variables)
    predecessors: dict[int, int] = {}
    only_assigns = all(map(_only_assigns, contents.called.values()))
    for variable in variables.values():
        if only_assigns:
            translations |= _translations(contents, variable, predecessors)
        else:
            translations |= dict.fromkeys((it.index for it in variable.reads), _COMPUTED)
    ordered = _ordered(contents, predecessors)
    if ordered is None:
        ordered, translations = contents.operators, translations | dict.fromkeys(predecessors, _CROSSED)
    return Variables(ordered, translations)


def _with_assigned(contents: Contents, variables: Mapping[str, Variable]) -> Contents:
    """The contents, in which a read after an assignment has the assigned tensor as a further input."""
    sources = {number: source for it in variables.values() for number, source in it.later.items()}
    operators = (
        replace(it, inputs=(*it.inputs, sources[it.index])) if it.index in sources else it
        for it in contents.operators
    )
    return replace(contents, operators=tuple(operators))


def _refused(why: str) -> Translation:
    """A translation that raises Unsupported."""

    def translate(_: Writer, __: TfliteOperator) -> None:
        raise Unsupported(why)

    return translate


_CROSSED = _refused("several variables are assigned values that need each other's value of the last run")
_COMPUTED = _refused("CALL_ONCE runs a subgraph that does more than assign constants to variables")


def _handles(contents: Contents) -> dict[int, str]:
    """The name of the variable that each handle stands for."""
    return {
        operator.outputs[0]: f"{operator.text('Container')}/{operator.text('SharedName')}"
        for operator in contents.operators
        if operator.op == "VAR_HANDLE"
    }


def _only_assigns(called: Contents) -> bool:
    """Whether a subgraph only assigns constants to variables."""
    handles = _handles(called)
    return all(
        it.op == "VAR_HANDLE"
        or (
            it.op == "ASSIGN_VARIABLE"
            and it.inputs[0] in handles
            and called.tensors[it.inputs[1]].data is not None
        )
        for it in called.operators
    )


def _initial(contents: Contents, name: str) -> TfliteTensor | None:
    """The constant that a variable is assigned before the first inference."""
    constant = None
    for called in contents.called.values():
        handles = _handles(called)
        for operator in called.operators:
            if operator.op == "ASSIGN_VARIABLE" and handles.get(operator.inputs[0]) == name:
                constant = called.tensors[operator.inputs[1]]
    return constant


def _translations(
    contents: Contents, variable: Variable, predecessors: dict[int, int]
) -> dict[int, Translation]:
    """The translations of a variable's operators, by number.

    Adds to `predecessors`, by number of an operator, another one that must run before it.
    """
    translations: dict[int, Translation] = {number: _same(it) for number, it in variable.later.items()}
    translations |= {operator.index: nothing for operator in variable.assigned}
    if not variable.reads:
        return translations
    first = variable.reads[0]
    state = VariableState(contents.tensors[first.outputs[0]], variable.initial)
    translations |= {operator.index: _same(first.outputs[0]) for operator in variable.reads[1:]}
    if not variable.assigned:
        return translations | {first.index: state.constant}
    last = variable.assigned[-1]
    queue = queue_of(contents, variable)
    if queue is not None:
        return translations | {first.index: nothing, **queue}
    if _depends(contents, last, first):
        return translations | {first.index: state.load, last.index: state.store}
    predecessors[first.index] = last.index
    return translations | {last.index: state.delay, first.index: state.delayed}


def _same(tensor: int) -> Translation:
    """A translation whose result is another tensor of the file."""

    def translate(writer: Writer, operator: TfliteOperator) -> None:
        writer.keep(writer.output(operator), writer.raw(writer.numbered(tensor)))

    return translate


def _depends(contents: Contents, last: TfliteOperator, first: TfliteOperator) -> bool:
    """Whether the assigned value of `last` depends on the results of `first`."""
    reached = set(first.outputs)
    for operator in contents.operators:
        if not reached.isdisjoint(operator.inputs):
            reached.update(operator.outputs)
    return last.inputs[1] in reached


def _ordered(contents: Contents, predecessors: Mapping[int, int]) -> tuple[TfliteOperator, ...] | None:
    """Sort the operators topologically, otherwise in the order of the file; None if there is no such order.

    `predecessors`: by number of an operator, another one that must come before it.
    """
    if not predecessors:
        return contents.operators
    producers = {number: operator.index for operator in contents.operators for number in operator.outputs}
    needed = {
        operator.index: {producers[number] for number in operator.inputs if number in producers}
        | {number for number in (predecessors.get(operator.index),) if number is not None}
        for operator in contents.operators
    }
    by_index = {operator.index: operator for operator in contents.operators}
    ordered = topological_order(needed)
    return None if ordered is None else tuple(by_index[number] for number in ordered)
