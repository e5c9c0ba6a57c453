"""States kept between runs: the operators that read and replace them, and the states of recurrent nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from mcudeploy.common.errors import ModelError, Problem, UsageError
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, attribute_of, function_of
from mcudeploy.frontend.onnx.rounding import DOMAIN

QUEUE = "Queue"
"""Operator on newest rows and a state: the result is the state without its oldest rows, then the newest."""
WRITE = "Write"
"""Operator on rows, a state and positions along an axis: the result is the state with the rows written there.
"""
LOAD = "Load"
"""The operator that copies a state."""


def queue_attributes(axis: int, rows: int) -> dict[str, Any]:
    """The attributes of a QUEUE into which `rows` new rows enter along an axis."""
    return {"axis": axis, "axes": [axis], "first": [rows]}


def state_functions(opset: int) -> list[FunctionProto]:
    """The operators QUEUE, WRITE and LOAD as functions of ONNX operators."""
    queue = f"""
    {QUEUE} <axis, axes, first> (x, state) => (y) {{
      start = Constant <value_ints: ints = @first> ()
      along = Constant <value_ints: ints = @axes> ()
      end = Constant <value_ints = [{np.iinfo(np.int32).max}]> ()
      younger = Slice (state, start, end, along)
      y = Concat <axis: int = @axis> (younger, x)
    }}
    """
    write = f"""
    {WRITE} <axis, sizes> (x, state, positions) => (y) {{
      shape = Constant <value_ints: ints = @sizes> ()
      line = Reshape (positions, shape)
      whole = Shape (x)
      places = Expand (line, whole)
      y = ScatterElements <axis: int = @axis> (state, places, x)
    }}
    """
    load = f"{LOAD} (state) => (y) {{ y = Identity (state) }}"
    return [function_of(text, DOMAIN, opset) for text in (queue, write, load)]


_STATES = {"LSTM": ("h", "c"), "GRU": ("h",), "RNN": ("h",)}
_FIRST_INPUT, _FIRST_OUTPUT = 5, 1
_MOVES = frozenset((
    "Concat", "Expand", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose",
    "Unsqueeze",
))  # fmt: skip
"""Operators that may lie between recurrent nodes and an input or output with the states of several layers."""


@dataclass(frozen=True, slots=True)
class KeptState:
    """A state, by names: the graph input `before` a run, the value `after` it, the `initial` value or ""."""

    before: str
    after: str
    initial: str


@dataclass(frozen=True, slots=True)
class Stateful:
    """The states of a model, definitions of operators that ONNX lacks, and notes for the user."""

    states: tuple[KeptState, ...] = ()
    functions: tuple[FunctionProto, ...] = ()
    notes: tuple[str, ...] = ()


def keep_states(model: ModelProto) -> Stateful:
    """Add inputs and outputs of the graph for the states of every recurrent node.

    Removes inputs of the model that are only initial states, and outputs that are only last states. Raises
    ModelError for nodes whose state cannot be kept, and UsageError for a model without recurrent nodes.
    """
    graph = model.graph
    nodes = [node for node in graph.node if node.op_type in _STATES and node.domain in ONNX_DOMAINS]
    _require_forward(nodes)
    removed = _remove_state_inputs(graph, nodes)
    used_names = {name for node in graph.node for name in (*node.input, *node.output)}
    used_names |= {value.name for value in (*graph.input, *graph.initializer)}
    states: list[KeptState] = []
    for node in nodes:
        stem = next(filter(None, node.output), "state")
        for position, letter in enumerate(_STATES[node.op_type]):
            initial = _at(node.input, _FIRST_INPUT + position)
            before = _named(node.input, _FIRST_INPUT + position, "", f"{stem}_{letter}_before", used_names)
            after = _at(node.output, _FIRST_OUTPUT + position)
            after = _named(node.output, _FIRST_OUTPUT + position, after, f"{stem}_{letter}_after", used_names)
            graph.input.append(
                helper.make_tensor_value_info(before, TensorProto.FLOAT, [1, 1, _hidden(node)])
            )
            states.append(KeptState(before, after, "" if initial in removed.values else initial))
    return Stateful(tuple(states), notes=removed.notes)


def _require_forward(nodes: Sequence[NodeProto]) -> None:
    if not nodes:
        raise UsageError("--stateful keeps states, and the model has none, of LSTM, GRU or RNN: leave it out")
    problems = tuple(
        Problem(printable(node.name), node.op_type, why)
        for node in nodes
        if (why := _fault(node)) is not None
    )
    if problems:
        raise ModelError.unsupported(problems)


def _fault(node: NodeProto) -> str | None:
    """The reason why a node cannot keep its state."""
    if attribute_of(node, "direction", b"forward") != b"forward":
        return "it reads the sequence from its end, so that no run goes on from another: leave out --stateful"
    return None if _hidden(node) > 0 else "its hidden_size is missing or not positive"


def _hidden(node: NodeProto) -> int:
    return int(attribute_of(node, "hidden_size", 0))


def _at(names: Sequence[str], position: int) -> str:
    return names[position] if position < len(names) else ""


def _named(names: list[str], position: int, name: str, wish: str, used_names: set[str]) -> str:
    """Put `name`, or if it is "" an unused name like `wish`, at a position of `names`; return the name."""
    while not name:
        name = "" if wish in used_names else wish
        wish += "_"
    used_names.add(name)
    names.extend([""] * (position + 1 - len(names)))
    names[position] = name
    return name


@dataclass(frozen=True, slots=True)
class _RemovedInputs:
    """The values of removed inputs, which were initial states, with the values moved from them, and notes."""

    values: frozenset[str]
    notes: tuple[str, ...]


def _remove_state_inputs(graph: GraphProto, nodes: Sequence[NodeProto]) -> _RemovedInputs:
    """Remove the inputs that are only initial states, and the nodes that move them to the recurrent nodes.

    For each removed input, also removes an output of the same shape that is only a last state.
    """
    constants = {tensor.name for tensor in graph.initializer}
    values: set[str] = set()
    inputs: list[ValueInfoProto] = []
    for value in graph.input:
        moved = None if value.name in constants else _moved(graph, nodes, value.name)
        if moved is not None:
            inputs.append(value)
            values |= moved
    outputs: list[ValueInfoProto] = []
    for value in inputs:
        last_states = (
            it
            for it in graph.output
            if it not in outputs and _sizes(it) == _sizes(value) and _is_last(graph, nodes, it.name)
        )
        outputs += list(last_states)[:1]
    for value in inputs:
        graph.input.remove(value)
    for value in outputs:
        graph.output.remove(value)
    for node in [node for node in graph.node if not values.isdisjoint(node.output)]:
        graph.node.remove(node)
    names = ", ".join(printable(value.name) for value in (*inputs, *outputs))
    notes = (f"kept between runs, zero at first, no inputs and outputs any more: {names}",) if inputs else ()
    return _RemovedInputs(frozenset(values), notes)


def _moved(graph: GraphProto, nodes: Sequence[NodeProto], name: str) -> set[str] | None:
    """The input and the values moved from it if they are only initial states; None for other uses."""
    names, reached = {name}, False
    for node in graph.node:
        read = [at for at, it in enumerate(node.input) if it in names]
        if not read:
            continue
        if (
            node in nodes
            and min(read) >= _FIRST_INPUT
            and max(read) < _FIRST_INPUT + len(_STATES[node.op_type])
        ):
            reached = True
        elif node.op_type in _MOVES and read == [0]:
            names.update(filter(None, node.output))
        else:
            return None
    return names if reached and names.isdisjoint(it.name for it in graph.output) else None


def _is_last(graph: GraphProto, nodes: Sequence[NodeProto], name: str) -> bool:
    """Whether a value consists of last states and constants alone."""
    producers = {result: node for node in graph.node for result in node.output if result}
    constants = {tensor.name for tensor in graph.initializer}
    waiting, reached = [name], False
    while waiting:
        current = waiting.pop()
        node = producers.get(current)
        if node is not None and node in nodes and list(node.output).index(current) >= _FIRST_OUTPUT:
            reached = True
        elif node is not None and (node.op_type in _MOVES or node.op_type == "Constant"):
            waiting += [it for it in node.input if it]
        elif current not in constants:
            return False
    return reached


def _sizes(value: ValueInfoProto) -> list[int | str]:
    return [it.dim_value or it.dim_param for it in value.type.tensor_type.shape.dim]
