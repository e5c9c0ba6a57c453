"""int8 weights of float activations: exact products with the weights that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flat_files import NONE, VALID, FlatFile, drawn, litert, translated
from flat_recurrent import CELLS, INPUTS, STEPS, TANH
from harness import outputs_of

from mcudeploy.frontend.load import load
from tests import reports

ROUNDED = 0.03
"""Share of the range by which LiteRT differs, which rounds the inputs of such products to int8."""
WINDOW = {"Padding": VALID, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}


def dense(f: FlatFile) -> Any:
    x, w, b = f.add(1, 40), f.weights(7, 40, axis=None), f.floats(7)
    f.operator("FULLY_CONNECTED", [x, w, b], y := f.add(1, 7), FusedActivationFunction=NONE)
    return [x], [y]


def convolution(f: FlatFile) -> Any:
    x, w, b = f.add(1, 7, 6, 4), f.weights(5, 3, 3, 4), f.floats(5)
    f.operator("CONV_2D", [x, w, b], y := f.add(1, 5, 4, 5), FusedActivationFunction=NONE, **WINDOW)
    return [x], [y]


def depthwise(f: FlatFile) -> Any:
    x, w = f.add(1, 7, 6, 4), f.weights(1, 3, 3, 4, axis=3)
    b = f.floats(4)
    options = {"FusedActivationFunction": NONE, "DepthMultiplier": 1, **WINDOW}
    f.operator("DEPTHWISE_CONV_2D", [x, w, b], y := f.add(1, 5, 4, 4), **options)
    return [x], [y]


def recurrent(f: FlatFile) -> Any:
    x, y = f.add(1, STEPS, INPUTS), f.add(1, STEPS, CELLS)
    weights = [f.weights(CELLS, depth, axis=None, scale=0.008) for depth in [INPUTS] * 4 + [CELLS] * 4]
    biases = [f.constant(f.random.normal(0, 0.5, CELLS), np.float32) for _ in range(4)]
    h, c = (f.add(1, CELLS, variable=True) for _ in range(2))
    inputs = [x, *weights, -1, -1, -1, *biases, -1, -1, h, c, -1, -1, -1, -1]
    options = {"FusedActivationFunction": TANH, "CellClip": 0.0, "ProjClip": 0.0, "TimeMajor": False}
    f.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, y, **options)
    return [x], [y]


def memory(f: FlatFile) -> Any:
    x, features, times = f.add(1, 12), f.weights(10, 12, axis=None), f.weights(10, 6, axis=None)
    kept, y = f.add(1, 60, variable=True), f.add(1, 5)
    f.operator("SVDF", [x, features, times, -1, kept], y, Rank=2, FusedActivationFunction=NONE)
    return [x], [y]


def with_float_weights(file: FlatFile) -> FlatFile:
    """The file with the real numbers that its weights stand for."""
    changed = replace(file, tensors=list(file.tensors))
    for number, tensor in enumerate(changed.tensors):
        if tensor.data is not None and len(tensor.scale):
            along = [1] * len(tensor.shape)
            along[tensor.axis] = len(tensor.scale)
            values = tensor.data * np.asarray(tensor.scale, np.float32).reshape(along)
            changed.tensors[number] = replace(
                tensor, kind="FLOAT32", scale=(), zero_point=(), data=values.astype(np.float32)
            )
    return changed


@pytest.mark.parametrize("make", [dense, convolution, depthwise, recurrent, memory])
def test_weights_count_as_what_they_stand_for(make: Callable[[FlatFile], Any], tmp_path: Path) -> None:
    file = FlatFile()
    inputs, outputs = make(file)
    path = file.save(tmp_path, inputs, outputs)
    values = [drawn(file, number) for number in inputs]
    names, results = ([file.tensors[it].name for it in each] for each in (inputs, outputs))
    (own,) = translated(path, names, results, values)
    (tmp_path / "exact").mkdir()
    (exact,) = litert(with_float_weights(file).save(tmp_path / "exact", inputs, outputs), values)
    (rounded,) = litert(path, values)
    span = np.ptp(exact)
    assert span > 0
    assert np.abs(own - exact).max() <= 1e-5 * span
    assert np.abs(own - rounded).max() <= ROUNDED * span
    if make in (recurrent, memory):
        reports.verified(path)
    else:
        result = outputs_of(load(path), dict(zip(names, values, strict=True)))[results[0]]
        assert np.abs(result - exact).max() <= 1e-5 * span


def test_the_note_stands_once(tmp_path: Path) -> None:
    f = FlatFile()
    x, first, second = f.add(1, 8), f.weights(6, 8, axis=None), f.weights(4, 6, axis=None)
    f.operator("FULLY_CONNECTED", [x, first, -1], a := f.add(1, 6), FusedActivationFunction=NONE)
    f.operator("FULLY_CONNECTED", [a, second, -1], y := f.add(1, 4), FusedActivationFunction=NONE)
    (note,) = load(f.save(tmp_path, [x], [y])).notes
    assert "dynamic range quantisation" in note
