"""Front ends before models with states, which take several new rows in each run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from flat_files import NONE, FlatFile
from hypothesis import given
from hypothesis import strategies as st
from micro import run_micro
from programs import HOST, QUICK, results
from speech import speech_like
from test_sound import Recording
from test_tflite_signal import few, samples

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import UsageError
from mcudeploy.extensions.audio.file_writer import tflite_file
from mcudeploy.extensions.audio.front_ends import FrontEnd, log_mel, micro_speech
from mcudeploy.extensions.audio.joining import joined_file
from tests import reports
from tests.networks.refusals import problems_of

SMALL = FrontEnd(rate=8000, window=96, hop=64, channels=8, low=200, high=3000)


def sums(path: Path, rows: int, channels: int) -> Path:
    """A model whose output is the sum of its inputs of all runs, float32 [1, rows, channels]."""
    f = FlatFile()
    x, y = f.add(1, rows, channels), f.add(1, rows, channels)
    handle = f.variable("sum")
    before = f.operator("READ_VARIABLE", [handle], f.add(1, rows, channels))
    f.operator("ADD", [x, before], y, FusedActivationFunction=NONE)
    f.operator("ASSIGN_VARIABLE", [handle, y], [])
    path.write_bytes(f.content([x], [y]))
    return path


def joined(front: Path, model: Path) -> Path:
    path = front.with_name("joined.tflite")
    path.write_bytes(joined_file(front, model))
    return path


def summed(rows: np.ndarray, count: int) -> np.ndarray:
    """The sums over runs of `count` rows."""
    return np.cumsum(rows.reshape(-1, 1, count, rows.shape[-1]), axis=0, dtype=np.float32)


@few(3)
@given(
    count=st.integers(2, 4), share=st.floats(0.2, 1), window=st.integers(40, 200), seed=st.integers(0, 2**31)
)
def test_rows_of_one_run_are_those_of_several_runs(
    count: int, share: float, window: int, seed: int, tmp_path: Path
) -> None:
    sizes = FrontEnd(16_000, window, max(1, int(window * share)), 8, 300, 5000)
    front = tmp_path / "front.tflite"
    front.write_bytes(tflite_file(micro_speech(sizes, quantized=False)))
    inputs = samples(seed, 6 * count, sizes.hop)
    path = joined(front, sums(tmp_path / "sums.tflite", count, sizes.channels))
    rows = results(path, inputs.reshape(-1, count, sizes.hop))
    assert np.array_equal(rows, summed(run_micro(front, inputs), count))


def test_a_state_is_handed_on_in_its_place(tmp_path: Path) -> None:
    """Several rows in each run take no more states than one."""
    front = tmp_path / "front.tflite"
    front.write_bytes(tflite_file(micro_speech(SMALL, quantized=False)))
    path = joined(front, sums(tmp_path / "sums.tflite", 3, SMALL.channels))
    graph = api.plan_model(path, load_board("mps2-an386"), QUICK).plan.graph
    sizes = sorted(graph.tensors[state.tensor].size_bytes for state in graph.states)
    assert sizes == [8 * 4, 3 * 8 * 4, 96 * 2]
    assert [len(state.chain) for state in graph.states if state.through] == [4, 4]


def test_a_front_end_with_variables(tmp_path: Path) -> None:
    front, model = sums(tmp_path / "front.tflite", 1, 4), sums(tmp_path / "model.tflite", 3, 4)
    inputs = np.arange(4 * 3 * 4, dtype=np.float32).reshape(4, 3, 4)
    rows = np.cumsum(inputs.reshape(-1, 4), axis=0)
    computed = results(joined(front, model), inputs.reshape(4, 3, 1, 4))
    assert np.array_equal(computed, summed(rows, 3))


def test_floats_are_verified(tmp_path: Path) -> None:
    front = tmp_path / "front.tflite"
    front.write_bytes(tflite_file(log_mel(SMALL)))
    path = joined(front, sums(tmp_path / "sums.tflite", 2, SMALL.channels))
    report = reports.run_model(path, HOST, QUICK, inputs=[], expected=[], steps=5)
    assert report["verified"], report["reason"]


@pytest.mark.parametrize("operator", ["SignalFramer", "SignalOverlapAdd"])
def test_states_that_cannot_be_handed_on_are_refused(operator: str, tmp_path: Path) -> None:
    f = FlatFile()
    x = f.add(1, 16, kind="INT16")
    if operator == "SignalFramer":
        result, valid = f.add(1, 2, 16, kind="INT16"), f.add(kind="BOOL")
        f.operator(operator, [x], [result, valid], frame_size=16, frame_step=8, prefill=False)
        result = f.operator("RESHAPE", [result, f.constant([1, 32])], f.add(1, 32, kind="INT16"))
    else:
        result = f.operator(operator, [x], f.add(1, 8, kind="INT16"), frame_step=8, T=7)
    y = f.operator("CAST", [result], f.add(*f.tensors[result].shape))
    front = tmp_path / "front.tflite"
    front.write_bytes(f.content([x], [y]))
    model = sums(tmp_path / "sums.tflite", 2, int(np.prod(f.tensors[y].shape)))
    assert any("several times in a run" in it.reason for it in problems_of(joined(front, model)))


def test_a_front_end_of_two_inputs_is_refused(tmp_path: Path) -> None:
    f = FlatFile()
    x, other, y = f.add(1, 4), f.add(1, 4), f.add(1, 4)
    f.operator("ADD", [x, other], y, FusedActivationFunction=NONE)
    front = tmp_path / "front.tflite"
    front.write_bytes(f.content([x, other], [y]))
    with pytest.raises(UsageError, match="2 rows in each run"):
        joined(front, sums(tmp_path / "sums.tflite", 2, 4))


def test_a_recording_of_any_length(tmp_path: Path) -> None:
    """Samples that fill no run of three hops are left out; TFLite Micro has no CALL."""
    front = tmp_path / "front.tflite"
    front.write_bytes(tflite_file(micro_speech(SMALL, quantized=False)))
    model = sums(tmp_path / "sums.tflite", 3, SMALL.channels)
    sound = Recording(rate=8000).write(tmp_path / "word.wav", speech_like(0.1)[: 5 * 3 * SMALL.hop + 100])
    words = ["run", model, "--before", front, "--board", "host", "--input", sound, "--sample-rate", 8000]
    ran = CliRunner().invoke(cli, [str(word) for word in words])
    assert ran.exit_code == 0, ran.output
    assert "2 more samples" in ran.output  # after three
    ran = CliRunner().invoke(cli, [str(word) for word in [*words, "--reference", "tflm"]])
    assert ran.exit_code != 0 and "has no CALL" in ran.output
