"""mcud_statistics.c: features of a sensor that drifts, classified as they were before."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.codegen.texts import FeatureStatistics
from mcudeploy.common.resources import resource_dir
from mcudeploy.extensions.heads.head_kinds import Prototypes
from mcudeploy.extensions.heads.head_statistics import SeenInputs

FOLDER = resource_dir("firmware") / "heads"
CHECKED = ["-fsanitize=undefined,float-divide-by-zero", "-fsanitize-undefined-trap-on-error", "-Werror"]
CLASSES, FEATURES = 4, 24


class Statistics(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_void_p)
            for name in ("means", "squares", "count", "training_means", "training_deviations")
        ),
        ("features", ctypes.c_uint32),
    ]


class Device:
    """The statistics of a device, by the C code."""

    def __init__(self, library: ctypes.CDLL, training: FeatureStatistics) -> None:
        self.library = library
        floats = [np.array(it, np.float32) for it in (training.means, training.deviations)]
        self.means, self.squares = np.zeros(FEATURES, np.float32), np.zeros(FEATURES, np.float32)
        self.arrays = [self.means, self.squares, np.zeros(1, np.uint32), *floats]
        self.record = Statistics(*(it.ctypes.data for it in self.arrays), FEATURES)

    def observe(self, features: np.ndarray) -> None:
        self.library.mcud_statistics_observe(ctypes.byref(self.record), ctypes.c_void_p(features.ctypes.data))

    def moved(self, features: np.ndarray) -> np.ndarray:
        result = np.empty(FEATURES, np.int8)
        pointers = (ctypes.c_void_p(it.ctypes.data) for it in (features, result))
        self.library.mcud_statistics_apply(ctypes.byref(self.record), *pointers)
        return result


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path: Path = tmp_path_factory.mktemp("statistics") / "statistics.so"
    source = FOLDER / "mcud_statistics.c"
    subprocess.run(
        ["gcc", "-std=c99", "-O1", "-shared", "-fPIC", *CHECKED, source, "-lm", "-o", path], check=True
    )
    return ctypes.CDLL(str(path))


def test_drifted_features_are_classified_as_before(library: ctypes.CDLL) -> None:
    """Each feature is scaled and moved by its own factors; the device sees no label after that."""
    rng = np.random.default_rng(3)
    centres = rng.integers(-25, 25, (CLASSES, FEATURES))
    labels = rng.integers(0, CLASSES, 600)
    real = centres[labels] + rng.normal(0, 12, (600, FEATURES))
    before = np.rint(real).astype(np.int8)
    gains, offsets = rng.uniform(0.4, 1.6, FEATURES), rng.uniform(-60, 60, FEATURES)
    after = np.clip(np.rint(real * gains + offsets), -128, 127).astype(np.int8)
    training = FeatureStatistics(tuple(before[:200].mean(axis=0)), tuple(before[:200].std(axis=0)))
    head, device, seen = Prototypes(((),) * CLASSES), Device(library, training), SeenInputs(training)
    for features, label in zip(before[:40], labels, strict=False):
        head = head.enrol(features, int(label))
    for features in after[200:300]:
        assert seen.fault(features, device.moved(features)) == ""
        device.observe(features)
        seen = seen.observe(features)
    assert np.allclose(device.means, after[200:300].mean(axis=0), atol=1e-3)

    def accuracy(values: np.ndarray) -> float:
        rights = [head.is_label(it, int(label)) for it, label in zip(values, labels[300:], strict=True)]
        return float(np.mean(rights))

    undrifted, drifted = accuracy(before[300:]), accuracy(after[300:])
    restored = accuracy(np.stack([device.moved(it) for it in after[300:]]))
    assert undrifted > 0.99 and drifted < 0.8 and restored > 0.98, (undrifted, drifted, restored)


@pytest.mark.parametrize("constant", [-128, 0, 127])
def test_features_that_do_not_vary_become_their_mean(constant: int, library: ctypes.CDLL) -> None:
    training = FeatureStatistics((130.0,) * 12 + (-200.0,) * 6 + (7.4,) * 6, (1e30,) * FEATURES)
    device, features = Device(library, training), np.full(FEATURES, constant, np.int8)
    for _ in range(16):
        assert np.array_equal(device.moved(features), features)
        device.observe(features)
    assert device.moved(features).tolist() == [127] * 12 + [-128] * 6 + [7] * 6
