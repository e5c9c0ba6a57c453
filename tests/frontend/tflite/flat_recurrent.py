"""Files with a recurrent operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flat_files import RELU, FlatFile

INPUTS, CELLS, STEPS = 4, 6, 5
TANH = 4


def lstm(f: FlatFile, *, int8: bool = False, by_time: bool = False, clip: float = 0.0) -> Any:
    """UNIDIRECTIONAL_SEQUENCE_LSTM over 5 steps of 4 inputs, with 6 cells."""
    if int8:
        return integer_lstm(f, IntegerLstm(by_time=by_time, clip=clip))
    steps = (STEPS, 1) if by_time else (1, STEPS)
    x, y = f.add(*steps, INPUTS), f.add(*steps, CELLS)
    shapes = [(CELLS, INPUTS)] * 4 + [(CELLS, CELLS)] * 4 + [(CELLS,)] * 4
    arrays = [f.floats(*shape, spread=0.5) for shape in shapes]
    h, c = (f.add(1, CELLS, variable=True) for _ in range(2))
    inputs = [x, *arrays[:8], -1, -1, -1, *arrays[8:], -1, -1, h, c, -1, -1, -1, -1]
    f.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, y, **_options(clip, by_time=by_time))
    return [x], [y]


@dataclass(frozen=True)
class IntegerLstm:
    """An LSTM of int8 whose cell state is int16: sizes, and scales with zero points."""

    steps: int = STEPS
    inputs: int = INPUTS
    cells: int = CELLS
    by_time: bool = False
    clip: float = 0.0
    source: tuple[float, int] = (0.02, -3)
    weights: float = 0.008
    state: tuple[float, int] = (1 / 128, 0)
    hidden: tuple[float, int] = (1 / 128, 0)
    """In which the state is computed; TFLite takes its integers for those of the state."""
    cell: float = 2.0**-12
    wide: bool = False
    """Whether all values are int16; zero points do not count then."""


def integer_lstm(f: FlatFile, of: IntegerLstm) -> Any:
    """UNIDIRECTIONAL_SEQUENCE_LSTM; of int16 as TFLite Micro has it."""

    def tensor(quantization: tuple[float, int], *shape: int, **facts: Any) -> int:
        scale, zero = quantization
        return (
            f.int16(*shape, scale=scale, **facts)
            if of.wide
            else f.int8(*shape, scale=scale, zero=zero, **facts)
        )

    steps = (of.steps, 1) if of.by_time else (1, of.steps)
    x, y = tensor(of.source, *steps, of.inputs), tensor(of.state, *steps, of.cells)
    depths = [of.inputs] * 4 + [of.cells] * 4
    weights = [f.weights(of.cells, depth, axis=None, scale=of.weights) for depth in depths]
    biases = [f.bias(x, each, of.cells) for each in weights[:4]]
    h = tensor(of.state, 1, of.cells, variable=True)
    c = f.int16(1, of.cells, scale=of.cell, variable=True)
    between = [*(f.add(0) for _ in range(4)), tensor(of.state if of.wide else of.hidden, 0)]
    inputs = [x, *weights, -1, -1, -1, *biases, -1, -1, h, c, -1, -1, -1, -1]
    options = _options(of.clip, by_time=of.by_time)
    f.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, y, intermediates=between, **options)
    return [x], [y]


def _options(clip: float, *, by_time: bool) -> dict[str, Any]:
    return {"FusedActivationFunction": TANH, "CellClip": clip, "ProjClip": 0.0, "TimeMajor": by_time}


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
        features, times, offset = (
            f.floats(*shape, spread=0.5) for shape in ((filters, 12), (filters, memory), (units,))
        )
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
        offset = f.bias(kept, times, units, np.int32)
    f.operator("SVDF", [x, features, times, offset if bias else -1, kept], y, **options)
    return [x], [y]
