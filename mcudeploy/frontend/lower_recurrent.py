"""LSTM, GRU and RNN: an operator for each direction and each result that is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.builder import Builder
from mcudeploy.frontend.model import Node, Unsupported
from mcudeploy.frontend.values import Value
from mcudeploy.ir.graph import DType
from mcudeploy.ops.concat import Concat
from mcudeploy.ops.move import Slice
from mcudeploy.ops.recurrent import GATES, Cell, Recurrent, Result

_Floats = NDArray[np.float32]
_PLAIN: dict[str, Cell] = {"Tanh": "rnn_tanh", "Relu": "rnn_relu", "Sigmoid": "rnn_sigmoid"}
_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}
_RESULTS: tuple[Result, ...] = ("steps", "last", "cell")
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True, slots=True, eq=False)
class _Direction:
    """One direction of a network: its operator for a result, and its constants."""

    cell: Cell
    hidden: int
    reverse: bool
    reset_after: bool
    constants: Mapping[str, _Floats]

    def op(self, result: Result) -> Recurrent:
        """The operator that gives a result."""
        return Recurrent(self.cell, self.hidden, result, self.reverse, self.reset_after)


def recurrent(builder: Builder, node: Node) -> None:
    """Computed in float. What is not the default of a rare attribute is refused by its name."""
    value = builder.real(node.inputs[0])
    index = value.index
    steps, batch, depth = index.shape
    if batch != 1:
        raise Unsupported(f"the batch is {batch}, only 1 is supported")
    source = builder.viewed(builder.arranged(value.tensor, index.reshape(steps, 1, depth)), (1, steps, depth))
    directions = _directions(builder, node, steps)
    every: list[str] = []
    for result, name in zip(_RESULTS, node.outputs, strict=False):
        if not name or not (name in builder.consumers or name in builder.outputs):
            continue
        made = steps if result == "steps" else 1
        hidden = directions[0].hidden
        if result == "last" and every:
            parts = [_last(builder, node, *each) for each in zip(every, directions, strict=True)]
        else:
            parts = [
                builder.emit(
                    each.op(result),
                    (source,),
                    (1, made, hidden),
                    DType.FLOAT32,
                    constants=each.constants,
                    nodes=(node,),
                )
                for each in directions
            ]
        every = parts if result == "steps" else every
        tensor, count = parts[0], len(parts)
        if count > 1:
            tensor = builder.emit(Concat(2), parts, (1, made, count * hidden), DType.FLOAT32, nodes=(node,))
        order = np.arange(made * count * hidden, dtype=np.int32).reshape(made, count, 1, hidden)
        order = order if result == "steps" else order[0]
        builder.define(name, Value(tensor, order, real=True))


def _last(builder: Builder, node: Node, steps: str, direction: _Direction) -> str:
    """The last state among those of all steps."""
    _, count, hidden = builder.shape_of(steps)
    at = 0 if direction.reverse else count - 1
    op = Slice((0, at, 0), (1, 1, 1), (1, 1, hidden))
    return builder.emit(op, (steps,), (1, 1, hidden), DType.FLOAT32, nodes=(node,))


def _directions(builder: Builder, node: Node, steps: int) -> list[_Direction]:
    reverse = _DIRECTIONS.get(node.text("direction", "forward"))
    hidden = node.integer("hidden_size", 0)
    if reverse is None or hidden < 1:
        raise Unsupported("its direction or hidden_size is not one that ONNX knows")
    _require_plain(builder, node, steps)
    cell = _cell(node, len(reverse))
    arrays = [_array(builder, node, position) for position in range(8)]
    return [
        _Direction(
            cell,
            hidden,
            backwards,
            cell == "gru" and node.integer("linear_before_reset", 0) != 0,
            _constants(node, cell, hidden, [None if a is None else _along(a, at) for a in arrays]),
        )
        for at, backwards in enumerate(reverse)
    ]


def _along(array: _Floats, direction: int) -> _Floats:
    part = np.asarray(array[direction], np.float32)
    return part.reshape(-1) if array.ndim < 3 else part


def _array(builder: Builder, node: Node, position: int) -> _Floats | None:
    """A constant input, the direction in front; None for the sequence, its length, and what is left out."""
    name = node.input(position)
    if not name or position in (0, 4):
        return None
    return builder.constant(name, "its weights, biases and initial states").value.astype(np.float32)


def _cell(node: Node, directions: int) -> Cell:
    given = node.attributes.get("activations")
    names = list(given) if isinstance(given, tuple) else []
    if node.op == "RNN":
        first = str(names[0]) if names else "Tanh"
        if first not in _PLAIN or len(set(names)) > 1:
            raise Unsupported(f"activations {names} are not supported; {', '.join(_PLAIN)} are")
        return _PLAIN[first]
    if names and tuple(map(str, names)) != _ACTIVATIONS[node.op] * directions:
        raise Unsupported(f"activations {names} are not supported; {list(_ACTIVATIONS[node.op])} are")
    return "lstm" if node.op == "LSTM" else "gru"


def _require_plain(builder: Builder, node: Node, steps: int) -> None:
    if node.integer("layout", 0):
        raise Unsupported("layout=1 is not supported (nor by ONNX Runtime): transpose the input instead")
    for name in ("clip", "input_forget", "activation_alpha", "activation_beta"):
        if node.attributes.get(name):
            raise Unsupported(f"attribute {name} is not supported")
    if node.input(4):
        lengths = builder.constant(node.input(4), "sequence_lens").value
        if not np.all(lengths == steps):
            raise Unsupported(f"sequences shorter than the input's {steps} steps are not supported")


def _constants(node: Node, cell: Cell, hidden: int, arrays: list[_Floats | None]) -> dict[str, _Floats]:
    _, weights, recurrent, bias, _, first_h, first_c, peepholes = arrays
    gates = GATES[cell] * hidden
    if weights is None or recurrent is None or len(weights) != gates or recurrent.shape != (gates, hidden):
        raise Unsupported(f"its weights do not fit hidden_size {hidden}")
    both = np.zeros(2 * gates, np.float32) if bias is None else bias
    own, other = both[:gates].copy(), both[gates:].copy()
    made: dict[str, _Floats] = {"weights": weights, "recurrent": recurrent}
    if cell == "gru" and node.integer("linear_before_reset", 0) != 0:
        made["candidate_bias"] = other[2 * hidden :].copy()
        other[2 * hidden :] = 0
    made["bias"] = own + other
    states = [
        np.zeros(hidden, np.float32) if state is None else state.reshape(-1) for state in (first_h, first_c)
    ]
    made["initial"] = np.concatenate(states)
    if peepholes is not None:
        made["peepholes"] = peepholes
    return made
