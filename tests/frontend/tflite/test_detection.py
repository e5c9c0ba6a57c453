"""TFLite_Detection_PostProcess, beside LiteRT."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flat_files import FlatFile, litert
from harness import outputs_of
from programs import QUICK

from mcudeploy.frontend.load import load
from tests import reports
from tests.networks.refusals import problems_of

ANCHORS, CLASSES = 30, 4
UNSPLIT = replace(QUICK, split=False)


def detector(
    folder: Path, *, background: int = 1, per_box: int = 1, most: int = 6, least: float = 0.3, **options: Any
) -> Path:
    """Boxes around a grid of anchors, which overlap their neighbours."""
    f = FlatFile()
    rng = np.random.default_rng(7)
    places = rng.uniform(0.2, 0.8, (ANCHORS, 2))
    anchors = np.concatenate([places, rng.uniform(0.1, 0.4, (ANCHORS, 2))], axis=1)
    x, s = f.add(1, ANCHORS, 4), f.add(1, ANCHORS, CLASSES + background)
    count = most * per_box
    outputs = [f.add(*shape) for shape in ((1, count, 4), (1, count), (1, count), (1,))]
    facts = {
        "max_detections": most,
        "max_classes_per_detection": per_box,
        "detections_per_class": 100,
        "use_regular_nms": False,
        "nms_score_threshold": least,
        "nms_iou_threshold": 0.4,
        "num_classes": CLASSES,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
    }
    f.operator(
        "TFLite_Detection_PostProcess", [x, s, f.constant(anchors, np.float32)], outputs, **facts | options
    )
    return f.save(folder, [x, s], outputs)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"background": 0},
        {"per_box": 2},
        {"most": 30, "least": 0.6},
        {"least": 2.0},
        {"least": 0.0, "most": 1},
        {"nms_iou_threshold": 0.05, "most": 12},
    ],
    ids=str,
)
def test_detections_are_those_of_litert(options: dict[str, Any], tmp_path: Path) -> None:
    path = detector(tmp_path, **options)
    rng = np.random.default_rng(8)
    columns, graph = CLASSES + options.get("background", 1), load(path)
    for _ in range(5):
        drawn = rng.normal(0, 2, (1, ANCHORS, 4)), rng.uniform(0, 1, (1, ANCHORS, columns))
        inputs = {
            it.name: each.astype(np.float32) for it, each in zip(graph.own_inputs(), drawn, strict=True)
        }
        *results, count = outputs_of(graph, inputs).values()
        *theirs, number = litert(path, list(inputs.values()))
        assert count == number
        rows = int(count[0]) * options.get("per_box", 1)
        for own, wanted in zip(results, theirs, strict=True):
            assert own.shape == wanted.shape
            assert np.allclose(own[:, :rows], wanted[:, :rows], rtol=1e-5, atol=1e-6)
            assert not own[:, rows:].any()  # LiteRT leaves these as they were


def test_a_detector_is_verified(tmp_path: Path) -> None:
    reports.verified(detector(tmp_path), options=UNSPLIT)


def test_the_variant_by_class_is_refused(tmp_path: Path) -> None:
    (problem,) = problems_of(detector(tmp_path, use_regular_nms=True))
    assert "use_regular_nms" in problem.reason
