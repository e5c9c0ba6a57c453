"""Noise, classes and weights in the report, on values with known results."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from rich.console import Console

from mcudeploy.extensions.quantization.agreement import Agreement, Layer, Noise, class_output
from mcudeploy.extensions.quantization.ort_quantizer import METHODS, Calibration, prepare
from mcudeploy.extensions.quantization.quantization_report import quantized
from mcudeploy.extensions.quantization.quantizer import QuantizeRequest, quantize_model
from mcudeploy.extensions.quantization.quantizetable import quantize
from mcudeploy.extensions.quantization.weights import outliers
from mcudeploy.frontend.onnx.nodes import Info
from tests.networks.small import classifier, images


def info(name: str, *shape: int) -> Info:
    return Info(name, shape, "float32")


def test_noise() -> None:
    noise = Noise()
    assert noise.decibels == math.inf
    noise.add(np.array([3.0, 4.0], np.float32), np.array([3.0, 4.5], np.float32))
    noise.add(np.array([0.0], np.float32), np.array([0.0], np.float32))
    assert noise.decibels == pytest.approx(20) and noise.worst == 0.5
    silent = Noise()
    silent.add(np.zeros(1, np.float32), np.ones(1, np.float32))
    assert silent.decibels < -200


def test_a_node_is_blamed_for_what_it_adds() -> None:
    first, after = Layer("a", "Conv", 30.0, math.inf), Layer("b", "Conv", 20.0, 21.0)
    assert first.added_noise == pytest.approx(1e-3) and after.added_noise == pytest.approx(1e-2 - 10**-2.1)


def test_which_output_has_classes() -> None:
    image = (info("x", 1, 3, 8, 8),)
    assert class_output(image, (info("map", 1, 4, 2, 2), info("y", 1, 4))) == "y"
    assert class_output(image, (info("y", 1, 4, 1, 1),)) == "y"
    assert class_output(image, (info("one", 1, 1),)) is None
    assert class_output((info("x", 1, 640),), (info("x again", 1, 640),)) is None


@pytest.mark.parametrize(("samples", "better"), [(19, "fine"), (20, "right")])
def test_classes_count_where_there_are_enough_of_them(samples: int, better: str) -> None:
    fine, right = Noise(signal=1.0, noise=1e-3), Noise(signal=1.0, noise=1e-2)
    agreement = {
        "fine": Agreement({"y": fine}, 0.9, None, samples),
        "right": Agreement({"y": right}, 0.95, None, samples),
    }
    assert max(agreement, key=lambda name: agreement[name].rank) == better


def test_wide_channels(tmp_path: Path) -> None:
    model = onnx.load(classifier(tmp_path / "m.onnx"))
    assert outliers(model) == []
    for tensor in model.graph.initializer:
        if tensor.name == "w2":
            weights = numpy_helper.to_array(tensor).copy()
            weights[0] = 1e-30  # dead
            weights[2] = 50 * np.abs(weights).max()
            tensor.CopyFrom(numpy_helper.from_array(weights, "w2"))
    (outlier,) = outliers(model)
    assert (outlier.node, outlier.channel) == ("dense", 2) and outlier.times > 40


def test_ranges_are_those_of_all_samples_however_they_come(tmp_path: Path) -> None:
    prepared = prepare(onnx.load(classifier(tmp_path / "m.onnx")), tmp_path)
    samples = [{"image": sample[None]} for sample in images(6)]
    samples[0]["image"] = samples[0]["image"] * 1e-6  # a first sample that tells little of the others
    observed = []
    for order in (samples, samples[::-1]):
        calibration = Calibration(prepared, tmp_path)
        ranges = {method: calibration.ranges(method, order).data for method in METHODS}
        named = {
            (method, name): tuple(np.asarray(value).item() for value in data.range_value)
            for method, known in ranges.items()
            for name, data in known.items()
        }
        low, high = named["minmax", "image"]
        assert low == min(it["image"].min() for it in samples)
        assert high == max(it["image"].max() for it in samples)
        for method in METHODS[1:]:
            assert low <= named[method, "image"][0] < named[method, "image"][1] <= high
        observed.append(named)
    assert observed[0] == observed[1]


def test_the_last_layer_is_as_far_off_as_the_output(tmp_path: Path) -> None:
    classifier(tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", images(20))
    request = QuantizeRequest(tmp_path / "x.npy", method="minmax")
    report = quantized(quantize_model(tmp_path / "m.onnx", request, tmp_path / "q.onnx"))
    layers = {it["node"]: it for it in report["layers"]}
    assert layers["last"]["sqnr_db"] == pytest.approx(report["outputs"][0]["sqnr_db"])
    assert layers["last"]["input_sqnr_db"] == pytest.approx(layers["dense"]["sqnr_db"])
    assert 20 < layers["first"]["input_sqnr_db"] < math.inf  # that of the image
    assert [it["sqnr_db"] for it in report["layers"]] == sorted(it["sqnr_db"] for it in report["layers"])


def test_a_model_that_stays_float_loses_nothing(tmp_path: Path) -> None:
    classifier(tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", images(20))
    request = QuantizeRequest(tmp_path / "x.npy", keep_float=("*",))
    report = quantized(quantize_model(tmp_path / "m.onnx", request, tmp_path / "q.onnx"))
    assert report["outputs"][0]["sqnr_db"] == math.inf and report["top1_agreement"] == 1
    assert report["layers"] == [] and report["worst_step"] is None
    assert len(report["float_nodes"]) >= 4
    quantize(Console(quiet=True), report)
