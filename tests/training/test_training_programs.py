"""Training steps as programs: verified on the host, on an emulated board, and against float64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from float64_steps import Array, Descent, Float64Step
from onnx import ModelProto
from test_gradients import drawn, step_of

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.device.target import Target
from mcudeploy.execution.parts import RunRequest
from mcudeploy.execution.results import VerifiedRun
from mcudeploy.extensions.training.step import TrainingStep
from mcudeploy.ops.host_io import from_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from mcudeploy.verify.samples import NamedArray
from tests.networks.onnx_files import save
from tests.networks.trained import Network, random_network
from tests.weekly import sample

HOST = Target(load_board("host"))
CORTEX_M4 = Target(load_board("mps2-an386"), emulate=True)
LARGE_RATE = 1e6
"""A rate at which the weights vanish beside their change, so that the change is the gradient."""


def device_run(
    step: TrainingStep, folder: Path, target: Target, runs: list[dict[str, Array]], split: bool
) -> VerifiedRun:
    """The steps in turn as a program."""
    path = save(step.proto, folder, "step")
    names = [it.name for it in step.proto.graph.input if it.name not in step.states]
    inputs = [NamedArray(name, np.stack([run[name] for run in runs])) for name in names]
    options = Options(split=split, time_limit=0.5, fresh=True)
    return api.run_model(path, target, options, RunRequest(inputs))


def values_of(result: VerifiedRun) -> list[dict[str, Array]]:
    """All outputs of each run, and the parameters after it, in the model's form."""
    graph = result.measured.device_run.deployment.plan.graph
    return [
        {it.name: from_device(it, graph.tensors[it.tensor], stored[it.tensor]) for it in graph.outputs}
        for stored in result.measured.device_run.observed.outputs
    ]


@pytest.mark.parametrize("seed", sample(range(5), 2))
def test_gradients_of_the_program(seed: int, tmp_path: Path) -> None:
    """Every gradient is within 1e-5 of the largest of its parameter."""
    step = step_of(save(random_network(seed), tmp_path), "cross-entropy", rate=LARGE_RATE)
    inputs, reference = drawn(step, "cross-entropy", seed), Float64Step(step)
    result = device_run(step, tmp_path, HOST, [inputs], split=seed % 2 == 0)
    assert result.verdict.reasons == ()
    (values,) = values_of(result)
    wanted = reference.gradients(inputs, reference.initial, LARGE_RATE)
    assert len(wanted) >= 4
    for name, following in step.parameters.items():
        gradient = (reference.initial[name] - values[following].astype(np.float64)) / LARGE_RATE
        largest = np.abs(wanted[name]).max()
        assert np.abs(gradient - wanted[name]).max() <= 1e-5 * largest + 1e-12, name


@pytest.mark.parametrize("update", sample(["full", "bias", "last:2"], 2))
def test_steps_in_turn(update: str, tmp_path: Path) -> None:
    """From the same parameters, a loss is within 1e-5 and parameters within 1e-6 of float64."""
    step = step_of(save(random_network(15), tmp_path), "cross-entropy", update, rate=0.05)
    runs = [drawn(step, "cross-entropy", number % 3) for number in range(20)]
    result = device_run(step, tmp_path, HOST, runs, split=False)
    assert result.verdict.reasons == ()
    reference = Float64Step(step)
    parameters = reference.initial
    losses = []
    for inputs, values in zip(runs, values_of(result), strict=True):
        wanted = reference.outputs(inputs, parameters)
        losses.append(float(values[step.loss].item()))
        assert losses[-1] == pytest.approx(float(wanted[step.loss].item()), rel=1e-5, abs=1e-6)
        for following in step.parameters.values():
            largest = np.abs(wanted[following]).max()
            assert np.abs(values[following] - wanted[following]).max() <= 1e-6 * largest, following
        parameters = {name: values[following] for name, following in step.states.items()}
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])


@pytest.mark.parametrize(
    ("target", "choices"),
    [
        (HOST, {"batch": 2, "momentum": 0.9, "weight_decay": 0.1}),
        pytest.param(HOST, {"momentum": 0.9, "weight_decay": 0.1}, marks=pytest.mark.weekly),
        (CORTEX_M4, {"batch": 2, "weight_decay": 0.1, "clip_norm": 0.3}),
        (HOST, {"clip_norm": 0.5}),
        pytest.param(HOST, {"clip_norm": 100.0}, marks=pytest.mark.weekly),
    ],
    ids=lambda it: "-".join(it) if isinstance(it, dict) else it.board.name,
)
def test_batches(target: Target, choices: dict[str, Any], tmp_path: Path) -> None:
    """Parameters are those of the formula after each sample; between updates they stay as they are."""
    path, rate, count = save(random_network(15), tmp_path), 0.05, 6
    step = step_of(path, "cross-entropy", rate=rate, **choices)
    runs = [drawn(step, "cross-entropy", number) for number in range(count)]
    result = device_run(step, tmp_path, target, runs, split="batch" in choices and target is HOST)
    assert result.verdict.reasons == ()
    descent = Descent(step_of(path, "cross-entropy"), **choices)
    wanted = descent.parameters(runs, [rate] * count)
    initial = Float64Step(step).initial
    moved = {name: np.abs(wanted[-1][name] - initial[name]).max() for name in step.parameters}
    for values, after in zip(values_of(result), wanted, strict=True):
        for name, following in step.parameters.items():
            assert np.abs(values[following] - after[name]).max() <= 1e-4 * moved[name], name


@pytest.mark.parametrize("momentum", sample([0.5, 0.0], 1))
def test_recomputed_tensors_have_the_bits_of_kept_ones(momentum: float, tmp_path: Path) -> None:
    path = save(random_network(8), tmp_path)
    results = []
    for keep in (None, ()):
        step = step_of(path, "cross-entropy", rate=0.05, momentum=momentum, keep=keep)
        runs = [drawn(step, "cross-entropy", number) for number in range(3)]
        result = device_run(step, tmp_path, HOST, runs, split=keep is not None)
        assert result.verdict.reasons == ()
        results.append(values_of(result)[-1])
    assert len(results[0]) >= 6
    for name, array in results[0].items():
        np.testing.assert_array_equal(results[1][name], array, name)


def rules() -> ModelProto:
    """A maximum and activations whose gradients the random networks lack.

    Exponentials, as of Elu, are those of the C library, which may differ in the last bit.
    """
    net = Network(7, (3, 10, 9))
    net.conv(6, 3)
    net.activation("Relu")
    net.node("MaxPool", [net.value], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    net.size = (6, 5, 4)
    net.conv(5, 1)
    net.node("HardSwish", [net.value])
    net.conv(6, 3)
    net.node("LeakyRelu", [net.value], alpha=0.125)
    net.dense(4)
    return net.model()


@pytest.mark.parametrize("model", sample([rules, lambda: random_network(2), lambda: random_network(5)], 1))
def test_a_board_has_the_bits_of_the_host(model: Callable[[], ModelProto], tmp_path: Path) -> None:
    step = step_of(save(model(), tmp_path), "mse", rate=0.01)
    runs = [drawn(step, "mse", number) for number in range(3)]
    result = device_run(step, tmp_path, CORTEX_M4, runs, split=False)
    assert result.verdict.reasons == () and as_json(result)["stack_bound_bytes"] > 0
    for board, host in zip(result.measured.device_run.observed.outputs, result.verdict.host, strict=True):
        for name, array in host.items():
            np.testing.assert_array_equal(board[name], array, name)
