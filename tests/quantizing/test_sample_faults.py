"""Calibration samples that cannot be right are refused or named, with their input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcudeploy.common.errors import UsageError
from mcudeploy.extensions.quantization.agreement import Agreement, Noise
from mcudeploy.extensions.quantization.quantization_report import quantized
from mcudeploy.extensions.quantization.quantizer import QuantizeRequest, quantize_model
from tests.networks.small import classifier, images


def report_of(folder: Path, samples: np.ndarray) -> dict[str, Any]:
    np.save(folder / "x.npy", samples)
    request = QuantizeRequest(folder / "x.npy", method="minmax")
    return quantized(quantize_model(classifier(folder / "m.onnx"), request, folder / "q.onnx"))


def test_good_samples_give_no_note(tmp_path: Path) -> None:
    samples = images(40)
    samples[3] = 0  # silence
    samples[5] *= 3
    samples[7] = samples[6]
    report = report_of(tmp_path, samples)
    assert report["notes"] == [] and report["samples"]["outliers"] == []
    (facts,) = report["inputs"]
    assert facts["name"] == "image" and facts["values"] == samples.size
    assert facts["clipped"] <= 0.01 * facts["values"]


def test_samples_of_zeros_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"x\.npy: all values of 'image' are 0 in 40 samples"):
        report_of(tmp_path, 0 * images(40))
    assert not (tmp_path / "q.onnx").exists()


def test_constant_samples_and_copies_are_named(tmp_path: Path) -> None:
    samples = images(20)
    samples[10:16] = np.arange(6).reshape(-1, 1, 1, 1)
    samples[16:] = samples[:4]
    report = report_of(tmp_path, samples)
    assert report["samples"]["constant"] == [f"sample {at}" for at in range(10, 16)]
    assert report["samples"]["copies"] == [f"sample {at}" for at in range(16, 20)]
    assert any("6 of 20 samples have one value in all elements of 'image'" in it for it in report["notes"])
    assert any("4 of 20 samples are copies of others (sample 16 of sample 0)" in it for it in report["notes"])


@pytest.mark.parametrize("place", range(2))
def test_an_outlier_is_named_with_the_noise_that_it_causes(place: int, tmp_path: Path) -> None:
    samples = images(40)
    compared = set(
        np.random.default_rng(0).permutation(40)[:10].tolist()
    )  # as the held-out samples are drawn
    number = next(at for at in range(40) if (at in compared) == bool(place))
    samples[number, 1, 2, 3] = 1e5
    report = report_of(tmp_path, samples)
    (far,) = report["samples"]["outliers"]
    assert (far["sample"], far["input"], far["value"]) == (f"sample {number}", "image", 1e5)
    assert far["sqnr_db_without"] > 20 and far["sqnr_db_without"] > report["methods"][0]["sqnr_db"] + 3
    assert any(
        f"sample {number} has 100000 in 'image'" in it and "dB without" in it for it in report["notes"]
    )


def test_a_value_that_is_not_a_number_is_named_with_sample_and_input(tmp_path: Path) -> None:
    samples = images(10)
    samples[7, 0, 0, 0] = np.nan
    with pytest.raises(UsageError, match="sample 7 has 1 value for 'image' that is not finite"):
        report_of(tmp_path, samples)


def test_equal_methods_are_compared_over_all_samples() -> None:
    few = Agreement({"y": Noise(1.0, 1e-3)}, 1.0, None, 10)
    others = Agreement({"y": Noise(9.0, 9e-2)}, 1.0, None, 30)
    assert few.decibels == pytest.approx(30)
    assert few.decibels_with(others) == pytest.approx(10 * np.log10(10 / 0.091))


def test_a_float_model_whose_outputs_never_change_is_reported(tmp_path: Path) -> None:
    samples = images(40)
    (note,) = [it for it in report_of(tmp_path, 1e4 * np.abs(samples))["notes"] if "float model" in it]
    assert "of 10 samples" in note and "Likely cause" in note
