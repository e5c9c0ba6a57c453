"""Runs that continue from a verified run: the verdict, the states and the outputs of all runs at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_gradients import drawn, step_of
from test_training_programs import CORTEX_M4, HOST, device_run

from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.results import VerifiedRun
from mcudeploy.extensions.training.step import TrainingStep
from mcudeploy.extensions.training.training_run import continue_run
from mcudeploy.report import as_json
from mcudeploy.report.objects import verdict as verdict_of
from mcudeploy.verify.samples import NamedArray, Sample, load_samples
from tests.networks.onnx_files import save
from tests.networks.trained import random_network
from tests.weekly import sample

COUNT = 7


def samples_of(result: VerifiedRun, step: TrainingStep) -> list[Sample]:
    """The samples of `COUNT` steps."""
    graph = result.measured.device_run.deployment.model.graph
    runs = [drawn(step, "cross-entropy", number) for number in range(COUNT)]
    inputs = [NamedArray(it.name, np.stack([run[it.name] for run in runs])) for it in graph.own_inputs()]
    return load_samples(graph, inputs, [], 0)


def continued(result: VerifiedRun, target: Target, parts: list[list[Sample]]) -> VerifiedRun:
    deployment, firmware = result.measured.device_run.deployment, result.measured.device_run.firmware
    with open_device(target, firmware, deployment.patience_s) as device:
        for samples in parts:
            result = continue_run(result, target, device, samples)
    return result


def judged(result: VerifiedRun) -> dict[str, Any]:
    """The verdict and the outputs of a report."""
    report = as_json(result)
    return {**verdict_of(result.verdict), "outputs": report["outputs"]}


@pytest.mark.parametrize("target", sample([HOST, CORTEX_M4], 1), ids=["host", "mps2-an386"])
def test_parts_are_the_whole(target: Target, tmp_path: Path) -> None:
    step = step_of(save(random_network(15), tmp_path), "cross-entropy", "full", rate=0.05)
    runs = [drawn(step, "cross-entropy", number) for number in range(COUNT)]
    whole = device_run(step, tmp_path, target, runs, split=False)
    first = device_run(step, tmp_path, target, runs[:2], split=False)
    samples = samples_of(first, step)
    parts = continued(first, target, [samples[2:3], samples[3:]])
    assert judged(parts) == judged(whole)
    assert parts.verdict.extremes == whole.verdict.extremes
    for part, one in zip(
        parts.measured.device_run.observed.outputs, whole.measured.device_run.observed.outputs, strict=True
    ):
        for name, values in part.items():
            np.testing.assert_array_equal(values, one[name], name)
    for observed, computed in zip(
        parts.measured.device_run.observed.outputs, parts.verdict.host, strict=True
    ):
        for name, values in computed.items():
            np.testing.assert_array_equal(observed[name], values, name)
    states = {it.after.tensor for it in first.measured.device_run.deployment.plan.graph.states}
    held = [not states.isdisjoint(it) for it in parts.measured.device_run.observed.outputs]
    assert held == [False] * 3 + [True] * 4
    assert [not states.isdisjoint(it) for it in parts.verdict.host] == held
    assert [not states.isdisjoint(it) for it in parts.verdict.expected] == held


def test_a_later_difference_is_a_reason(tmp_path: Path) -> None:
    """A device that continues from other states than the host is not verified, from that sample on."""
    step = step_of(save(random_network(15), tmp_path), "cross-entropy", "full", rate=0.05)
    first = device_run(
        step, tmp_path, HOST, [drawn(step, "cross-entropy", number) for number in range(2)], split=False
    )
    graph, observed = first.measured.device_run.deployment.plan.graph, first.measured.device_run.observed
    name = graph.states[0].after.tensor
    wrong = [*observed.outputs[:-1], {**observed.outputs[-1], name: observed.outputs[-1][name] + 1}]
    other = replace(first.measured.device_run, observed=replace(observed, outputs=wrong))
    result = replace(first, measured=replace(first.measured, device_run=other))
    samples = samples_of(first, step)
    reasons = continued(result, HOST, [samples[2:3], samples[3:]]).verdict.reasons
    assert reasons and all("on the device differs from the host build" in reason for reason in reasons)
    assert {reason.partition(":")[0] for reason in reasons} == {f"sample {number}" for number in range(2, 7)}
