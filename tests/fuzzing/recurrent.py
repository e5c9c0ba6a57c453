"""Recurrent layers, as exporters write them: time comes first, and after the layer the batch again."""

from __future__ import annotations

from math import sqrt

import numpy as np

from fuzzing.draft import Draft, Layer, Shape, of

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_MOST_STEPS = 16
_MOST_STATES = 4 * 12 * 12


@of(3)
def layer(draft: Draft, name: str, shape: Shape) -> None:
    """An LSTM, GRU or RNN over the values of axis 1, in one direction or both."""
    batch, steps, features = shape
    op = draft.pick(tuple(_GATES))
    hidden = draft.pick((1, 2, 3, 5, 8, 12))
    direction = draft.pick(("forward", "forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    if steps > _MOST_STEPS or batch * steps * features * hidden > _MOST_STATES * _MOST_STEPS:
        return
    turned = draft.add("Transpose", [name], (steps, batch, features), perm=(1, 0, 2))
    attributes: dict[str, object] = {"hidden_size": hidden, "direction": direction}
    inputs = [turned, *_weights(draft, op, ways, features, hidden)]
    inputs += _states(draft, op, (ways, batch, hidden), steps)
    if op == "GRU" and draft.chance(0.5):
        attributes["linear_before_reset"] = 1
    if op == "RNN" and draft.chance(0.4):
        attributes["activations"] = [draft.pick(("Relu", "Sigmoid", "Tanh"))] * ways
    whole, last = (steps, ways, batch, hidden), (ways, batch, hidden)
    shapes = [whole if draft.chance(0.7) else None, last if draft.chance(0.5) else None]
    if op == "LSTM":
        shapes.append(last if draft.chance(0.3) else None)
    if not any(shapes):
        shapes[0] = whole
    while shapes[-1] is None:
        shapes.pop()
    for result in draft.add_many(op, inputs, shapes, **attributes):
        if result:
            _batch_first(draft, result)


def _weights(draft: Draft, op: str, ways: int, features: int, hidden: int) -> list[str]:
    rows = _GATES[op] * hidden
    weights = [
        draft.constant(draft.normal((ways, rows, features), 1 / sqrt(features))),
        draft.constant(draft.normal((ways, rows, hidden), 1 / sqrt(hidden))),
    ]
    return [*weights, draft.constant(draft.normal((ways, 2 * rows), 0.3)) if draft.chance(0.8) else ""]


def _states(draft: Draft, op: str, shape: tuple[int, int, int], steps: int) -> list[str]:
    """Lengths of sequences, first states and peepholes; none in most cases."""
    ways, batch, hidden = shape
    lengths = np.full(batch, steps, np.int32)
    states = [draft.constant(lengths) if draft.chance(0.1) else ""]
    computed = draft.alike(lambda it: it == (batch, hidden))
    for _ in range(2 if op == "LSTM" else 1):
        if computed and ways == 1 and draft.chance(0.5):
            axes = draft.constant(np.array([0], np.int64))
            states.append(draft.add("Unsqueeze", [draft.pick(computed), axes], shape))
        else:
            states.append(draft.constant(draft.normal(shape, 0.5)) if draft.chance(0.3) else "")
    if op == "LSTM" and draft.chance(0.2):
        states.append(draft.constant(draft.normal((ways, 3 * hidden), 0.3)))
    while states and not states[-1]:
        states.pop()
    return states


def _batch_first(draft: Draft, name: str) -> None:
    """The states of all steps, or the last one, under a shape that begins with the batch."""
    shape = draft.shapes[name]
    order = (2, 0, 1, 3) if len(shape) == 4 else (1, 0, 2)
    *before, ways, hidden = (shape[axis] for axis in order)
    if ways == 1 and draft.chance(0.5):  # as PyTorch writes it
        axis = draft.constant(np.array([len(shape) - 3], np.int64))
        result = tuple(size for at, size in enumerate(shape) if at != len(shape) - 3)
        out = draft.add("Squeeze", [name, axis], result)
        if len(result) == 3:
            draft.add("Transpose", [out], (result[1], result[0], result[2]), perm=(1, 0, 2))
        return
    out = draft.add("Transpose", [name], (*before, ways, hidden), perm=order)
    written = np.array([0] * len(before) + [-1], np.int64)
    draft.add("Reshape", [out, draft.constant(written)], (*before, ways * hidden))


LAYERS: tuple[tuple[Layer, float], ...] = ((layer, 7),)
