"""Training steps of int8 models: straight-through gradients against JAX, programs, and trained models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from float64_steps import Array
from jax_network import OPERATORS, jnp, lax, loss_and_gradients
from onnx import ModelProto, numpy_helper
from test_against_jax import by_parameter, constants_of
from test_gradients import drawn, step_of
from test_training_programs import CORTEX_M4, HOST, LARGE_RATE, device_run, values_of

import mcudeploy as md
from mcudeploy.common.errors import ModelError
from mcudeploy.extensions.training.forward import convolutions
from mcudeploy.extensions.training.int8_values import real_constant
from mcudeploy.extensions.training.named_layers import labels_of
from mcudeploy.extensions.training.recipe import Recipe, Update
from mcudeploy.extensions.training.step import trained_model, training_step
from mcudeploy.frontend.load import load
from tests.networks.onnx_files import save
from tests.networks.trained import Network
from tests.weekly import sample


def quantized(folder: Path, seed: int, activation: str = "Relu", tail: str = "") -> Path:
    """The file of an int8 network: dense, depthwise, multiplied and pointwise layers, and a residual sum."""
    network = Network(seed, (3, 9, 8))
    network.conv(8, 3, 2)
    network.activation(activation)
    before = network.value
    network.conv(8, 3, group=8)
    network.activation(activation)
    network.conv(8, 1)
    network.node("Add", [network.value, before])
    network.conv(16, 3, group=8)
    network.activation("Clip6")
    network.node("GlobalAveragePool", [network.value])
    network.size = (16, 1, 1)
    network.dense(5)
    if tail:
        network.node(tail, [network.value])
    samples = np.random.default_rng(seed).normal(0, 1, (12, 3, 9, 8)).astype(np.float32)
    np.save(folder / "samples.npy", samples)
    float32, int8 = save(network.model(), folder, "float"), folder / "network.onnx"
    md.quantize(float32, folder / "samples.npy", int8, method="minmax")
    return int8


def narrowed(path: Path, producer: str) -> None:
    """Divide the scale of the result of this node by 3, so that it saturates inside its input's range."""
    model = onnx.load(path)
    nodes = list(model.graph.node)
    (value,) = (node.output[0] for node in nodes if node.op_type == producer)
    (first,) = (at for at, node in enumerate(nodes) if node.input[0] == value)
    (scale,) = (it for it in model.graph.initializer if it.name == nodes[first].input[1])
    small = numpy_helper.from_array(np.asarray(numpy_helper.to_array(scale) / 3), "small_scale")
    model.graph.initializer.append(small)
    for node in nodes[first:]:  # a view has the scale of what it shows
        if node.op_type.endswith("Linear") and node.input[1] == scale.name:
            node.input[1] = small.name
    onnx.save(model, path)


def with_real_weights(model: ModelProto) -> ModelProto:
    """The model whose quantised constants are float32 constants of the same values."""
    constants = {it.name: numpy_helper.to_array(it) for it in model.graph.initializer}
    result = ModelProto()
    result.CopyFrom(model)
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in constants:
            integers, scale, zero = (constants[name] for name in node.input)
            size = (-1, *(1,) * (integers.ndim - 1)) if scale.size > 1 else ()
            reals = (integers.astype(np.float64) - zero.reshape(size)) * scale.reshape(size)
            result.graph.node.remove(node)
            result.graph.initializer.append(numpy_helper.from_array(reals.astype(np.float32), node.output[0]))
    return result


def quantize_linear(x: Array, scale: Array, zero: Array) -> Array:
    """Integers, as reals, whose gradient is that of x / scale where they do not saturate."""
    low, high = np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max
    steps = x / scale.astype(np.float64)
    integers = jnp.clip(jnp.round(steps) + int(zero), low, high)
    inside = (integers > low) & (integers < high)
    return lax.stop_gradient(integers) + jnp.where(inside, steps - lax.stop_gradient(steps), 0.0)


@pytest.fixture
def _quantizers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATORS, "QuantizeLinear", quantize_linear)
    monkeypatch.setitem(
        OPERATORS, "DequantizeLinear", lambda x, s, z: (x - int(z)) * np.asarray(s, np.float64)
    )


@pytest.mark.usefixtures("_quantizers")
@pytest.mark.parametrize("seed", sample([2, 0, 1], 1))
def test_straight_through(seed: int, tmp_path: Path) -> None:
    """Every gradient of the program is JAX's within 1e-5 of its largest; in seed 2, a mean saturates."""
    path = quantized(tmp_path, seed, "" if seed == 1 else "Relu")
    if seed == 2:
        narrowed(path, "GlobalAveragePool")
    model, step = with_real_weights(onnx.load(path)), step_of(path, "cross-entropy", rate=LARGE_RATE)
    inputs = drawn(step, "cross-entropy", seed)
    sample = {name: array for name, array in inputs.items() if name != step.target}
    names = [name for pair in constants_of(model) for name in pair]
    loss, gradients = loss_and_gradients(model, sample, inputs[step.target], names)
    result = device_run(step, tmp_path, HOST, [inputs], split=seed == 2)
    assert result.verdict.reasons == ()
    (values,) = values_of(result)
    assert float(values[step.loss].item()) == pytest.approx(loss, rel=1e-5)
    initial = {it.name: numpy_helper.to_array(it).astype(np.float64) for it in model.graph.initializer}
    before, wanted = (by_parameter(model, step, arrays) for arrays in (initial, gradients))
    for name, following in step.parameters.items():
        gradient = (before[name] - values[following].astype(np.float64)) / LARGE_RATE
        assert np.abs(gradient - wanted[name]).max() <= 1e-5 * np.abs(wanted[name]).max() + 1e-12, name


@pytest.mark.weekly
def test_steps_on_a_board(tmp_path: Path) -> None:
    """Frozen layers compute in int8, by their trained biases, and the device has the host's bits."""
    step = step_of(quantized(tmp_path, 4), "cross-entropy", "bias", rate=0.05)
    runs = [drawn(step, "cross-entropy", number % 3) for number in range(6)]
    results = [device_run(step, tmp_path, target, runs, split=True) for target in (HOST, CORTEX_M4)]
    assert [result.verdict.reasons for result in results] == [(), ()]
    kinds = [it.op.kind for it in results[0].measured.device_run.deployment.plan.graph.operators]
    assert kinds.count("BiasedConv2d") == 4
    assert kinds.count("TrainedConv2d") == 1
    on_host, on_board = map(values_of, results)
    for one, other in zip(on_host, on_board, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], name)


def test_a_trained_model_computes_what_its_step_does(tmp_path: Path) -> None:
    path = quantized(tmp_path, 5)
    step = step_of(path, "cross-entropy", "last:2", rate=0.05)
    runs = [drawn(step, "cross-entropy", 0)] * 2
    first, second = values_of(device_run(step, tmp_path, HOST, runs, split=False))
    parameters = {name: first[following] for name, following in step.parameters.items()}
    trained = save(trained_model(load(path, keep_constant=True), parameters), tmp_path, "trained")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )  # which rounds twice
    session = onnxruntime.InferenceSession(trained, options)
    sample = {it.name: runs[1][it.name] for it in session.get_inputs()}
    (output,) = session.run(None, sample)
    name = session.get_outputs()[0].name
    np.testing.assert_allclose(output, second[name], rtol=0, atol=1e-6)


def test_some_input_channels(tmp_path: Path) -> None:
    """Weights of the first channels have the gradients that they have among all."""
    path = quantized(tmp_path, 6)
    graph = load(path, keep_constant=True)
    whole = step_of(path, "cross-entropy", rate=LARGE_RATE)
    labels = {layer.name: labels_of(layer)[0] for layer in convolutions(graph)}
    inputs = drawn(whole, "cross-entropy", 1)
    values = []
    for share in (1, 0.4):
        shares = {labels["conv_2"]: share, labels["conv_4"]: share}
        chosen = tmp_path / "chosen.json"
        chosen.write_text(json.dumps({"weights": shares, "biases": [labels["conv_1"]]}))
        update = Update.parse(f"sparse:{chosen}")
        step = training_step(graph, Recipe(update=update, rate=LARGE_RATE))
        (after,) = values_of(device_run(step, tmp_path, HOST, [inputs], split=False))
        values.append({name: after[following] for name, following in step.parameters.items()})
    every, some = values
    assert set(every) == set(some)
    for name, array in some.items():
        same = every[name][:, : array.shape[1]] if name.endswith("weights") else every[name]
        assert array.shape == same.shape
        np.testing.assert_allclose(array, same, rtol=1e-5, atol=1e-5 * np.abs(same).max())
    assert some["conv_2_weights"].shape == (8, 3, 1, 1)
    chosen.write_text(json.dumps({"weights": {labels["conv_2"]: 0.99}}))
    step = training_step(graph, Recipe(update=Update.parse(f"sparse:{chosen}")))  # 8 of 8 channels
    assert step.origins["conv_2_weights"].elements == 64


@pytest.mark.parametrize("float_io", [False, True])
def test_the_softmax_at_the_end_is_that_of_the_loss(float_io: bool, tmp_path: Path) -> None:
    graph = load(quantized(tmp_path, 8, tail="Softmax"), keep_constant=True, float_io=float_io)
    step = training_step(graph, Recipe())
    assert [node.op_type for node in step.proto.graph.node].count("Softmax") == 1


def test_weights_with_zero_points(tmp_path: Path) -> None:
    """Frozen uint8 weights keep their real values, and a bias beside them is not trained alone."""
    path = quantized(tmp_path, 9)
    model = onnx.load(path)
    for array in model.graph.initializer:
        integers = numpy_helper.to_array(array)
        weights = [it.input for it in model.graph.node if it.input[0] == array.name and integers.ndim > 1]
        for _, _, zero in weights if integers.dtype == np.int8 else []:
            array.CopyFrom(
                numpy_helper.from_array(np.uint8(np.clip(integers * 1.5 + 60, 0, 255)), array.name)
            )
            (point,) = (it for it in model.graph.initializer if it.name == zero)
            points = np.full(numpy_helper.to_array(point).shape, 60, np.uint8)
            point.CopyFrom(numpy_helper.from_array(points, zero))
    onnx.save(model, path)
    graph = load(path, keep_constant=True)
    frozen = [it for it in convolutions(graph)[:-1] if it.constants["weights"].dtype == np.int16]
    step = training_step(graph, Recipe())
    constants = {it.name: numpy_helper.to_array(it) for it in step.proto.graph.initializer}
    for layer in frozen:
        (inputs,) = (it.input for it in step.proto.graph.node if f"{layer.name}_weights_real" in it.output)
        value, scale, zero = (constants[name].astype(np.float64) for name in inputs)
        column = (-1, 1, 1, 1)
        reals = (value - zero.reshape(column)) * scale.reshape(column)
        np.testing.assert_allclose(reals, real_constant(graph, layer, "weights"), rtol=1e-6)
    assert len(frozen) > 1
    with pytest.raises(ModelError, match=r"its weights have a zero point other than 0.*full, last:K"):
        training_step(graph, Recipe(update=Update.parse("bias")))


def test_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"in a table, without.*train the float model"):
        step_of(quantized(tmp_path, 7, "Sigmoid"), "cross-entropy")
