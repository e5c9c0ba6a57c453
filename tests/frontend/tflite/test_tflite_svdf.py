"""SVDF of .tflite files beside LiteRT, and with int8 states beside TFLite Micro: the state is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from against_litert import rounding
from flat_files import FlatFile, drawn, litert
from flat_recurrent import svdf
from micro import run_micro
from numpy.typing import NDArray

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import UsageError
from mcudeploy.device.target import Target, open_device
from mcudeploy.frontend.load import load
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.compare import Storage, run_once
from tests import reports
from tests.networks.refusals import problems_of
from tests.weekly import sample

HOST = Target(load_board("host"))
QUICK = Options(time_limit=0.5)


@pytest.mark.parametrize("rank", [1, 2])
def test_floats_are_those_of_litert(rank: int, tmp_path: Path) -> None:
    file = FlatFile()
    roundings = rounding(file.save(tmp_path, *svdf(file, rank=rank)), 10)
    assert roundings.outputs.worst <= 1e-6 * roundings.outputs.range


@pytest.mark.parametrize(
    "options", sample([{"reach": 6.0}, {"bias": False}, {}, {"zero_point": -50}], 2), ids=str
)
def test_states_of_int16_are_within_an_lsb_of_litert(options: dict[str, Any], tmp_path: Path) -> None:
    """Most values of the state saturate if it reaches 6."""
    file = FlatFile()
    roundings = rounding(file.save(tmp_path, *svdf(file, state="INT16", **options)), 10)
    assert roundings.outputs.worst <= 1 < roundings.outputs.range


@pytest.mark.parametrize(("rank", "zero_point"), [(1, -128), (3, -128), (1, -50)])
def test_states_of_int8_are_within_an_lsb_of_tflite_micro(rank: int, zero_point: int, tmp_path: Path) -> None:
    """With a bias, without which TFLite Micro crashes; no value saturates, which it lets wrap around."""
    file = FlatFile()
    path = file.save(tmp_path, *svdf(file, state="INT8", rank=rank, zero_point=zero_point))
    inputs = np.random.default_rng(0).integers(-128, 128, (20, 1, 12), np.int8)
    wanted = run_micro(path, inputs).reshape(20, -1).astype(int)
    computed = _results(path, inputs)
    assert np.abs(computed - wanted).max() <= 1
    assert np.unique(wanted).size > 20


def _results(path: Path, inputs: NDArray[np.int8]) -> NDArray[np.int_]:
    """The program's outputs, each inference continuing from the previous one."""
    deployment = api.plan_model(path, HOST.board, QUICK)
    graph, storage = deployment.plan.graph, Storage.of(deployment.plan)
    (source,), (result,), (state,) = graph.own_inputs(), graph.own_outputs(), graph.states
    kept, results = state.initial, []
    with open_device(HOST, deployment.build(HOST)) as machine:
        for x in inputs:
            run_once(machine, storage, {source.tensor: x.reshape(1, 1, -1), state.tensor: kept})
            results.append(storage.get_tensor(machine, result.tensor).reshape(-1).astype(int))
            kept = storage.get_tensor(machine, state.tensor)
    return np.array(results)


@pytest.mark.parametrize(
    ("state", "bias", "size"),
    [("FLOAT32", True, 4), ("INT16", True, 4), ("INT8", True, 1), ("INT8", False, 1)],
)
def test_a_program_is_verified_and_keeps_its_state(state: str, bias: bool, size: int, tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *svdf(file, state=state, bias=bias))
    report = reports.verified(path, options=QUICK)
    assert report["state_bytes"] == size * 60


def test_wide_integers_at_the_borders_are_real_numbers(tmp_path: Path) -> None:
    f = FlatFile()
    (x,), (y,) = svdf(f, state="INT8")
    wide = {"scale": (0.001,), "zero_point": (0,)}
    fed, given = f.add(1, 12, kind="INT16", **wide), f.add(1, 5, kind="INT32", **wide)
    f.operator("QUANTIZE", [y], given)
    f.operators.insert(0, ("QUANTIZE", [fed], [x], {}))
    path = f.save(tmp_path, [fed], [given])
    graph = load(path)
    assert [io.dtype for io in (*graph.own_inputs(), *graph.own_outputs())] == ["float32"] * 2
    assert any("INT16 in the file" in note for note in graph.notes)
    assert any("output" in note and "INT32" in note for note in graph.notes)
    assert reports.run_model(path, HOST, QUICK, inputs=[], expected=[])["verified"]


@pytest.mark.parametrize(("fed", "output"), [("INT32", "INT16"), ("INT16", "INT32")])
def test_arrays_have_the_integers_that_the_file_declares(fed: str, output: str, tmp_path: Path) -> None:
    f = FlatFile()
    x = f.add(1, 2, 16, 2, kind=fed, scale=(5e-4 if fed == "INT16" else 7e-9,), zero_point=(0,))
    y = f.add(1, 2, 16, 2, kind=output, scale=(6e-4 if output == "INT16" else 8e-9,), zero_point=(0,))
    f.operator("QUANTIZE", [x], y)
    path = f.save(tmp_path, [x], [y])
    given, expected, other = (tmp_path / f"{name}.npy" for name in ("given", "expected", "other"))
    value = drawn(f, x)
    np.save(given, value)
    np.save(expected, litert(path, [value])[0])
    np.save(other, value.astype(np.int64))
    assert np.load(expected).dtype.name == output.lower()
    report = reports.run_model(path, HOST, QUICK, inputs=[given], expected=[expected])
    assert report["verified"], report["reason"]
    with pytest.raises(UsageError, match=f"t0 of the model is {fed.lower()}, or the float32"):
        reports.run_model(path, HOST, QUICK, inputs=[other], expected=[])


@pytest.mark.parametrize(
    ("position", "shape", "words"),
    [(4, (1, 60), "not a variable tensor"), (4, (1, 59), "do not fit"), (0, (2, 12), "the batch must be 1")],
)
def test_what_does_not_fit(position: int, shape: tuple[int, int], words: str, tmp_path: Path) -> None:
    file = FlatFile()
    inputs, outputs = svdf(file, state="INT8")
    op, read, results, options = file.operators[0]
    file.operators[0] = (op, [*read[:position], file.int8(*shape), *read[position + 1 :]], results, options)
    assert words in problems_of(file.save(tmp_path, inputs, outputs))[0].reason
