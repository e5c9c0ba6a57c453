"""Operators of the core between those of the unit, in one arena: no copy, cuts, states and moving windows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from units_on_host import HOST, prefer_unit

from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from tests import reports

sys.path.append(str(Path(__file__).parents[1] / "frontend" / "tflite"))

from flat_cases import NONE, SAME, VALID, window
from flat_files import FlatFile
from flat_recurrent import IntegerLstm, integer_lstm

pytest.importorskip("ethosu", reason="Vela is not installed: pip install mcudeploy[ethosu]")

Ends = tuple[Sequence[int], Sequence[int]]


def convolved(
    f: FlatFile, x: int, shape: tuple[int, ...], kernel: tuple[int, int], padding: int = SAME
) -> int:
    """Add a convolution with an output of a shape; its number."""
    channels = f.tensors[x].shape[-1]
    w = f.weights(shape[-1], *kernel, channels)
    y = f.int8(*shape, scale=0.1, zero=-20)
    return f.operator("CONV_2D", [x, w, f.bias(x, w, shape[-1])], y, **window(padding, 1, NONE))


def resized(f: FlatFile) -> Ends:
    """Convolution, linear resize, convolution."""
    x = f.int8(1, 16, 16, 3)
    small = convolved(f, x, (1, 16, 16, 8), (3, 3))
    large = f.int8(1, 24, 24, 8, scale=0.1, zero=-20)
    f.operator("RESIZE_BILINEAR", [small, f.constant([24, 24])], large, HalfPixelCenters=True)
    return [x], [convolved(f, large, (1, 24, 24, 8), (3, 3))]


def recurrent(f: FlatFile) -> Ends:
    """Dense layer of each step, LSTM, dense layer of each step."""
    of = IntegerLstm(steps=6, inputs=8)
    (source,), (hidden,) = integer_lstm(f, of)
    (lstm,) = f.operators
    f.operators.clear()
    x, w = f.int8(1, 6, 12), f.weights(8, 12, axis=None)
    f.operator("FULLY_CONNECTED", [x, w, f.bias(x, w, 8)], source, KeepNumDims=True)
    f.operators.append(lstm)
    v = f.weights(10, of.cells, axis=None)
    y = f.int8(1, 6, 10, scale=0.1, zero=4)
    f.operator("FULLY_CONNECTED", [hidden, v, f.bias(hidden, v, 10)], y, KeepNumDims=True)
    return [x], [y]


def over_time(f: FlatFile) -> Ends:
    """Convolutions over 12 rows, a softmax of each row between them."""
    x = f.int8(1, 12, 4, 3)
    first = convolved(f, x, (1, 10, 4, 8), (3, 1), VALID)
    f.operator("SOFTMAX", [first], share := f.int8(1, 10, 4, 8, scale=1 / 256, zero=-128), Beta=1.0)
    return [x], [convolved(f, share, (1, 8, 4, 8), (3, 1), VALID)]


@pytest.mark.parametrize(
    ("of", "options"),
    [
        (resized, Options(time_limit=0.5, max_overhead=100.0)),
        (recurrent, Options(split=False)),
        (over_time, Options(time_limit=0.5, hop=2)),
    ],
)
def test_the_core_computes_between_steps_of_the_unit(
    of: Callable[[FlatFile], Ends], options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefer_unit(monkeypatch)
    flat = FlatFile()
    path = flat.save(tmp_path, *of(flat))
    report = reports.run_model(path, Target(HOST), options, inputs=[], expected=[])
    assert report["verified"], report["reason"]
    by_unit = [it["kernel"].endswith("_npu") for it in report["operators"]]
    first, last = by_unit.index(True), len(by_unit) - 1 - by_unit[::-1].index(True)
    assert not all(by_unit[first:last])
    assert report["moved_bytes"] == 0 and len(report["arenas"]) == 1
    assert (report["state_bytes"] > 0) == (of is not resized)
