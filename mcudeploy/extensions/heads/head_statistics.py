"""Statistics of a head's features: over training data, and a reference for those that a device computes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mcudeploy.codegen.texts import FeatureStatistics
from mcudeploy.common.errors import UsageError
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import count_text
from mcudeploy.extensions.evaluation.dataset import DataRequest, open_dataset
from mcudeploy.extensions.heads.head_kinds import Features, Scores
from mcudeploy.ops.host_io import to_device
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.reference import Reference

LEAST_INPUTS = 16
"""MCUD_STATISTICS_LEAST of mcud_head.h."""
_TOLERANCE = 0.01
"""The largest error of a feature before it is rounded: the sums of the device are in float32."""


def training_statistics(
    path: Path, options: Options, request: DataRequest, progress: Progress = SILENT
) -> FeatureStatistics:
    """Return the statistics of the output of a model over data, by ONNX Runtime, in units of the program.

    Raises UsageError for data that do not fit the model, and for fewer than `LEAST_INPUTS` samples.
    """
    model = read_model(path, options)
    graph = model.graph
    data, io = open_dataset(request, graph), graph.own_outputs()[0]
    if data.count < LEAST_INPUTS:
        have = count_text(data.count, "sample")
        raise UsageError(f"{request.path} has {have}; --statistics needs at least {LEAST_INPUTS}")
    progress.stage(f"statistics of {count_text(data.count, 'sample')} on this computer")
    reference = Reference(path, [io.name], model.choices)
    features = []
    for number in range(data.count):
        progress.advance(number + 1, data.count)
        value = reference.run(data.sample(number, graph).inputs)[io.name]
        features.append(to_device(io, graph.tensors[io.tensor], value).reshape(-1))
    values = np.stack(features).astype(np.float64)
    return FeatureStatistics(tuple(values.mean(axis=0).tolist()), tuple(values.std(axis=0).tolist()))


@dataclass(frozen=True, slots=True)
class SeenInputs:
    """The reference of mcud_statistics.c: the features of all inputs that the device has seen."""

    training: FeatureStatistics
    seen: tuple[Features, ...] = ()

    def observe(self, features: Features) -> SeenInputs:
        """Return the reference with one more input."""
        return replace(self, seen=(*self.seen, features))

    def in_training(self, features: Features) -> Scores:
        """Return the features mapped to the statistics of training, before they are rounded."""
        if len(self.seen) < LEAST_INPUTS:
            return features.astype(np.float64)
        seen = np.stack(self.seen).astype(np.float64)
        scale = np.array(self.training.deviations) / np.maximum(seen.std(axis=0), 1)
        moved = (features - seen.mean(axis=0)) * scale + np.array(self.training.means)
        return np.asarray(np.clip(moved, -128, 127), np.float64)

    def fault(self, features: Features, moved: Features) -> str:
        """Return how the features that a device has `moved` differ from the reference; "" if they do not."""
        wanted = self.in_training(features)
        gaps = np.abs(moved - wanted)
        at = int(gaps.argmax())
        if gaps[at] <= 0.5 + _TOLERANCE:
            return ""
        return f"moves feature {at} to {moved[at]}, the reference to {wanted[at]:.3f}"
