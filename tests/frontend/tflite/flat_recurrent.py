"""Files with a recurrent operator."""

from __future__ import annotations

from typing import Any

import numpy as np
from flat_files import RELU, FlatFile

INPUTS, CELLS, STEPS = 4, 6, 5
TANH = 4


def lstm(f: FlatFile, *, int8: bool = False, by_time: bool = False, clip: float = 0.0) -> Any:
    """UNIDIRECTIONAL_SEQUENCE_LSTM over 5 steps of 4 inputs, with 6 cells."""
    steps = (STEPS, 1) if by_time else (1, STEPS)
    if int8:
        x, y = f.int8(*steps, INPUTS, scale=0.02), f.int8(*steps, CELLS, scale=1 / 128, zero=0)
        weights = [f.weights(CELLS, depth, axis=None, scale=0.008) for depth in [INPUTS] * 4 + [CELLS] * 4]
        biases = [f.bias(x, each, CELLS) for each in weights[:4]]
        h = f.int8(1, CELLS, scale=1 / 128, zero=0, variable=True)
        c = f.add(1, CELLS, kind="INT16", scale=(2.0**-12,), zero_point=(0,), variable=True)
        between = [*(f.add(0) for _ in range(4)), f.int8(0, scale=1 / 128, zero=0)]
    else:
        x, y = f.add(*steps, INPUTS), f.add(*steps, CELLS)
        shapes = [(CELLS, INPUTS)] * 4 + [(CELLS, CELLS)] * 4 + [(CELLS,)] * 4
        made = [f.constant(f.random.normal(0, 0.5, shape), np.float32) for shape in shapes]
        weights, biases = made[:8], made[8:]
        h, c = (f.add(1, CELLS, variable=True) for _ in range(2))
        between = []
    inputs = [x, *weights, -1, -1, -1, *biases, -1, -1, h, c, -1, -1, -1, -1]
    options = {"FusedActivationFunction": TANH, "CellClip": clip, "ProjClip": 0.0, "TimeMajor": by_time}
    f.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, y, intermediates=between, **options)
    return [x], [y]


def svdf(
    f: FlatFile,
    *,
    state: str = "FLOAT32",
    rank: int = 2,
    bias: bool = True,
    reach: float = 300.0,
    zero_point: int = -128,
) -> Any:
    """SVDF of 5 units on 12 inputs, which remembers 6 values; its integer state goes up to `reach`."""
    units, memory = 5, 6
    filters, options = units * rank, {"Rank": rank, "FusedActivationFunction": RELU}
    if state == "FLOAT32":
        x, y = f.add(1, 12), f.add(1, units)
        features = f.constant(f.random.normal(0, 0.5, (filters, 12)), np.float32)
        times = f.constant(f.random.normal(0, 0.5, (filters, memory)), np.float32)
        offset = f.constant(f.random.normal(0, 0.5, units), np.float32)
        kept = f.add(1, filters * memory, variable=True)
    else:
        x, y = f.int8(1, 12), f.int8(1, units, scale=0.5, zero=zero_point)
        features = f.weights(filters, 12, axis=None)
        most = np.iinfo(state.lower()).max
        facts: dict[str, Any] = {"scale": [2.0 / most], "zero_point": [0]}
        largest = most if state == "INT8" else most // 10  # LiteRT's sums of int16 must not overflow
        times = f.constant(
            f.random.integers(-largest, largest + 1, (filters, memory)), state.lower(), **facts
        )
        scale, zero = reach / most, -20 if state == "INT8" else 0
        kept = f.add(1, filters * memory, kind=state, scale=(scale,), zero_point=(zero,), variable=True)
        offset = f.bias(kept, times, units)
    f.operator("SVDF", [x, features, times, offset if bias else -1, kept], y, **options)
    return [x], [y]
