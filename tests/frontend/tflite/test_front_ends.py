"""Front ends, alone and before a model, beside TFLite Micro."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from flat_files import NONE, FlatFile
from hypothesis import given
from hypothesis import strategies as st
from micro import run_micro
from programs import HOST, QUICK, results
from test_sound import Recording
from test_tflite_signal import few, samples

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import UsageError
from mcudeploy.extensions.audio.file_writer import tflite_file
from mcudeploy.extensions.audio.front_ends import FrontEnd, log_mel, mel_filters, micro_speech
from mcudeploy.extensions.audio.joining import joined_file
from tests import reports
from tests.weekly import sample

SMALL = FrontEnd(rate=8000, window=96, hop=64, channels=8, low=200, high=3000)
ROWS = 5


def written(folder: Path, front: FrontEnd = SMALL, *, quantized: bool = True) -> Path:
    path = folder / "front.tflite"
    path.write_bytes(tflite_file(micro_speech(front, quantized=quantized)))
    return path


def classifier(folder: Path, shape: tuple[int, ...] = (1, ROWS, 8), kind: str = "INT8") -> Path:
    """Three classes of a window of rows."""
    f = FlatFile()
    size = int(np.prod(shape))
    if kind == "INT8":
        x, y = f.int8(*shape), f.int8(1, 3, scale=0.3)
        flat = f.int8(1, size)
        weights = f.weights(3, size, axis=None)
        inputs = [flat, weights, f.bias(x, weights, 3)]
    else:
        x, y, flat = f.add(*shape), f.add(1, 3), f.add(1, size)
        inputs = [flat, f.floats(3, size), -1]
    f.operator("RESHAPE", [x, f.constant([1, size])], flat)
    f.operator("FULLY_CONNECTED", inputs, y, FusedActivationFunction=NONE)
    path = folder / "classifier.tflite"
    path.write_bytes(f.content([x], [y]))
    return path


def test_the_tables_of_micro_speech() -> None:
    """Its file has filters from point 5 to 241 of 257, 236 weights, and these gains."""
    contents = micro_speech(FrontEnd(), quantized=True)
    operators = {operator.op: operator for operator in contents.operators}
    ends = operators["SignalEnergy"].options
    assert (ends["start_index"], ends["end_index"]) == (5, 241)
    gains = contents.tensors[operators["SignalPCAN"].inputs[2]].array()
    assert gains[:6].tolist() == [32636, 32633, 32630, -6, 0, 0]
    log = operators["SignalFilterBankLog"].options
    assert (log["input_correction_bits"], log["output_scale"]) == (3, 64)


@few(3)
@given(
    window=st.integers(40, 300),
    share=st.floats(0.2, 1),
    channels=st.integers(1, 30),
    quantized=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_front_ends_of_any_size(
    window: int, share: float, channels: int, quantized: bool, seed: int, tmp_path: Path
) -> None:
    front = FrontEnd(16_000, window, max(1, int(window * share)), channels, 300, 5000)
    path, inputs = written(tmp_path, front, quantized=quantized), samples(seed, 12, front.hop)
    assert np.array_equal(results(path, inputs), run_micro(path, inputs))


def test_log_mel_is_what_numpy_computes(tmp_path: Path) -> None:
    path = tmp_path / "front.tflite"
    path.write_bytes(tflite_file(log_mel(SMALL)))
    inputs = samples(3, 6, SMALL.hop)
    signal = np.concatenate([np.zeros(SMALL.window - SMALL.hop), inputs.reshape(-1)]) / 32768
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(SMALL.window) / SMALL.window)
    frames = [signal[at * SMALL.hop :][: SMALL.window] * window for at in range(len(inputs))]
    powers = np.abs(np.fft.rfft(frames, SMALL.length)) ** 2
    wanted = np.log(np.maximum(powers @ mel_filters(SMALL, powers.shape[1]), 1e-6))
    assert np.allclose(results(path, inputs)[:, 0], wanted, atol=2e-3)
    assert reports.run_model(path, HOST, QUICK, inputs=[], expected=[], steps=4)["verified"]


@pytest.mark.parametrize("shape", sample([(1, ROWS, 8), (1, 8), (1, ROWS * 8)], 2))
def test_a_joined_program_has_the_bits_of_tflite_micro(shape: tuple[int, ...], tmp_path: Path) -> None:
    front, model = written(tmp_path), classifier(tmp_path, shape)
    path = tmp_path / "joined.tflite"
    path.write_bytes(joined_file(front, model))
    inputs = samples(4, 20, SMALL.hop)
    assert np.array_equal(results(path, inputs), run_micro(path, inputs))
    whole, *parts = (api.plan_model(it, load_board("mps2-an386"), QUICK) for it in (path, front, model))
    largest = max(part.plan.layout.arena_bytes for part in parts)
    states = sum(whole.plan.graph.tensors[it.tensor].size_bytes for it in whole.plan.graph.states)
    assert whole.plan.layout.arena_bytes <= 1.1 * largest + states
    queues = sum(operator.op.kind == "Queue" for operator in whole.plan.graph.operators)
    assert queues == (1 if shape == (1, 8) else 2)


def test_floats(tmp_path: Path) -> None:
    path = tmp_path / "joined.tflite"
    path.write_bytes(joined_file(written(tmp_path, quantized=False), classifier(tmp_path, kind="FLOAT32")))
    assert reports.run_model(path, HOST, QUICK, inputs=[], expected=[], steps=8)["verified"]


@pytest.mark.parametrize(
    ("shape", "kind", "message"),
    [
        ((1, ROWS, 8), "FLOAT32", "makes INT8, the model takes FLOAT32"),
        ((1, 8, ROWS), "INT8", "channels last"),
        ((1, 9), "INT8", "not a window of rows"),
    ],
)
def test_models_that_do_not_fit(shape: tuple[int, ...], kind: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        joined_file(written(tmp_path), classifier(tmp_path, shape, kind))


def test_control_flow_is_refused(tmp_path: Path) -> None:
    """The numbers of its subgraphs would be those of other ones."""
    f, body = FlatFile(), FlatFile()
    x, y, inner, output = f.int8(1, 8), f.int8(1, 8), body.int8(1, 8), body.int8(1, 8)
    body.operator("RELU", [inner], output)
    number = f.body(body, [inner], [output])
    true = f.constant(np.bool_(True), np.bool_)
    f.operator("IF", [true, x], y, ThenSubgraphIndex=number, ElseSubgraphIndex=number)
    with pytest.raises(UsageError, match="IF or WHILE"):
        joined_file(written(tmp_path), f.save(tmp_path, [x], [y]))


def test_other_files_are_refused(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"not read")
    with pytest.raises(UsageError, match=r"\.tflite files"):
        joined_file(written(tmp_path), model)


def mcudeploy(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_from_a_recording_to_a_verdict(tmp_path: Path) -> None:
    front, model = tmp_path / "front.tflite", classifier(tmp_path)
    sizes = (
        "--sample-rate",
        8000,
        "--window",
        96,
        "--step",
        64,
        "--channels",
        8,
        "--low",
        200,
        "--high",
        3000,
    )
    result = mcudeploy("frontend", "micro-speech", "-o", front, *sizes)
    assert result.exit_code == 0, result.output
    assert "between runs" in result.output
    sound = Recording(rate=8000).write(tmp_path / "word.wav", samples(5, 9, SMALL.hop).reshape(-1))
    ran = mcudeploy(
        *("run", model, "--before", front, "--board", "host", "--input", sound, "--sample-rate", 8000)
    )
    assert ran.exit_code == 0, ran.output
    assert "verified" in ran.output and "in run" in ran.output
    library = tmp_path / "library"
    built = mcudeploy(
        "build", model, "--before", front, "--board", "host", "-o", library, "--library-only", "--no-verify"
    )
    assert built.exit_code == 0, built.output
    header = (library / "include" / "classifier.h").read_text("utf-8")
    assert "int16_t *classifier_input(void)" in header and "classifier_reset" in header


def test_the_front_end_of_esphome_by_its_name(tmp_path: Path) -> None:
    """A row in 10 ms, and other tables than micro-speech with the same sizes."""
    contents = []
    for kind in ("esphome", "micro-speech"):
        front = tmp_path / f"{kind}.tflite"
        ran = mcudeploy("frontend", kind, "-o", front, *(("--step", 160) if kind != "esphome" else ()))
        assert ran.exit_code == 0, ran.output
        contents.append(front.read_bytes())
    sizes = FrontEnd(hop=160)
    esphome, plain = (tflite_file(micro_speech(sizes, quantized=True, esphome=it)) for it in (True, False))
    assert contents == [esphome, plain] and esphome != plain


@pytest.mark.parametrize(
    "words", [("--step", 500), ("--high", 9000), ("--low", 7500), ("--window", 30, "--step", 30)]
)
def test_sizes_that_do_not_fit(words: tuple[object, ...], tmp_path: Path) -> None:
    result = mcudeploy("frontend", "micro-speech", "-o", tmp_path / "front.tflite", *words)
    assert result.exit_code != 0
    assert not (tmp_path / "front.tflite").exists()


def _accumulator(path: Path) -> Path:
    """y = x + the last y, which a variable of the same name keeps in every such file."""
    f = FlatFile()
    x, y = f.add(1, 4), f.add(1, 4)
    handle = f.variable("states")
    before = f.operator("READ_VARIABLE", [handle], f.add(1, 4))
    f.operator("ADD", [x, before], y, FusedActivationFunction=NONE)
    f.operator("ASSIGN_VARIABLE", [handle, y], [])
    path.write_bytes(f.content([x], [y]))
    return path


def test_variables_of_both_files_are_apart(tmp_path: Path) -> None:
    front, model = (_accumulator(tmp_path / f"{name}.tflite") for name in ("front", "model"))
    both = tmp_path / "both.tflite"
    both.write_bytes(joined_file(front, model))
    ones = np.ones((3, 1, 4), np.float32)
    assert results(both, ones)[:, 0, 0].tolist() == [1, 3, 6]


def test_a_front_end_without_features_is_refused(tmp_path: Path) -> None:
    f = FlatFile()
    x, y = f.add(1, 4), f.add(1, 0)
    f.operator("RESHAPE", [x, f.constant([1, 0])], y)
    front = tmp_path / "empty.tflite"
    front.write_bytes(f.content([x], [y]))
    with pytest.raises(UsageError, match="no features"):
        joined_file(front, _accumulator(tmp_path / "model.tflite"))
