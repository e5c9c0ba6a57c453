"""`mcudeploy quantize`: its files, its messages, and its failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.common.files import is_ours
from mcudeploy.device.target import Target
from mcudeploy.frontend.load import load
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.networks.onnx_files import build, node
from tests.networks.small import classifier, folder_of, images, two_inputs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a model `m.onnx`, 40 samples in `d/`, and no settings."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("MCUDEPLOY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    classifier(tmp_path / "m.onnx")
    folder_of(tmp_path / "d", images(40))
    return tmp_path


def call(line: str) -> Result:
    return CliRunner().invoke(cli, ["quantize", *line.split()])


def report_of(line: str) -> dict[str, Any]:
    result = call(f"{line} --json")
    assert result.exit_code == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def _counts(report: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in report["samples"].items() if not isinstance(value, list)}


def refused(line: str, message: str, code: int = 2) -> None:
    result = call(line)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert not Path("q.onnx").exists()


def test_a_float_model_runs_verified_in_int8(folder: Path) -> None:
    report = report_of("m.onnx --data d -o q.onnx")
    assert {one["method"] for one in report["methods"]} == {"minmax", "entropy", "percentile"}
    near = max(one["sqnr_db"] for one in report["methods"]) - 1  # 10 samples tell nothing of classes
    tied = [one for one in report["methods"] if one["sqnr_db"] >= near]
    if len(tied) > 1:
        tied = [max(tied, key=lambda one: one["all_samples_sqnr_db"])]
    assert (report["method"], report["top1_agreement"]) == (tied[0]["method"], tied[0]["top1_agreement"])
    assert _counts(report) == {"found": 40, "calibration": 30, "comparison": 10, "held_out": True}
    assert report["top1_agreement"] >= 0.9 and report["outputs"][0]["sqnr_db"] > 20
    assert report["outputs"][0]["name"] == "classes" and report["accuracy"] is None
    assert {"first", "depthwise"} <= {one["node"] for one in report["layers"]}
    assert report["worst_step"] in {one["node"] for one in report["layers"]}
    assert report["float_nodes"] == [] and report["next"] == "mcudeploy run q.onnx --board BOARD"
    assert report["size_bytes"]["int8"] == Path("q.onnx").stat().st_size
    assert reports.check_model(folder / "q.onnx", None, Options())["supported"]
    inputs = {"inputs": [folder / "x.npy"], "expected": []}
    np.save(folder / "x.npy", images(1))
    ran = reports.run_model(folder / "q.onnx", Target(load_board("host")), Options(time_limit=0.5), **inputs)
    assert ran["verified"], ran["reason"]


def test_a_transposed_convolution_of_groups_with_a_bias(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights, bias = rng.normal(size=(8, 2, 3, 3)), rng.normal(size=4)
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], "up", group=2, strides=[2, 2])
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", (1, 8, 6, 6)), ("y", (1, 4, 13, 13)))
    )
    constants = [numpy_helper.from_array(it.astype(np.float32), n) for n, it in (("w", weights), ("b", bias))]
    graph = helper.make_graph([node], "up", [x], [y], constants)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "f.onnx",
    )
    np.save(tmp_path / "x.npy", rng.normal(size=(20, 1, 8, 6, 6)).astype(np.float32))
    paths = [str(tmp_path / name) for name in ("f.onnx", "x.npy", "q.onnx")]
    report = report_of(f"{paths[0]} --data {paths[1]} -o {paths[2]}")
    assert report["outputs"][0]["sqnr_db"] > 25
    ran = reports.run_model(
        tmp_path / "q.onnx", Target(load_board("host")), Options(time_limit=0.5), inputs=[], expected=[]
    )
    assert ran["verified"], ran["reason"]


@pytest.mark.parametrize(
    ("shape", "beta"),
    [((), 1.0), ((1,), 1.0), ((1, 8), 1.0), ((1, 1), 2.0), ((4, 1), 1.0), ((4, 8), 0.5), ((8,), 2.0)],
)
def test_biases_of_every_shape(shape: tuple[int, ...], beta: float, folder: Path) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(16, 8)).astype(np.float32)
    bias = np.asarray(4 + rng.normal(size=shape), np.float32)
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], "dense", beta=beta)
    onnx.save(build([node], {"x": (np.float32, (4, 16))}, ["y"], {"w": weights, "b": bias}), "g.onnx")
    np.save("x.npy", rng.uniform(-1, 1, size=(40, 4, 16)).astype(np.float32))
    report = report_of("g.onnx --data x.npy -o q.onnx --method minmax")
    assert report["outputs"][0]["sqnr_db"] > 25 and not report["float_nodes"]
    assert "b" not in {it.name for it in onnx.load("q.onnx").graph.initializer}


def test_the_table(folder: Path) -> None:
    result = call("m.onnx --data d -o q.onnx")
    assert result.exit_code == 0
    for word in (
        "minmax",
        "entropy",
        "percentile",
        "chosen",
        "worst layers",
        "depthwise",
        "calibrated with 30",
    ):
        assert word in result.stdout
    assert result.stdout.rstrip().endswith("next: mcudeploy run q.onnx --board BOARD")
    assert "calibrating: minmax" in result.stderr and "Collecting" not in result.stdout + result.stderr


def test_the_same_bytes_again_and_over_our_own_file(folder: Path) -> None:
    before = report_of("m.onnx --data d -o q.onnx --method minmax")
    content = Path("q.onnx").read_bytes()
    assert is_ours(Path("q.onnx"))
    assert report_of("m.onnx --data d -o q.onnx --method minmax") == before
    assert Path("q.onnx").read_bytes() == content
    report_of("m.onnx --data d -o q.onnx --method minmax --seed 7")
    assert Path("q.onnx").read_bytes() != content


def test_other_files_stay(folder: Path) -> None:
    Path("theirs.onnx").write_bytes(Path("m.onnx").read_bytes())
    result = call("m.onnx --data d -o theirs.onnx")
    assert result.exit_code == 2 and "--force" in result.stderr
    assert Path("theirs.onnx").read_bytes() == Path("m.onnx").read_bytes()
    assert call("m.onnx --data d -o m.onnx --force").exit_code == 2
    assert call("m.onnx --data d -o theirs.onnx --force --method minmax").exit_code == 0
    np.save("x.npy", images(9))
    assert call("m.onnx --data x.npy -o x.npy --force").exit_code == 2
    assert np.array_equal(np.load("x.npy"), images(9))


def test_weights_among_the_inputs_are_weights(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = report_of("m.onnx --data d -o q.onnx --method minmax")
    model = onnx.load("m.onnx")
    for tensor in model.graph.initializer:
        listed = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        model.graph.input.append(listed)
    model.ir_version = 3
    onnx.save(model, "m.onnx")
    report = report_of("m.onnx --data d -o q.onnx --method minmax")
    assert report["outputs"] == before["outputs"] and report["layers"] == before["layers"]
    assert capfd.readouterr() == ("", "")


def test_labels_tell_the_accuracy(folder: Path) -> None:
    Path("l.txt").write_text("1\n" * 40)
    accuracy = report_of("m.onnx --data d -o q.onnx --labels l.txt --method minmax")["accuracy"]
    assert 0 <= accuracy["float"] <= 1 and 0 <= accuracy["int8"] <= 1
    assert "accuracy" in call("m.onnx --data d -o q.onnx --labels l.txt --method minmax").stdout
    Path("q.onnx").unlink()
    Path("l.txt").write_text("4\n" * 40)
    refused("m.onnx --data d -o q.onnx --labels l.txt", "has the label 4; the model has 4 classes, from 0")
    Path("l.txt").write_text("1\n" * 39)
    refused("m.onnx --data d -o q.onnx --labels l.txt", "39 labels for 40 samples")


def test_few_samples_are_told(folder: Path) -> None:
    np.save("x.npy", images(2))
    report = report_of("m.onnx --data x.npy -o q.onnx --method percentile")
    assert _counts(report) == {"found": 2, "calibration": 2, "comparison": 2, "held_out": False}
    assert [one["method"] for one in report["methods"]] == ["percentile"]
    assert any("too few to hold any out" in note for note in report["notes"])


def test_the_method_of_the_settings_is_that_of_orders(folder: Path) -> None:
    Path("mcudeploy.toml").write_text('method = "beam"\nseed = 3\n')
    assert len(report_of("m.onnx --data d -o q.onnx")["methods"]) == 3


def test_samples_are_limited(folder: Path) -> None:
    used = _counts(report_of("m.onnx --data d -o q.onnx --method minmax --samples 5"))
    assert used == {"found": 40, "calibration": 5, "comparison": 5, "held_out": True}


def test_nodes_that_stay_float(folder: Path) -> None:
    report = report_of("m.onnx --data d -o q.onnx --method minmax --keep-float depth*,Gemm")
    kept = {name for one in report["float_nodes"] for name in one["nodes"]}
    assert kept >= {"depthwise", "dense"} and "first" not in kept
    assert any("in float on the board" in note for note in report["notes"])
    Path("q.onnx").unlink()
    refused("m.onnx --data d -o q.onnx --keep-float depthwis", "did you mean 'depthwise'?")
    refused("m.onnx --data d -o q.onnx --keep-float norm", "no node of the prepared model")


def test_operators_that_are_not_quantised_are_listed(folder: Path) -> None:
    classifier(folder / "m.onnx", tail="Tanh")
    report = report_of("m.onnx --data d -o q.onnx --method minmax")
    assert [(one["nodes"], one["op"]) for one in report["float_nodes"]] == [(["last"], "Tanh")]


def test_open_dimensions(folder: Path) -> None:
    classifier(folder / "m.onnx", ("N", 3, "H", "W"))
    refused("m.onnx --data d -o q.onnx", "open dimension 2 (H)", 4)
    refused("m.onnx --data d -o q.onnx", "--shape image=1,3,H,W with numbers", 4)
    refused("m.onnx --data d -o q.onnx --shape image=1,3,8", "has 4 dimensions: [N, 3, H, W]")
    refused("m.onnx --data d -o q.onnx --shape image=1,4,8,8", "needs [4, 8, 8]")
    refused("m.onnx --data d -o q.onnx --shape picture=1,3,8,8", "no input 'picture'; its inputs are image")
    refused("m.onnx --data d -o q.onnx --shape image=1,3,8,x", "is not a shape")
    refused("m.onnx --data d -o q.onnx --shape image=1,3,8,8 --shape image=1,3,8,8", "given twice")
    report = report_of("m.onnx --data d -o q.onnx --method minmax --shape image=1,3,8,8")
    assert report["notes"] == [] and load(folder / "q.onnx").inputs[0].shape == (1, 3, 8, 8)
    classifier(folder / "m.onnx", ("N", 3, 8, 8))
    notes = report_of("m.onnx --data d -o q.onnx --method minmax")["notes"]
    assert len(notes) == 1 and "taken as a batch of 1" in notes[0]


def test_several_inputs_and_outputs(folder: Path) -> None:
    two_inputs(folder / "m.onnx")
    rng = np.random.default_rng(0)
    np.savez("x.npz", **{name: rng.normal(size=(12, 6)).astype(np.float32) for name in ("a/left", "b")})
    report = report_of("m.onnx --data x.npz -o q.onnx --method minmax")
    assert [one["name"] for one in report["outputs"]] == ["out", "sum"]
    assert report["top1_agreement"] is not None and all(one["sqnr_db"] > 20 for one in report["outputs"])
    assert "sum" in call("m.onnx --data x.npz -o q.onnx --method minmax").stdout


def test_what_is_not_a_float_model(folder: Path) -> None:
    report_of("m.onnx --data d -o q.onnx --method minmax")
    Path("int8.onnx").write_bytes(Path("q.onnx").read_bytes())
    Path("q.onnx").unlink()
    refused("int8.onnx --data d -o q.onnx", "int8.onnx is quantised already: it has", 4)
    Path("bad.onnx").write_bytes(b"no model")
    refused("bad.onnx --data d -o q.onnx", "bad.onnx", 4)
    model = onnx.load("m.onnx")
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    onnx.save(model, "bad.onnx")
    assert call("bad.onnx --data d -o q.onnx").exit_code == 4


def test_what_boards_cannot_run_is_not_written(folder: Path) -> None:
    model = onnx.load("m.onnx")
    model.graph.node[-1].CopyFrom(helper.make_node("Bernoulli", ["logits"], ["classes"], "last"))
    onnx.save(model, "m.onnx")
    result = call("m.onnx --data d -o q.onnx --json")
    error = json.loads(result.stdout)["error"]
    assert result.exit_code == error["exit_code"] == 4 and not Path("q.onnx").exists()
    # Bernoulli becomes a function of random numbers
    assert [one["op"] for one in error["problems"]] == ["RandomUniformLike"]


@pytest.mark.parametrize(
    ("value", "said"), [(np.nan, "1 NaN"), (-np.inf, "1 infinite value")], ids=["nan", "infinity"]
)
def test_a_weight_that_is_not_a_number_is_named(value: float, said: str, folder: Path) -> None:
    model = onnx.load("m.onnx")
    dense = next(it for it in model.graph.node if it.op_type == "Gemm")
    tensor = next(it for it in model.graph.initializer if it.name == dense.input[1])
    values = numpy_helper.to_array(tensor).copy()
    values.flat[1] = value
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    onnx.save(model, "m.onnx")
    for method in ("minmax", "entropy"):
        refused(
            f"m.onnx --data d -o q.onnx --method {method}",
            f"Gemm 'dense': its constant '{tensor.name}' has {said}, which no integer stands for",
            4,
        )


def test_a_model_of_tokens_is_told_the_way_to_four_bits(folder: Path) -> None:
    x = np.zeros((1, 2), np.int64)
    Path("t.onnx").write_bytes(build([node("Abs", "x", "y")], {"x": x}, ["y"]).SerializeToString())
    refused("t.onnx --data d -o q.onnx", "MatMulNBitsQuantizer of ONNX Runtime", 4)


def test_wrong_data_are_one_error(folder: Path) -> None:
    np.save(folder / "d" / "007.npy", np.zeros((3, 8, 9), np.float32))
    refused("m.onnx --data d -o q.onnx", "007.npy has the shape [3, 8, 9]; input 'image'")
    error = json.loads(call("m.onnx --data d -o q.onnx --json").stdout)["error"]
    assert error["exit_code"] == 2 and "007.npy" in error["message"]
    refused("m.onnx --data nowhere -o q.onnx", "nowhere")
    refused("m.onnx --data d -o nowhere/q.onnx", "not a folder")
    refused("m.onnx -o q.onnx", "--data")


def test_names_steer_no_terminal(folder: Path) -> None:
    model = onnx.load("m.onnx")
    model.graph.node[3].name = "\x1b[31mred[bold]"
    onnx.save(model, "m.onnx")
    result = call("m.onnx --data d -o q.onnx --method minmax")
    assert result.exit_code == 0 and "\x1b" not in result.stdout and "red[bold]" in result.stdout


def test_help_loads_no_library() -> None:
    code = "import sys; from mcudeploy.cli.main import cli; assert 'onnxruntime' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize("stage", ["reading samples", "calibrating: entropy", "comparing: minmax"])
def test_ctrl_c_leaves_no_file(stage: str, folder: Path) -> None:
    folder_of(folder / "more", images(400))
    (folder / "tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcudeploy", "quantize", "m.onnx", "--data", "more", "-o", "q.onnx", "--json"],
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert any(line.strip() == stage for line in process.stderr)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err, json.loads(out)["error"]["exit_code"]) == (
        130,
        False,
        130,
    )
    assert sorted(path.name for path in folder.iterdir()) == ["d", "m.onnx", "more", "tmp"]
    assert not list((folder / "tmp").iterdir())


def test_outputs_that_would_overwrite_or_mislead(folder: Path) -> None:
    refused("m.onnx --data d -o q.tflite", "would be an ONNX file: give it the ending .onnx")
    model = onnx.load("m.onnx")
    onnx.save(model, "apart.onnx", save_as_external_data=True, location="weights.onnx", size_threshold=0)
    held = Path("weights.onnx").read_bytes()
    refused("apart.onnx --data d -o weights.onnx --force", "weights.onnx holds weights of apart.onnx")
    assert Path("weights.onnx").read_bytes() == held
