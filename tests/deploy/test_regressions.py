"""Small models that the front end or the judge once got wrong: each is verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ModelError
from mcudeploy.device.target import Target
from mcudeploy.frontend.expose import quantizer_inputs
from mcudeploy.frontend.load import load
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.compare import TIE_LSB, stored_ties
from mcudeploy.verify.reference import Reference
from tests import reports
from tests.networks.onnx_files import build, node

REGRESSIONS = Path(__file__).resolve().parents[1] / "regressions"
FLOAT_BIAS = REGRESSIONS / "fail_float_bias_not_verified.onnx"
INTEGER_BIAS = REGRESSIONS / "fail_uint8_pad_ort_quantize_static.onnx"
MODELS = (
    FLOAT_BIAS,
    INTEGER_BIAS,
    REGRESSIONS / "fail_uint8_pad_qdq_conv.onnx",
    REGRESSIONS / "fail_coarse_bias.onnx",
    REGRESSIONS / "fail_tiny_scale.onnx",
    REGRESSIONS / "fail_coarse_sum.onnx",
    REGRESSIONS / "fail_coarser_sum.onnx",
    REGRESSIONS / "fail_wrong_output_1114.onnx",
    REGRESSIONS / "b2_conv_hardmax.onnx",
    REGRESSIONS / "b2_conv_logsoftmax.onnx",
    REGRESSIONS / "batch2_conv_clip_q16.onnx",
    REGRESSIONS / "exposed_clip_s16.onnx",
    REGRESSIONS / "exposed_logsoftmax.onnx",
    REGRESSIONS / "wrong_311043.onnx",
    REGRESSIONS / "gen_300032.onnx",
    REGRESSIONS / "gen_300037.onnx",
    REGRESSIONS / "gen_300215.onnx",
)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_of_a_fault_is_verified(path: Path) -> None:
    report = reports.run_model(
        path, Target(load_board("host")), Options(time_limit=0.5), inputs=[], expected=[]
    )
    assert report["verified"], report["reason"]


def test_nothing_may_be_left_in_the_fast_memory() -> None:
    """28 bytes hold no row of the only tensors, which are the input and the output."""
    board = load_board("mps2-an386")
    options = Options(split=False, memory_limits=(("sram", 28),), time_limit=0.5)
    deployment = api.plan_model(REGRESSIONS / "memories_keyerror.onnx", board, options)
    assert deployment.plan.layout.arenas == {"psram": 144}


def test_more_dimensions_than_arrays_have() -> None:
    with pytest.raises(ModelError, match="'x' has 300 dimensions; the limit is 32"):
        load(REGRESSIONS / "rank300.onnx")


def constant_outputs(folder: Path, inputs: str) -> Path:
    """y = -x of float32 or int8 `inputs`, beside it a constant of each element type."""
    held = {
        "floats": np.arange(6, dtype=np.float32).reshape(1, 2, 3),
        "int8s": np.array([[-3, 5]], np.int8),
        "uint8s": np.array([3, 250], np.uint8),
        "truth": np.array([True, False]),
        "int64s": np.array([7, -9]),
        "one": np.array(5, np.int32),
    }
    nodes = [node("Identity", name, f"{name}_out") for name in held]
    names = [f"{name}_out" for name in held]
    x = np.zeros((1, 4, 5), inputs)
    nodes.append(node("Neg", "real" if inputs == "int8" else "x", "y"))
    if inputs == "int8":
        nodes.insert(0, node("DequantizeLinear", "x scale", "real"))
    path = folder / "constants.onnx"
    outputs = ["y", *names]
    onnx.save(build(nodes, {"x": x}, outputs, {**held, "scale": np.float32(0.1)}), path)
    return path


@pytest.mark.parametrize("inputs", ["float32", "int8"])
def test_outputs_may_be_constant(inputs: str, tmp_path: Path) -> None:
    path = constant_outputs(tmp_path, inputs)
    report = reports.run_model(
        path, Target(load_board("host")), Options(time_limit=0.5), inputs=[], expected=[]
    )
    assert report["verified"] and report["elements"] == 35, report["reason"]


def near_zero(folder: Path, dtype: str = "float32") -> Path:
    """y = sigmoid(x - 17) in float32, x and y of `dtype`."""
    path = folder / "sigmoid.onnx"
    nodes = [
        node("Cast", "x", "real", to=onnx.TensorProto.FLOAT),
        node("Add", "real c", "sum"),
        node("Sigmoid", "sum", "s"),
        node("Cast", "s", "y", to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype))),
    ]
    onnx.save(build(nodes, {"x": np.zeros((1, 8), dtype)}, ["y"], {"c": np.float32(-17)}), path)
    return path


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_an_output_near_zero_is_held_to_the_least_tolerance(dtype: str, tmp_path: Path) -> None:
    """ONNX Runtime adds 0.5 on the way to a sigmoid; float16 has two digits there, in steps of 6e-8."""
    path = near_zero(tmp_path, dtype)
    report = reports.run_model(
        path, Target(load_board("host")), Options(time_limit=0.5), inputs=[], expected=[]
    )
    assert report["verified"], report["reason"]
    assert 0 < report["max_abs_error"] < report["tolerance"]["least"] < 1e-6


def test_the_range_of_an_output_is_that_of_all_samples(tmp_path: Path) -> None:
    """The second sample is 1e-5 off: less than 1e-4 of what the first one reaches, more than its own."""
    path, files = near_zero(tmp_path), []
    for number, (x, y) in enumerate([(22.0, 0.9933072), (8.0, 1.234e-4 + 1e-5)]):
        files.append([tmp_path / f"{name}{number}.npy" for name in "xy"])
        for file, value in zip(files[-1], (x, y), strict=True):
            np.save(file, np.full((1, 8), value, np.float32))
    inputs, expected = map(list, zip(*files, strict=True))

    def run(first: int, end: int) -> dict[str, Any]:
        target, options = Target(load_board("host")), Options(time_limit=0.5)
        return reports.run_model(
            path, target, options, inputs=inputs[first:end], expected=expected[first:end]
        )

    assert run(0, 2)["verified"]
    alone = run(1, 2)
    assert not alone["verified"] and "allowed: 2.38e-07, the least tolerance" in alone["reason"]


def test_a_rounded_bias_widens_ties_by_what_it_moves_the_channel() -> None:
    """Weights have the scale 0.01308267, input and output 0.02 and 0.015; the biases stand in the file."""
    graph = load(FLOAT_BIAS)
    (io,) = (it for it in graph.references.values() if it.tensor == graph.operators[-1].output)
    quantizers = quantizer_inputs(FLOAT_BIAS, [io.name])
    (real_name,) = quantizers[io.name].floats
    x = np.random.default_rng(3).normal(0, 0.7, (1, 3, 40)).astype(np.float32)
    values = Reference(FLOAT_BIAS, [io.name, real_name]).run({"x": x})
    # Results as far from a tie as the bias of their channel is rounded, and a little less or more.
    bias = np.array([-0.28128743, -0.66804636, -1.0551505, -0.39080098])
    units = bias / (0.02 * 0.01308267)
    moved = np.abs(units - np.rint(units)) * 0.02 * 0.01308267 / 0.015
    assert moved.max() > 10 * TIE_LSB
    steps = np.floor(values[real_name] / 0.015) + 0.5
    for distance, inside in ((0.97, True), (-0.97, True), (1.03, False), (-1.03, False)):
        far = steps + distance * (moved + TIE_LSB)[:, np.newaxis]
        mask = stored_ties(graph, {real_name: far * graph.tensors[io.tensor].quantization.scale}, quantizers)[
            io.tensor
        ]
        assert np.all(mask == inside)


def test_other_biases_leave_the_window_of_ties_as_it_is() -> None:
    assert not any("bias_rounding" in operator.constants for operator in load(INTEGER_BIAS).operators)
