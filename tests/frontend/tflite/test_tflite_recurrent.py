"""LSTM of .tflite files beside LiteRT, over several inferences: its state is kept between them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from against_litert import rounding
from flat_files import FlatFile, drawn
from flat_recurrent import IntegerLstm, integer_lstm, lstm
from micro import run_micro
from programs import results

from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.networks.refusals import problems_of


@pytest.mark.parametrize("options", [{}, {"clip": 0.3}, {"by_time": True}], ids=str)
def test_inferences_go_on_from_each_other_as_in_litert(options: dict[str, Any], tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *lstm(file, **options))
    roundings = rounding(path, 8)
    assert roundings.outputs.worst <= 1e-6 * roundings.outputs.range
    assert roundings.outputs.range > 0


@pytest.mark.parametrize(
    "of",
    [
        IntegerLstm(steps=400),
        IntegerLstm(steps=400, inputs=13, cells=9, clip=0.5, by_time=True),
        IntegerLstm(steps=400, cells=4, state=(0.0071, 5), hidden=(0.009, 3), source=(0.031, 20)),
        IntegerLstm(steps=400, inputs=8, weights=0.03, cell=2.0**-9, hidden=(0.0051, -11)),
        IntegerLstm(steps=400, inputs=1, cells=3, weights=0.02, cell=2.0**-15),
    ],
    ids=range(5),
)
def test_integers_have_the_bits_of_litert_in_long_sequences(of: IntegerLstm, tmp_path: Path) -> None:
    file = FlatFile()
    roundings = rounding(file.save(tmp_path, *integer_lstm(file, of)), 3)
    assert roundings.outputs.worst == 0
    assert roundings.outputs.range > 50
    assert "LstmInt8" in roundings.kinds.values()
    assert all(each.worst == 0 for each in roundings.operators.values())


@pytest.mark.parametrize(
    "of",
    [
        IntegerLstm(steps=200, source=(0.0002, 0), state=(2.0**-15, 0)),
        IntegerLstm(steps=200, inputs=13, cells=9, clip=0.5, source=(0.0003, 0), state=(0.000_029, 0)),
        IntegerLstm(steps=10, inputs=600, cells=8, cell=2.0**-9, source=(0.0001, 0), state=(0.000_031, 0)),
        IntegerLstm(
            steps=200, inputs=1, cell=2.0**-15, source=(0.0009, 0), state=(0.000_03, 0), by_time=True
        ),
    ],
    ids=range(4),
)
def test_int16_has_the_bits_of_tflite_micro_in_long_sequences(of: IntegerLstm, tmp_path: Path) -> None:
    """LiteRT has no such LSTM."""
    file = FlatFile()
    (x,), outputs = integer_lstm(file, replace(of, wide=True))
    path = file.save(tmp_path, [x], outputs)
    inputs = np.stack([drawn(file, x) for _ in range(2)])
    wanted = run_micro(path, inputs)
    assert np.ptp(wanted.astype(np.int32)) > 10_000
    np.testing.assert_array_equal(results(path, inputs), wanted)


def test_a_program_of_an_lstm_is_verified_and_keeps_its_state(tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *lstm(file, int8=True, clip=0.5))
    for stateful in (False, True):
        options = Options(time_limit=0.5, stateful=stateful)
        report = reports.verified(path, options=options)
        assert report["state_bytes"] == (1 + 2) * 6


@pytest.mark.parametrize("wide", [False, True])
def test_a_program_of_an_lstm_of_integers_is_verified_operator_by_operator(
    wide: bool, tmp_path: Path
) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *integer_lstm(file, IntegerLstm(steps=30, cells=7, wide=wide)))
    report = reports.verified(path)
    assert report["mismatches"] == 0


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (IntegerLstm(cell=0.0003), "the scale of its cell state is 0.0003; TFLite needs 2^-15"),
        (IntegerLstm(cell=2.0**-8), "the scale of its cell state"),
        (IntegerLstm(state=(2.0**-31, 0), hidden=(2.0**-31, 0)), "the scale of its state is too small"),
    ],
)
def test_states_of_integers_that_are_not_supported(of: IntegerLstm, words: str, tmp_path: Path) -> None:
    for wide in (False, True):
        file = FlatFile()
        assert (
            words in problems_of(file.save(tmp_path, *integer_lstm(file, replace(of, wide=wide))))[0].reason
        )


def test_a_file_without_the_scale_of_the_state(tmp_path: Path) -> None:
    file = FlatFile()
    inputs, outputs = integer_lstm(file, IntegerLstm())
    op, read, results, options = file.operators[0]
    file.operators[0] = (op, read, results, {**options, "intermediates": ()})
    assert (
        "the file lacks the scale in which its state is computed"
        in problems_of(file.save(tmp_path, inputs, outputs))[0].reason
    )


@pytest.mark.parametrize(
    ("position", "words"),
    [(1, "coupled"), (9, "peepholes"), (16, "a projection"), (20, "layer normalisation"), (18, "variable")],
)
def test_what_is_not_supported(position: int, words: str, tmp_path: Path) -> None:
    file = FlatFile()
    inputs, outputs = lstm(file)
    read = list(file.operators[0][1])
    read[position] = -1 if position == 1 else file.add(1, 6)
    file.operators[0] = (file.operators[0][0], read, *file.operators[0][2:])
    assert words in problems_of(file.save(tmp_path, inputs, outputs))[0].reason
