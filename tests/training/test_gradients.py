"""The gradients of training steps: slopes of the loss in float64, and those that programs compute."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from float64_steps import Array, Float64Step, one_hot
from onnx import numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.extensions.training.lora import adapted
from mcudeploy.extensions.training.recipe import Loss, Recipe, Update
from mcudeploy.extensions.training.step import TrainingStep, training_step
from mcudeploy.frontend.load import load
from tests.networks.onnx_files import save
from tests.networks.trained import Network, random_network
from tests.weekly import sample

WIDTHS = (1e-5, 1e-6, 1e-7)
NOISE = 4e-16
"""Rounding of a loss in float64, relative to it."""
TINY = 1e-30
SLOPE_TOLERANCE = 1e-5
"""Of a slope along a direction, relative to the sum of the sizes of its terms."""


def step_of(
    model: Path,
    loss: Loss,
    update: str = "full",
    rate: float = 1.0,
    *,
    keep: tuple[str, ...] | None = None,
    **choices: Any,
) -> TrainingStep:
    """The training step of a model; `keep`: as in `training_step`, `choices`: as in `Recipe`."""
    recipe = Recipe(loss, Update.parse(update), rate, **choices)
    return training_step(adapted(load(model, keep_constant=True), recipe.update), recipe, keep)


def drawn(step: TrainingStep, loss: Loss, seed: int) -> dict[str, Array]:
    """Normal inputs, and a target."""
    rng = np.random.default_rng(seed)
    shapes = {
        value.name: tuple(it.dim_value for it in value.type.tensor_type.shape.dim)
        for value in step.proto.graph.input
        if value.name not in step.states
    }
    inputs = {name: rng.normal(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    if loss == "cross-entropy":
        classes = int(np.prod(shapes[step.target]))
        label = one_hot(int(rng.integers(classes)), classes)
        inputs[step.target] = label.reshape(shapes[step.target])
    return inputs


def worst_slope(step: TrainingStep, inputs: dict[str, Array], seed: int = 0) -> float:
    """The largest difference of a parameter's slope along a random direction and the product with its
    gradient.
    """
    evaluated = Float64Step(step)
    parameters = evaluated.initial
    gradients = evaluated.gradients(inputs, parameters, 1.0)
    rng, worst = np.random.default_rng(seed), 0.0
    noise = NOISE * max(1.0, abs(evaluated.loss(inputs, parameters)))
    for name, gradient in gradients.items():
        direction = rng.normal(0, 1, gradient.shape)
        product = float((gradient * direction).sum())

        def slope(width: float, name: str = name, direction: Array = direction) -> float:
            ends = [
                evaluated.loss(inputs, {**parameters, name: parameters[name] + sign * width * direction})
                for sign in (1, -1)
            ]
            return (ends[0] - ends[1]) / (2 * width)

        # near the edge of a clip, only the shorter difference is a slope
        errors = [max(0.0, abs(slope(width) - product) - noise / width) for width in WIDTHS]
        worst = max(worst, min(errors) / max(float(np.abs(gradient * direction).sum()), TINY))
    return worst


@pytest.mark.parametrize("seed", sample(range(24), 5))
def test_gradients_are_slopes_of_the_loss(seed: int, tmp_path: Path) -> None:
    loss: Loss = "mse" if seed % 3 == 0 else "cross-entropy"
    path, update = save(random_network(seed), tmp_path), "bias" if seed % 2 else "full"
    step = step_of(path, loss, update, momentum=0.9 * (seed % 4 == 1), keep=() if seed % 4 == 2 else None)
    assert worst_slope(step, drawn(step, loss, seed)) < SLOPE_TOLERANCE


@pytest.mark.parametrize("seed", sample([3, 1, 8], 1))
def test_gradients_of_low_rank_factors(seed: int, tmp_path: Path) -> None:
    """At random factors; at first those of A have no gradient, since B is zero."""
    step = step_of(save(random_network(seed), tmp_path), "cross-entropy", "lora:1")
    rng, random = np.random.default_rng(seed), 0
    for tensor in step.proto.graph.initializer:
        if tensor.name.endswith("lora_b_weights_initial"):
            values = rng.normal(0, 1, tensor.dims).astype(np.float32)
            assert not numpy_helper.to_array(tensor).any()
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
            random += 1
    assert 4 * random == len(step.parameters) > 0
    assert worst_slope(step, drawn(step, "cross-entropy", seed)) < SLOPE_TOLERANCE


def test_tensors_are_computed_again_from_those_that_are_kept(tmp_path: Path) -> None:
    path = save(random_network(13), tmp_path)
    kinds = [
        Counter(node.op_type for node in step_of(path, "cross-entropy", keep=keep).proto.graph.node)
        for keep in (None, ("y_3",), ())
    ]
    convolutions = [it["TrainedConv"] for it in kinds]
    assert convolutions[0] < convolutions[2] <= 2 * convolutions[0] - 1


def test_bits_are_kept_where_values_are_not_read_again(tmp_path: Path) -> None:
    path = save(random_network(13), tmp_path)
    counts = [
        Counter(node.op_type for node in step_of(path, "cross-entropy", update).proto.graph.node)
        for update in ("full", "bias")
    ]
    assert counts[0]["ClipMask"] == 0 < counts[0]["ClipGradient"]
    assert counts[1]["ClipMask"] == counts[1]["MaskedGradient"] > 0


def test_a_wrong_gradient_is_found(tmp_path: Path) -> None:
    step = step_of(save(random_network(1), tmp_path), "cross-entropy")
    (node,) = [it for it in step.proto.graph.node if it.name.endswith("loss_gradient")]
    node.input[0], node.input[1] = node.input[1], node.input[0]
    assert worst_slope(step, drawn(step, "cross-entropy", 1)) > 0.1


def test_names_of_the_file_stay(tmp_path: Path) -> None:
    """An input called target and an output called as an operator of the program keep their names."""
    model = random_network(13)
    output = model.graph.output[0].name
    for node in model.graph.node:
        node.input[:] = ["target" if it == "x" else it for it in node.input]
        node.output[:] = ["conv_0" if it == output else it for it in node.output]
    model.graph.input[0].name, model.graph.output[0].name = "target", "conv_0"
    step = step_of(save(model, tmp_path), "cross-entropy")
    assert [it.name for it in step.proto.graph.input if it.name not in step.states] == [
        "target",
        step.target,
    ]
    assert step.proto.graph.output[0].name == "conv_0" and step.target == "target_"
    assert worst_slope(step, drawn(step, "cross-entropy", 1)) < SLOPE_TOLERANCE


def test_an_input_called_as_a_parameter_is_refused(tmp_path: Path) -> None:
    model = random_network(13)
    for node in model.graph.node:
        node.input[:] = ["conv_0_weights" if it == "x" else it for it in node.input]
    model.graph.input[0].name = "conv_0_weights"
    with pytest.raises(ModelError, match="'conv_0_weights', the name of a parameter of the step: rename it"):
        step_of(save(model, tmp_path), "cross-entropy")


def test_a_sum_keeps_bits_and_a_product_keeps_values(tmp_path: Path) -> None:
    def counts(function: str) -> Counter[str]:
        net = Network(4, (3, 6, 6))
        net.conv(3, 3)
        before = net.node("Relu", [net.value])
        net.conv(3, 3)
        net.node(function, [net.value, before])
        net.dense(3)
        step = step_of(save(net.model(), tmp_path), "cross-entropy", "bias")
        assert worst_slope(step, drawn(step, "cross-entropy", 0)) < SLOPE_TOLERANCE
        return Counter(node.op_type for node in step.proto.graph.node)

    assert counts("Add")["ClipMask"] == counts("Mul")["ClipGradient"] == 1
    assert counts("Add")["ClipGradient"] == counts("Mul")["ClipMask"] == 0


@pytest.mark.parametrize(("update", "kind"), [("bias", "ClipMask"), ("full", "ClipGradient")])
def test_a_view_keeps_what_its_readers_keep(update: str, kind: str, tmp_path: Path) -> None:
    """A convolution reads the clipped values again, through a view, only if its weights are trained."""
    net = Network(4, (3, 6, 6))
    net.conv(3, 3)
    net.node("Relu", [net.value])
    net.constants["sizes"] = np.array([1, 3, 4, 9])
    net.node("Reshape", [net.value, "sizes"])
    net.size = (3, 4, 9)
    net.conv(3, 3)
    net.dense(3)
    step = step_of(save(net.model(), tmp_path), "cross-entropy", update)
    kinds = Counter(node.op_type for node in step.proto.graph.node)
    assert kinds["ClipMask"] + kinds["ClipGradient"] == kinds[kind] == 1
    assert worst_slope(step, drawn(step, "cross-entropy", 0)) < SLOPE_TOLERANCE
