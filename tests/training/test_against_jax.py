"""Training steps against JAX, which differentiates the model itself, in float64."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np
import onnx
import pytest
from float64_steps import Array, Float64Step
from jax_network import loss_and_gradients
from onnx import ModelProto, numpy_helper
from test_branch_gradients import NETWORKS, RESIZES, resized, shuffled
from test_gradients import drawn, step_of
from test_pool_gradients import POOLS, pooled
from test_training_programs import HOST, LARGE_RATE, device_run, values_of
from test_unary_gradients import FUNCTIONS, network, of_newest_opset

from mcudeploy.extensions.training.step import TrainingStep
from mcudeploy.frontend.onnx.plain_forms import walk_depth_first
from tests.networks.onnx_files import save
from tests.networks.trained import random_network
from tests.weekly import sample

KWS = Path(os.environ.get("MODELS", "models")) / "mlperf_tiny/kws01_fp32/model.onnx"

RULES: dict[str, Callable[[], ModelProto]] = {
    **{f"random_{seed}": lambda seed=seed: random_network(seed) for seed in range(8)},
    **{name: lambda name=name: pooled(name).model() for name in POOLS if name != "dilated"},
    **{
        name: lambda op=op, attributes=attributes: of_newest_opset(network(op, **attributes).model())
        for name, (op, attributes) in FUNCTIONS.items()
    },
    "linear": lambda: resized((16, 15), RESIZES[0]).model(),
    **{it.__name__: lambda it=it: it().model() for it in NETWORKS if it is not shuffled},
}
"""The networks of the tests of single rules. JAX has no gradient of dilated maxima. The program of `shuffled`
has its channels, and so its weights, in another order than the file.
"""


def constants_of(model: ModelProto) -> Iterator[tuple[str, str]]:
    """The constants of layers with weights, as a program numbers them: weights and bias; a bias may be a
    later Add.
    """
    ordered = deepcopy(model.graph)
    walk_depth_first(ordered)
    nodes = list(ordered.node)
    for node in nodes:
        if node.op_type == "MatMul":
            (after,) = [it for it in nodes if node.output[0] in it.input]
            yield node.input[1], after.input[1]
        elif node.op_type in ("Conv", "Gemm"):
            yield node.input[1], node.input[2]


def by_parameter(model: ModelProto, step: TrainingStep, by_constant: dict[str, Array]) -> dict[str, Array]:
    """Arrays of the constants of a file, by names and in shapes of the step's parameters."""
    transposed = {node.input[1] for node in model.graph.node if node.op_type == "MatMul"}
    arrays = {}
    for number, names in enumerate(constants_of(model)):
        for kind, name in zip(("weights", "bias"), names, strict=True):
            array = by_constant[name].T if name in transposed else by_constant[name]
            arrays[f"conv_{number}_{kind}"] = array
    shapes = {
        it.name: [size.dim_value for size in it.type.tensor_type.shape.dim] for it in step.proto.graph.input
    }
    assert set(arrays) == set(step.parameters)
    return {name: arrays[name].reshape(shapes[name]) for name in step.parameters}


def compared(model: ModelProto, step: TrainingStep) -> tuple[dict[str, Array], dict[str, Array], float]:
    """Inputs, and JAX's gradients by parameter and loss."""
    inputs = drawn(step, "cross-entropy", 2)
    sample = {name: array for name, array in inputs.items() if name != step.target}
    names = [name for pair in constants_of(model) for name in pair]
    loss, gradients = loss_and_gradients(model, sample, inputs[step.target], names)
    return inputs, by_parameter(model, step, gradients), loss


@pytest.mark.parametrize(
    "name", sample(RULES, {"random_3", "overlapping", "GeluByTanh", "linear", "excited"})
)
def test_rules(name: str, tmp_path: Path) -> None:
    """The gradients of the step in float64 are JAX's within 1e-6: constants of its functions are float32."""
    model = RULES[name]()
    step = step_of(save(model, tmp_path), "cross-entropy")
    inputs, wanted, loss = compared(model, step)
    reference = Float64Step(step)
    assert reference.loss(inputs, reference.initial) == pytest.approx(loss, rel=1e-6)
    for parameter, gradient in reference.gradients(inputs, reference.initial, 1.0).items():
        largest = np.abs(wanted[parameter]).max()
        assert np.abs(gradient - wanted[parameter]).max() <= 1e-6 * largest + 1e-12, parameter


@pytest.mark.parametrize("name", sample(["random_3", "concatenated", "excited", "ceil", "HardSwish"], 1))
def test_programs(name: str, tmp_path: Path) -> None:
    """Gradients of the program are JAX's within 1e-5, and parameters after a step within 1e-6."""
    check_program(RULES[name](), tmp_path)


@pytest.mark.skipif(not KWS.exists(), reason="MODELS names no folder with the models of MLPerf Tiny")
def test_keyword_spotting(tmp_path: Path) -> None:
    check_program(onnx.load(KWS), tmp_path)


def check_program(model: ModelProto, folder: Path) -> None:
    """Compare one step of a program with JAX at two rates; at the large one the change is the gradient."""
    initial = {it.name: numpy_helper.to_array(it).astype(np.float64) for it in model.graph.initializer}
    path = save(model, folder)
    inputs, gradients, loss = compared(model, step_of(path, "cross-entropy"))
    for rate, tolerance in ((LARGE_RATE, 1e-5), (0.05, 1e-6)):
        step = step_of(path, "cross-entropy", rate=rate)
        result = device_run(step, folder, HOST, [inputs], split=False)
        assert result.verdict.reasons == ()
        (values,) = values_of(result)
        assert float(values[step.loss].item()) == pytest.approx(loss, rel=1e-5)
        before = by_parameter(model, step, initial)
        for name, following in step.parameters.items():
            wanted = before[name] - rate * gradients[name]
            error = np.abs(values[following] - wanted).max()
            assert error <= tolerance * np.abs(wanted).max() + 1e-12, name
