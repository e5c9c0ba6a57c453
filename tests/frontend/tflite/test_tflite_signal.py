"""The signal operators of TensorFlow Lite Micro, beside the wheel of TensorFlow Lite Micro."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flat_signal import INT16, SignalFile, every_operator, preprocessor
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from micro import run_micro, run_micro_all
from programs import HOST, QUICK, all_results, results

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import ModelError
from mcudeploy.device.target import Target
from mcudeploy.frontend.load import load
from tests import reports
from tests.networks.refusals import problems_of


def samples(seed: int, runs: int, size: int) -> np.ndarray:
    """Loud and soft noise, silence, and the least number."""
    random = np.random.default_rng(seed)
    loud = random.integers(-(2**15), 2**15, (runs, 1, size))
    soft = random.normal(0, 1, loud.shape) * 10 ** random.uniform(0, 4, (runs, 1, 1))
    drawn = np.where(random.integers(0, 2, (runs, 1, 1)) == 0, loud, soft)
    drawn[runs // 2] = 0
    return np.clip(drawn, -(2**15), 2**15 - 1).astype(np.int16)


def few(examples: int) -> settings:
    """Settings of a test that builds programs: a failure is not shrunk."""
    return settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


def saved(file: SignalFile, folder: Path) -> Path:
    return file.flat.save(folder, [file.x], file.outputs)


@few(4)
@given(seed=st.integers(0, 2**31))
def test_every_operator_has_the_bits_of_tflite_micro(seed: int, tmp_path: Path) -> None:
    file = every_operator(seed)
    path, inputs = saved(file, tmp_path), samples(seed, 12, file.size)
    wanted = run_micro_all(path, inputs, len(file.outputs))
    computed = all_results(path, inputs)
    for at, number in enumerate(file.outputs):
        ready = np.full(len(inputs), True)
        if number in file.valid:
            ready = wanted[file.outputs.index(file.valid[number])].astype(bool)
        producer = next(op for op, _, outputs, _ in file.flat.operators if number in outputs)
        assert np.array_equal(computed[at][ready], wanted[at][ready]), f"output {at} of {producer}"


@few(2)
@given(seed=st.integers(0, 2**31))
def test_the_reference_computes_the_same(seed: int, tmp_path: Path) -> None:
    report = reports.run_model(
        saved(every_operator(seed), tmp_path), HOST, QUICK, inputs=[], expected=[], steps=6
    )
    assert report["verified"], report["reason"]
    assert report["mismatches"] == 0


@pytest.mark.parametrize("quantized", [True, False])
def test_a_preprocessor_of_500_frames(quantized: bool, tmp_path: Path) -> None:
    path, inputs = saved(preprocessor(quantized=quantized), tmp_path), samples(1, 500, 480)
    assert np.array_equal(results(path, inputs), run_micro(path, inputs))


def test_a_preprocessor_on_an_emulated_board(tmp_path: Path) -> None:
    path, target = saved(preprocessor(quantized=True), tmp_path), Target(load_board("mps2-an386"))
    report = reports.run_model(path, target, QUICK, inputs=[], expected=[], steps=4)
    assert report["verified"], report["reason"]
    assert report["state_bytes"] == 40 * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"damaged": b"\xff\x00\x01"}, "options are missing, damaged"),
        ({"T": INT16}, "fft_length is needed"),
        ({"T": 9, "fft_length": 32}, "its option T is 9"),
        ({"T": INT16, "fft_length": 28}, "factor 7"),
        ({"T": INT16, "fft_length": 33}, "even lengths"),
        ({"T": INT16, "fft_length": 64}, "do not fit a transform of 64"),
    ],
)
def test_options_that_do_not_fit(change: dict[str, object], message: str, tmp_path: Path) -> None:
    file = SignalFile(20, 1)
    file.out(file.flat.operator("SignalRfft", [file.x], file.short(1, 34), **change))
    (problem,) = problems_of(saved(file, tmp_path))
    assert problem.node.endswith("SignalRfft") and message in problem.reason


def test_sums_of_64_bits_stay_inside(tmp_path: Path) -> None:
    file = SignalFile(20, 1)
    energy = file.flat.operator(
        "SignalEnergy", [file.flattened(file.x)], file.word(10), start_index=0, end_index=10
    )
    file.filter_bank(energy, file.flat.constant(np.array(0)))
    file.outputs[:] = [
        next(outputs[0] for op, _, outputs, _ in file.flat.operators if op == "SignalFilterBank")
    ]
    with pytest.raises(ModelError) as refused:
        load(saved(file, tmp_path))
    assert "UINT64" in str(refused.value) or "64 bits" in str(refused.value.problems[0])
