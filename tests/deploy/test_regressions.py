"""Small models that the front end or the judge once got wrong: each is verified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mcudeploy import api
from mcudeploy.boards.board import load_board
from mcudeploy.device.target import Target
from mcudeploy.frontend import load
from mcudeploy.frontend.expose import quantizer_inputs
from mcudeploy.search.planner import Options
from mcudeploy.verify.compare import TIE_LSB, stored_ties
from mcudeploy.verify.reference import Reference

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
)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_of_a_fault_is_verified(path: Path) -> None:
    report = api.run_model(path, Target(load_board("host")), Options(time_limit=1), inputs=[], expected=[])
    assert report["verified"], report["reason"]


def test_a_rounded_bias_widens_ties_by_what_it_moves_the_channel() -> None:
    """Weights have the scale 0.01308267, input and output 0.02 and 0.015; the biases stand in the file."""
    graph = load(FLOAT_BIAS)
    (border,) = (it for it in graph.references.values() if it.tensor == graph.operators[-1].output)
    quantizers = quantizer_inputs(FLOAT_BIAS, [border.name])
    real_name = quantizers[border.name]
    x = np.random.default_rng(3).normal(0, 0.7, (1, 3, 40)).astype(np.float32)
    values = Reference(FLOAT_BIAS, [border.name, real_name]).run({"x": x})
    # Results as far from a tie as the bias of their channel is rounded, and a little less or more.
    bias = np.array([-0.28128743, -0.66804636, -1.0551505, -0.39080098])
    units = bias / (0.02 * 0.01308267)
    moved = np.abs(units - np.rint(units)) * 0.02 * 0.01308267 / 0.015
    assert moved.max() > 10 * TIE_LSB
    steps = np.floor(values[real_name] / 0.015) + 0.5
    for distance, inside in ((0.97, True), (-0.97, True), (1.03, False), (-1.03, False)):
        far = steps + distance * (moved + TIE_LSB)[:, np.newaxis]
        mask = stored_ties(
            graph, {real_name: far * graph.tensors[border.tensor].quantization.scale}, quantizers
        )[border.tensor]
        assert np.all(mask == inside)


def test_other_biases_leave_the_window_of_ties_as_it_is() -> None:
    assert not any("bias_rounding" in operator.constants for operator in load(INTEGER_BIAS).operators)
