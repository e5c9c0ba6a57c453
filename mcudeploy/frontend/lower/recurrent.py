"""LSTM, GRU and RNN: an operator for each direction and each result that is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.affine import Linear, stored_weights
from mcudeploy.frontend.lower.builder import Builder, Lowering, OperatorLowering
from mcudeploy.frontend.lower.inputs import state_input
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue
from mcudeploy.ir.graph import DType
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.matrix.recurrent import (
    GATES,
    SCALED,
    STATES,
    Cell,
    CellFunction,
    CellFunctions,
    Recurrent,
    Result,
)
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Slice

_Floats = NDArray[np.float32]
_CELLS: dict[str, Cell] = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn"}
_PLAIN: dict[str, Cell] = {"tanh": "rnn_tanh", "relu": "rnn_relu", "sigmoid": "rnn_sigmoid"}
_ACTIVATIONS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
_CURVES = {
    "affine": CellFunction("line"),
    "elu": CellFunction("elu"),
    "hardsigmoid": CellFunction("line", 0.2, 0.5, 0.0, 1.0),
    "leakyrelu": CellFunction("leaky", 0.01),
    "relu": CellFunction("line", 1.0, 0.0, 0.0),
    "scaledtanh": CellFunction("tanh"),
    "sigmoid": CellFunction("sigmoid"),
    "softsign": CellFunction("softsign"),
    "tanh": CellFunction("tanh"),
    "thresholdedrelu": CellFunction("threshold"),
}
"""Functions of cells with their default parameters, by their names in lower case."""
_WITH_ALPHA = ("affine", "elu", "hardsigmoid", "leakyrelu", "scaledtanh", "thresholdedrelu")
_WITH_BETA = ("affine", "hardsigmoid", "scaledtanh")
"""Functions that have the parameter alpha, and those that have beta."""
_RESULTS: tuple[Result, ...] = ("steps", "last", "cell")
_WEIGHTS, _RECURRENT, _BIAS, _INITIAL_H = 1, 2, 3, 5
"""Positions of a node's inputs."""
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True, slots=True, eq=False)
class _Direction:
    """One direction of a node: its operator, its constants, and its initial states if they are tensors."""

    op: Recurrent
    constants: Mapping[str, ConstantArray]
    states: tuple[str, ...] = ()


def sequence_lstm(builder: Builder, node: Node) -> None:
    """Lower the LSTM of .tflite files: ONNX's LSTM, whose cell state may be clipped."""
    recurrent(builder, replace(node, op="LSTM"))


def recurrent(builder: Builder, node: Node) -> None:
    """Lower LSTM, GRU or RNN in float."""
    value = builder.real(node.inputs[0])
    index = value.index
    steps, batch, depth = index.shape
    if batch != 1:
        raise Unsupported(f"the batch is {batch}, only 1 is supported")
    source = builder.viewed(builder.arranged(value.tensor, index.reshape(steps, 1, depth)), (1, steps, depth))
    directions = _directions(builder, node, steps)
    read: list[tuple[Result, str]] = [
        (result, name) for result, name in zip(_RESULTS, node.outputs, strict=False) if builder.is_read(name)
    ]
    if directions[0].op.keeps and any(result == "cell" for result, _ in read):
        raise Unsupported("its last cell state is read, which is kept for the next run: leave out --stateful")
    all_steps: list[str] = []
    for result, name in read:
        out_steps = steps if result == "steps" else 1
        hidden = directions[0].op.hidden
        if result == "last" and all_steps:
            parts = [_last(builder, node, *each) for each in zip(all_steps, directions, strict=True)]
        else:
            parts = [
                builder.emit(
                    replace(each.op, result=result),
                    (source, *each.states),
                    (1, out_steps, hidden),
                    DType.FLOAT32,
                    constants=each.constants,
                    nodes=(node,),
                )
                for each in directions
            ]
        all_steps = parts if result == "steps" else all_steps
        tensor, count = parts[0], len(parts)
        if count > 1:
            tensor = builder.emit(
                Concat(2), parts, (1, out_steps, count * hidden), DType.FLOAT32, nodes=(node,)
            )
        order = np.arange(out_steps * count * hidden, dtype=np.int32).reshape(out_steps, count, 1, hidden)
        order = order if result == "steps" else order[0]
        builder.define(name, OnnxValue(tensor, order, real=True))


def _last(builder: Builder, node: Node, steps: str, direction: _Direction) -> str:
    """Select the last state from all steps."""
    _, count, hidden = builder.shape_of(steps)
    at = 0 if direction.op.reverse else count - 1
    op = Slice((0, at, 0), (1, 1, 1), (1, 1, hidden))
    return builder.emit(op, (steps,), (1, 1, hidden), DType.FLOAT32, nodes=(node,))


def _directions(builder: Builder, node: Node, steps: int) -> list[_Direction]:
    """The operators of a node, one for each direction. Raises Unsupported for attributes that do not fit."""
    reverse = _DIRECTIONS.get(node.text("direction", "forward"))
    hidden = node.integer("hidden_size", 0)
    if reverse is None or hidden < 1:
        raise Unsupported("its direction or hidden_size is not one that ONNX knows")
    _require_plain(builder, node, steps)
    functions = _functions(node, len(reverse))
    states, keeps = _states(builder, node, _CELLS[node.op], (len(reverse), hidden))
    arrays = [_array(builder, node, position, states_given=bool(states)) for position in range(8)]
    directions = []
    for at, backwards in enumerate(reverse):
        cell, unusual = functions[at]
        constants = _constants(node, cell, hidden, [None if a is None else _along(a, at) for a in arrays])
        if cell in SCALED:
            constants = _with_stored_weights(builder, node, at, constants)
        if states:
            del constants["initial"]
        reset_after = cell == "gru" and node.integer("linear_before_reset", 0) != 0
        direction_states = tuple(state[at] for state in states)
        clip = node.number("cell_clip", 0.0) if "cell_clip" in node.attributes else inf
        # ONNX Runtime clips the sums of LSTM and GRU if they have a bias.
        saturates = cell in ("lstm", "gru") and arrays[_BIAS] is not None and not node.domain
        op = Recurrent(cell, hidden, "steps", backwards, reset_after, keeps, clip, saturates, unusual)
        directions.append(_Direction(op, constants, direction_states))
    return directions


def _states(builder: Builder, node: Node, cell: Cell, sizes: tuple[int, int]) -> tuple[list[list[str]], bool]:
    """The tensors of computed initial states, by state and direction, and whether runs keep them.

    `sizes` are the numbers of directions and of state channels. Constant states give an empty list.
    """
    names = [node.input(position) for position in range(_INITIAL_H, _INITIAL_H + STATES[cell])]
    if all(not name or name in builder.constants for name in names):
        return [], False
    directions, hidden = sizes
    tensors = [tensor for name in names if (tensor := state_input(builder, name, (1, 1, hidden))) is not None]
    if tensors:
        return [[tensor] for tensor in tensors], True
    if any(not name or name in builder.constants for name in names):
        raise Unsupported("one of its first states is computed and the other is not: give both as inputs")
    states = []
    for name in names:
        value = builder.real(name)
        if value.index.shape != (directions, 1, hidden):
            raise Unsupported(f"its first states have the shape {list(value.index.shape)}")
        by_direction = builder.arranged(value.tensor, value.index.reshape(directions, 1, hidden))
        states.append([_state_of(builder, node, by_direction, at) for at in range(directions)])
    return states, False


def _state_of(builder: Builder, node: Node, states: str, direction: int) -> str:
    """The state of a direction, from those of all directions."""
    count, _, hidden = builder.shape_of(states)
    if count == 1:
        return states
    op = Slice((direction, 0, 0), (1, 1, 1), (1, 1, hidden))
    return builder.emit(op, (states,), (1, 1, hidden), DType.FLOAT32, nodes=(node,))


def _along(array: _Floats, direction: int) -> _Floats:
    part = np.asarray(array[direction], np.float32)
    return part.reshape(-1) if array.ndim < 3 else part


def _array(builder: Builder, node: Node, position: int, *, states_given: bool) -> _Floats | None:
    """A constant input [directions, ...]; None for the sequence, its length, and omitted inputs.

    `states_given`: the initial states are tensors, so None too.
    """
    name = node.input(position)
    if not name or position in (0, 4) or (states_given and position in (_INITIAL_H, _INITIAL_H + 1)):
        return None
    return builder.constant(name, "its weights, biases and initial states").value.astype(np.float32)


def _functions(node: Node, directions: int) -> list[tuple[Cell, CellFunctions | None]]:
    """The cell of each direction, and its functions if they are not those of a kernel."""
    usual = _ACTIVATIONS[node.op]
    stated = node.attributes.get("activations") or usual * directions
    names = [str(name).lower() for name in stated] if isinstance(stated, tuple) else []
    if len(names) != len(usual) * directions:
        raise Unsupported(f"{len(names)} activations for {directions} directions of {node.op}")
    unknown = sorted(set(names) - _CURVES.keys())
    if unknown:
        raise Unsupported(f"activations {unknown} are not supported; {', '.join(_CURVES)} are")
    curves = _curves(node, names)
    clip = node.number("clip", 0.0) if "clip" in node.attributes else inf
    coupled = node.op == "LSTM" and node.integer("input_forget", 0) != 0
    plain = clip == inf and not coupled
    cells: list[tuple[Cell, CellFunctions | None]] = []
    for first in range(0, len(names), len(usual)):
        direction_names = names[first : first + len(usual)]
        if plain and node.op == "RNN" and direction_names[0] in _PLAIN:
            cells.append((_PLAIN[direction_names[0]], None))
        elif plain and tuple(direction_names) == usual:
            cells.append((_CELLS[node.op], None))
        else:
            gate, candidate, state = (*curves[first : first + len(usual)], *[_CURVES["tanh"]] * 2)[:3]
            cells.append((_CELLS[node.op], CellFunctions(gate, candidate, state, clip, coupled)))
    return cells


def _curves(node: Node, names: list[str]) -> list[CellFunction]:
    """The functions of these names; each takes its parameters from the front of the node's lists."""
    alphas, betas = (_numbers(node, name) for name in ("activation_alpha", "activation_beta"))
    curves = []
    for name in names:
        curve = _CURVES[name]
        if name in _WITH_ALPHA and alphas:
            curve = replace(curve, alpha=alphas.pop(0))
        if name in _WITH_BETA and betas:
            curve = replace(curve, beta=betas.pop(0))
        curves.append(curve)
    return curves


def _numbers(node: Node, name: str) -> list[float]:
    """An attribute that is a list of floats; an empty list if it is left out."""
    numbers = node.attributes.get(name)
    return [float(value) for value in numbers] if isinstance(numbers, tuple) else []


def _require_plain(builder: Builder, node: Node, steps: int) -> None:
    if node.integer("layout", 0):
        raise Unsupported("layout=1 is not supported (nor by ONNX Runtime): transpose the input instead")
    if node.input(4):
        lengths = builder.constant(node.input(4), "sequence_lens").value
        if not np.all(lengths == steps):
            raise Unsupported(f"sequences shorter than the input's {steps} steps are not supported")


def _with_stored_weights(
    builder: Builder, node: Node, direction: int, constants: dict[str, ConstantArray]
) -> dict[str, ConstantArray]:
    """The constants with weights in int8 and their scales, if the file has both weights in int8."""
    stored = []
    for position in (_WEIGHTS, _RECURRENT):
        matrix = builder.constants[node.input(position)].moved(lambda array: array[direction])
        stored.append(stored_weights(Linear.of(matrix, None), matrix))
    weights, recurrent = stored
    if weights is None or recurrent is None:
        return constants
    if weights.integers.dtype != np.int8 or recurrent.integers.dtype != np.int8:
        return constants
    return constants | {
        "weights": weights.integers,
        "weight_scale": weights.scale.astype(np.float32),
        "recurrent": recurrent.integers,
        "recurrent_scale": recurrent.scale.astype(np.float32),
    }


def _constants(node: Node, cell: Cell, hidden: int, arrays: list[_Floats | None]) -> dict[str, ConstantArray]:
    _, weights, recurrent, bias, _, first_h, first_c, peepholes = arrays
    gates = GATES[cell] * hidden
    if weights is None or recurrent is None or len(weights) != gates or recurrent.shape != (gates, hidden):
        raise Unsupported(f"its weights do not fit hidden_size {hidden}")
    both = np.zeros(2 * gates, np.float32) if bias is None else bias
    input_bias, recurrent_bias = both[:gates].copy(), both[gates:].copy()
    constants: dict[str, ConstantArray] = {"weights": weights, "recurrent": recurrent}
    if cell == "gru" and node.integer("linear_before_reset", 0) != 0:
        constants["candidate_bias"] = recurrent_bias[2 * hidden :].copy()
        recurrent_bias[2 * hidden :] = 0
    constants["bias"] = input_bias + recurrent_bias
    states = [
        np.zeros(hidden, np.float32) if state is None else state.reshape(-1) for state in (first_h, first_c)
    ]
    constants["initial"] = np.concatenate(states)
    if peepholes is not None:
        constants["peepholes"] = peepholes
    return constants


_RESTRICTIONS = "constant weights; no Softplus; initial states also as inputs, kept with `--stateful`"
LOWERINGS: dict[str, OperatorLowering] = {
    **dict.fromkeys(("GRU", "LSTM", "RNN"), OperatorLowering(recurrent, only=_RESTRICTIONS)),
}
PRIVATE: dict[str, Lowering] = {"SequenceLSTM": sequence_lstm}
