"""`mcudeploy quantize --round adaptive`: weights rounded to the results of layers."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import NodeProto, helper

import mcudeploy as md
from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.common.errors import UsageError
from mcudeploy.device.target import Target
from mcudeploy.extensions.quantization.adaptive_rounding import _Layer, _places, _StoredConstant
from mcudeploy.extensions.quantization.model_walk import ModelWalk
from mcudeploy.extensions.quantization.weight_rounding import (
    LayerWeights,
    Moments,
    _factors,
    round_weights,
)
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.reference import Reference
from tests import reports
from tests.networks.onnx_files import build
from tests.networks.small import classifier, images

HOST = Target(load_board("host"))
RNG = np.random.default_rng


def correlated(rows: int, size: int) -> np.ndarray:
    """Rows of inputs that two factors explain, but for a little noise."""
    rng = RNG(7)
    return rng.normal(size=(rows, 2)) @ rng.normal(size=(2, size)) + 0.2 * rng.normal(size=(rows, size)) + 1


def layer_of(groups: int, size: int, *, has_bias: bool) -> tuple[LayerWeights, np.ndarray, np.ndarray]:
    """A layer of a few levels, its inputs [g, rows, n], and its results in float."""
    real = RNG(8).normal(size=(groups, 3, size))
    columns = np.stack([correlated(500, size) * (1 + group) for group in range(groups)])
    results = columns @ real.transpose(0, 2, 1) + 0.7 * has_bias
    scales = np.abs(real).max(axis=2, keepdims=True) / 9
    return LayerWeights(real, scales, -9, 9, has_bias), columns, results


@pytest.mark.parametrize("has_bias", [False, True])
def test_results_are_nearer_than_by_the_nearest_integers(has_bias: bool) -> None:
    weights, columns, results = layer_of(2, 12, has_bias=has_bias)
    fit, check = (Moments.of(columns[:, part], results[:, part]) for part in (slice(0, 200), slice(200, 400)))
    rounded = round_weights(weights, fit, check)
    assert np.array_equal(rounded.integers, np.rint(rounded.integers)) and abs(rounded.integers).max() <= 9
    held_out = columns[:, 400:]

    def error(integers: np.ndarray, bias: np.ndarray) -> float:
        wanted = held_out @ weights.real.transpose(0, 2, 1) + 0.7 * has_bias
        got = held_out @ (integers * weights.scales).transpose(0, 2, 1) + bias[:, None]
        return float(np.mean((wanted - got) ** 2))

    nearest = weights.nearest(weights.real / weights.scales)
    assert error(rounded.integers, rounded.bias) < error(nearest, np.full((2, 3), 0.7 * has_bias)) / 4
    if not has_bias:
        assert not rounded.bias.any()


def test_results_are_near_those_of_the_best_integers_of_all() -> None:
    weights, columns, results = layer_of(1, 4, has_bias=False)
    moments = Moments.of(columns, results)
    rounded = round_weights(weights, moments, moments)
    choices = np.array(list(itertools.product((-1, 0, 1, 2), repeat=4)))
    for channel, scale in enumerate(weights.scales[0, :, 0]):

        def errors(integers: np.ndarray, channel: int = channel, scale: float = scale) -> np.ndarray:
            got = columns[0] @ (integers * scale).T
            return np.mean((got - results[0, :, channel, None]) ** 2, axis=0)

        start = np.floor(weights.real[0, channel] / scale)
        own, nearest = errors(np.stack([rounded.integers[0, channel], weights.nearest(start + 0.5)]))
        assert own <= nearest and own <= 2.1 * errors(weights.nearest(start + choices)).min()


def test_moments_of_parts_are_those_of_the_whole() -> None:
    _, columns, results = layer_of(2, 5, has_bias=True)
    whole = Moments.of(columns, results)
    parts = Moments.of(columns[:, :100], results[:, :100]).joined(
        Moments.of(columns[:, 100:], results[:, 100:])
    )
    for name in ("xx", "yx", "x", "y"):
        assert np.allclose(getattr(whole, name), getattr(parts, name))
    centred = columns - whole.x[:, None]
    assert np.allclose(whole.about(whole.x, whole.y)[0], centred.transpose(0, 2, 1) @ centred / 500)


LAYERS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "Conv": ((1, 4, 9, 7), (6, 4, 3, 2), {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 2, 1]}),
    "Conv depthwise": ((2, 4, 6, 6), (8, 1, 3, 3), {"group": 4}),
    "Conv upper": ((1, 2, 8, 7), (4, 2, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "Conv lower": ((1, 2, 8, 7), (4, 2, 2, 3), {"auto_pad": "SAME_LOWER"}),
    "Conv line": ((1, 3, 20), (5, 3, 4), {"strides": [3]}),
    "MatMul": ((2, 5, 6), (6, 3), {}),
    "Gemm": ((2, 6), (3, 6), {"transB": 1}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_rows_of_inputs_by_weights_are_the_results(name: str, tmp_path: Path) -> None:
    shape, sizes, attributes = LAYERS[name]
    rng = RNG(1)
    weights = rng.normal(size=sizes).astype(np.float32)
    node = helper.make_node(name.split(maxsplit=1)[0], ["x", "w"], ["y"], "n", **attributes)
    onnx.save(build([node], {"x": (np.float32, shape)}, ["y"], {"w": weights}), tmp_path / "m.onnx")
    x = rng.normal(size=shape).astype(np.float32)
    y = Reference(tmp_path / "m.onnx", ["y"]).run({"x": x})["y"]
    tensor = onnx.load(tmp_path / "m.onnx").graph.initializer[0]
    layer = _Layer(node, "y", tensor, _StoredConstant(tensor, tensor), None)
    columns, results = layer.rows(x, y, 10**6)
    assert results.size == y.size
    assert np.allclose(columns @ layer.grouped(weights).transpose(0, 2, 1), results, atol=1e-5)
    assert np.array_equal(layer.ungrouped(layer.grouped(weights)), weights)
    fewer = layer.rows(x, y, 3)
    assert fewer[0].shape[1] <= 3 * len(x)
    assert np.allclose(fewer[0] @ layer.grouped(weights).transpose(0, 2, 1), fewer[1], atol=1e-5)
    assert np.array_equal(_places(50, 8), _places(50, 8))


def _sum(name: str, *inputs: str) -> NodeProto:
    return helper.make_node("Add", inputs, [name], name)


def test_a_walk_computes_each_node_once_and_reads_new_constants(tmp_path: Path) -> None:
    nodes = [_sum("a", "x", "one"), _sum("b", "a", "two"), _sum("c", "a", "b"), _sum("d", "c", "two")]
    constants = {"one": np.float32([1]), "two": np.float32([2])}
    model = build(nodes, {"x": (np.float32, (1,))}, ["d"], constants)
    walk = ModelWalk(model, tmp_path / "piece.onnx", [{"x": np.float32([at])} for at in range(3)])
    assert [float(it[0]) for it in walk.to("a")] == [1, 2, 3]
    assert [float(it[0]) for it in walk.to("a")] == [1, 2, 3]
    tensor = next(it for it in model.graph.initializer if it.name == "two")
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.float32([10]), "two"))
    assert [float(it[0]) for it in walk.to("c")] == [12, 14, 16]
    assert [float(it[0]) for it in walk.to("d")] == [22, 24, 26]


def call(line: str) -> Result:
    return CliRunner().invoke(cli, ["quantize", *line.split()])


def dense_network(path: Path) -> Path:
    """[1, 24] -> four layers of 24 -> [1, 6]."""
    rng = RNG(2)
    constants = {f"w{at}": rng.normal(size=(24, 24)).astype(np.float32) / 5 for at in range(4)}
    for at in range(4):
        constants[f"w{at}"][0] *= 12  # few levels remain for the other weights of a channel
    constants |= {f"b{at}": rng.normal(size=24).astype(np.float32) / 5 for at in range(4)}
    constants["w"] = rng.normal(size=(24, 6)).astype(np.float32)
    nodes, last = [], "x"
    for at in range(4):
        nodes += [
            helper.make_node("Gemm", [last, f"w{at}", f"b{at}"], [f"d{at}"], f"dense{at}"),
            helper.make_node("Relu", [f"d{at}"], [f"r{at}"], f"relu{at}"),
        ]
        last = f"r{at}"
    nodes.append(helper.make_node("MatMul", [last, "w"], ["y"], "last"))
    onnx.save(build(nodes, {"x": (np.float32, (1, 24))}, ["y"], constants), path)
    return path


def test_a_network_loses_less_and_its_file_is_the_same_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dense_network(tmp_path / "m.onnx")
    np.save("x.npy", correlated(240, 24).astype(np.float32)[:, None])
    command = "m.onnx --data x.npy --method minmax --round adaptive --json -o "
    first = call(f"{command} a.onnx")
    assert first.exit_code == 0, first.stderr
    report = json.loads(first.stdout)
    assert [one["rounding"] for one in report["methods"]] == ["nearest", "adaptive"]
    nearest, adaptive = (one["sqnr_db"] for one in report["methods"])
    assert adaptive > nearest + 1 and report["rounding"] == "adaptive"
    assert report["outputs"][0]["sqnr_db"] == adaptive
    assert call(f"{command} b.onnx").exit_code == 0
    assert Path("a.onnx").read_bytes() == Path("b.onnx").read_bytes()
    ran = reports.run_model(tmp_path / "a.onnx", HOST, Options(time_limit=0.5), inputs=[], expected=[])
    assert ran["verified"], ran["reason"]


def test_weights_of_four_bits_are_rounded_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    model = onnx.load(classifier(tmp_path / "m.onnx"))
    addend = onnx.numpy_helper.from_array(RNG(4).normal(size=(1, 4)).astype(np.float32), "addend")
    model.graph.initializer.append(addend)
    model.graph.node[-1].input[0] = "sum"
    model.graph.node.insert(
        len(model.graph.node) - 1, helper.make_node("Add", ["logits", "addend"], ["sum"], "add")
    )
    onnx.save(model, "m.onnx")
    np.save("x.npy", images(120))
    command = "m.onnx --data x.npy --method minmax --weights int4"
    first = call(f"{command} --json -o a.onnx")
    assert first.exit_code == 0, first.stderr
    report = json.loads(first.stdout)
    assert [(one["weights"], one["rounding"]) for one in report["methods"]] == [
        ("int8", "nearest"),
        ("int4", "adaptive"),
    ]
    assert report["weights"] == "int4" and report["outputs"][0]["sqnr_db"] > 20
    second = call(f"{command} -o b.onnx")
    assert "minmax, int4 rounded adaptively" in second.stdout
    assert Path("a.onnx").read_bytes() == Path("b.onnx").read_bytes()
    graph = onnx.load("a.onnx").graph
    constants = {it.name: it for it in graph.initializer}
    restored = {it.output[0]: it.input[0] for it in graph.node if it.op_type == "DequantizeLinear"}
    kinds = {
        node.name: constants[restored[node.input[1]]].data_type
        for node in graph.node
        if restored.get(node.input[1] if len(node.input) > 1 else "") in constants
        and node.op_type in ("Conv", "Gemm", "Add")
    }
    four, eight = onnx.TensorProto.INT4, onnx.TensorProto.INT8
    assert kinds == {"first": four, "depthwise": four, "dense": four, "add": eight}
    ran = reports.run_model(tmp_path / "a.onnx", HOST, Options(time_limit=0.5), inputs=[], expected=[])
    assert ran["verified"], ran["reason"]


def test_scales_of_few_levels_are_chosen() -> None:
    weights, columns, _ = layer_of(1, 12, has_bias=True)
    wide = replace(weights, real=weights.real.copy())
    wide.real[0, :, 0] *= 30  # the nearest integers of all others would be 0
    moments = Moments.of(columns, columns @ wide.real.transpose(0, 2, 1))
    wide = replace(wide, scales=np.abs(wide.real).max(axis=2, keepdims=True) / 7.5, low=-8, high=7)
    rounded = round_weights(wide, moments, moments)
    fractions = rounded.scales / wide.scales
    assert np.all((fractions >= 0.49) & (fractions <= 1.11)) and len(set(fractions.ravel())) > 1


def test_the_table_names_the_rounding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    classifier(tmp_path / "m.onnx")
    np.save("x.npy", images(40))
    result = call("m.onnx --data x.npy -o q.onnx --method minmax --round adaptive --keep-float depthwise")
    assert result.exit_code == 0, result.stderr
    assert "minmax, rounded adaptively" in result.stdout and result.stdout.count("chosen") == 1
    assert "rounding weights" in result.stderr


def test_another_rounding_is_an_error(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", images(1))
    result = call(f"{tmp_path / 'x.npy'} --data {tmp_path / 'x.npy'} -o q.onnx --round up")
    assert result.exit_code == 2 and "'up'" in result.stderr
    with pytest.raises(UsageError, match=r"^rounding='up'"):
        md.quantize(tmp_path / "m.onnx", tmp_path, tmp_path / "q.onnx", rounding="up")  # type: ignore[arg-type]


def test_inputs_far_from_0_are_told_apart() -> None:
    """In float32, squares of 1000 hide a variance below 0.1."""
    weights, columns, _ = layer_of(1, 12, has_bias=True)
    near, far = columns.astype(np.float32), (columns + 1000).astype(np.float32)
    results = [it @ weights.real.astype(np.float32).transpose(0, 2, 1) for it in (near, far)]
    one, two = (
        Moments.of(it[:, :250], y[:, :250]).joined(Moments.of(it[:, 250:], y[:, 250:]))
        for it, y in zip((near, far), results, strict=True)
    )
    assert np.allclose(one.xx, two.xx, rtol=1e-3, atol=1e-4)
    integers = [round_weights(weights, it, it).integers for it in (one, two)]
    assert np.mean(integers[0] != integers[1]) < 0.1


def test_costs_that_rounding_made_indefinite_are_damped() -> None:
    row = np.arange(1.0, 9.0)
    costs = (np.outer(row, row) - 1e-3 * np.eye(8))[None]
    factors = _factors(costs)
    assert np.isfinite(factors).all() and (np.diagonal(factors, axis1=1, axis2=2) > 0).all()


def test_layers_that_are_not_fitted_keep_the_nearest_integers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Products by a stack of matrices, and layers with results that are not finite."""
    monkeypatch.chdir(tmp_path)
    rng = RNG(3)
    constants = {"w": rng.normal(size=(2, 6, 4)).astype(np.float32), "k": np.eye(6, dtype=np.float32)}
    constants["k"][0, 0] = 2
    constants |= {"low": np.float32(-1), "high": np.float32(1)}
    nodes = [
        helper.make_node("MatMul", ["x", "k"], ["a"], "first"),
        helper.make_node("Clip", ["a", "low", "high"], ["c"], "clip"),
        helper.make_node("MatMul", ["c", "w"], ["y"], "stack"),
    ]
    onnx.save(build(nodes, {"x": (np.float32, (2, 5, 6))}, ["y"], constants), "m.onnx")
    samples = rng.normal(size=(20, 2, 5, 6)).astype(np.float32) * 1e37
    samples[:, 0, 0, 0] = 3e38  # twice that is infinite
    np.save("x.npy", samples)
    result = call("m.onnx --data x.npy -o q.onnx --method minmax --round adaptive --json")
    assert result.exit_code == 0, result.stderr
    nearest, adaptive = json.loads(result.stdout)["methods"]
    assert nearest["sqnr_db"] == adaptive["sqnr_db"] > 10
    assert not [it for it in recwarn if it.category is RuntimeWarning]
