"""Input shapes that the user sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError, ModelError, UsageError
from mcudeploy.device.target import Target
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.networks.onnx_files import build, node, save

RNG = np.random.default_rng(3)
W = RNG.normal(size=(8, 8)).astype(np.float32)


def sequence(steps: int | str) -> onnx.ModelProto:
    """A dense layer over steps, after a view of another rank."""
    nodes = [
        node("Reshape", "x s", "a"),
        node("MatMul", "a w", "b"),
        node("Softmax", "b", "y"),
    ]
    size = steps if isinstance(steps, int) else 5
    model = build(
        nodes, {"x": np.ones((1, size, 2, 4), np.float32)}, ["y"], {"w": W, "s": np.array([1, -1, 8])}
    )
    if isinstance(steps, str):
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[1].dim_param = steps
    else:
        model.graph.value_info.append(helper.make_tensor_value_info("b", 1, (1, steps, 8)))
    return model


@pytest.mark.parametrize("steps", ["T", 5])
def test_open_and_fixed_dimensions_take_a_shape(steps: int | str, tmp_path: Path) -> None:
    graph = load(save(sequence(steps), tmp_path), choices=InputChoices({"x": (1, 3, 2, 4)}))
    assert (graph.inputs[0].shape, graph.outputs[0].shape) == ((1, 3, 2, 4), (1, 3, 8))


def test_open_dimensions_name_the_option(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"give them: --shape x=1,T,2,4 with numbers"):
        load(save(sequence("T"), tmp_path))


def test_a_refusal_names_the_open_dimension_that_was_taken_as_1(tmp_path: Path) -> None:
    """The first axis holds the steps: with 3 of them the convolution has room."""
    nodes = [node("Transpose", "x", "a", perm=[1, 2, 0]), node("Conv", "a w", "y")]
    x, w = np.ones((1, 1, 8), np.float32), np.ones((2, 8, 3), np.float32)
    model = build(nodes, {"x": x}, [], {"w": w})
    model.graph.output.append(helper.make_tensor_value_info("y", 1, ["a", "b", "c"]))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "steps"
    path = save(model, tmp_path)
    taken = (
        r"'x': dimension 0 \(steps\) is open and taken as a batch of 1; .* --shape x=steps,1,8 with numbers"
    )
    with pytest.raises(ModelError, match=taken) as caught:
        load(path)
    assert len(caught.value.assumed) == 1
    assert load(path, choices=InputChoices({"x": (3, 1, 8)})).outputs[0].shape == (1, 2, 1)


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ({"z": (1,)}, UsageError, "no input 'z'; its inputs are x"),
        ({"x": (1, 8)}, UsageError, r"which has 4 dimensions: \[1, 5, 2, 4\]"),
        ({"x": (1, 5, 2, 3)}, ModelError, "with the shapes of --shape"),
    ],
)
def test_shapes_that_cannot_be(
    shapes: dict[str, tuple[int, ...]], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        load(save(sequence(5), tmp_path), choices=InputChoices(shapes))


def test_one_name_has_one_size(tmp_path: Path) -> None:
    inputs = {name: np.ones((1, 6), np.float32) for name in ("a", "b")}
    model = build([node("Add", "a b", "y")], inputs, ["y"])
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[1].dim_param = "N"
    path = save(model, tmp_path)
    assert load(path, choices=InputChoices({"a": (1, 4)})).inputs[1].shape == (1, 4)
    with pytest.raises(UsageError, match="N is 4 in another input"):
        load(path, choices=InputChoices({"a": (1, 4), "b": (1, 5)}))


def test_runs_and_plans_are_of_one_shape(tmp_path: Path) -> None:
    path, board = save(sequence(5), tmp_path), load_board("host")
    short = Options(split=False, shapes=(("x", (1, 2, 2, 4)),))
    reports.verified(path, Target(board), short)
    assert read_model(path, short).sha256 != read_model(path, Options()).sha256
    api.save_plan(api.plan_model(path, board, short), tmp_path / "plan.json")
    with pytest.raises(ConfigError, match="another model, or with another --shape"):
        api.plan_model(path, board, Options(plan_file=tmp_path / "plan.json"))


@pytest.mark.parametrize("symbol", ["?", "unk__7", "", "N"])
def test_an_unknown_size_is_none_of_another_axis(symbol: str, tmp_path: Path) -> None:
    """Paddle writes ? for each unknown size; a name has one size in all inputs."""
    model = build([node("Relu", "x", "y")], {"x": np.ones((1, 3, 4), np.float32)}, ["y"])
    for value in (*model.graph.input, *model.graph.output):
        for axis in (0, 2):
            value.type.tensor_type.shape.dim[axis].Clear()
            value.type.tensor_type.shape.dim[axis].dim_param = symbol
    path = save(model, tmp_path)
    if symbol == "N":
        assert load(path).inputs[0].shape == (1, 3, 1)
        return
    with pytest.raises(ModelError, match=r"open dimension 2 \(\?\).*--shape x=1,3,N with numbers"):
        load(path)
    graph = load(path, choices=InputChoices({"x": (1, 3, 5)}))
    assert graph.inputs[0].shape == graph.outputs[0].shape == (1, 3, 5)


@pytest.mark.parametrize("stated", ["value_info", "output"])
def test_a_stated_shape_gives_way_to_the_one_that_follows(stated: str, tmp_path: Path) -> None:
    """As in ONNX Runtime."""
    model = build([node("Relu", "x", "a"), node("Relu", "a", "y")], {"x": np.ones((1, 3), np.float32)}, ["y"])
    if stated == "output":
        model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4
    else:
        model.graph.value_info.append(helper.make_tensor_value_info("a", 1, (1, 4)))
    graph = load(save(model, tmp_path))
    assert graph.outputs[0].shape == (1, 3)
    report = run_model(tmp_path / "model.onnx")
    assert report["verified"], report["reason"]


@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
def test_no_window_begins_after_the_input(pool: str, tmp_path: Path) -> None:
    """ONNX's inference counts one window in each axis; the second pool's size follows from the first."""
    window = {"kernel_shape": [1, 3], "strides": [2, 3], "pads": [0, 0, 0, 2], "ceil_mode": 1}
    nodes = [node(pool, "x", "a", **window), node(pool, "a", "b", **window), node("Relu", "b", "y")]
    model = build(nodes, {"x": np.ones((1, 2, 6, 7), np.float32)}, ["y"])
    del model.graph.value_info[:]
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, (1, 2, 2, 1)))
    assert load(save(model, tmp_path)).outputs[0].shape == (1, 2, 2, 1)
    report = run_model(tmp_path / "model.onnx")
    assert report["verified"], report["reason"]


def run_model(path: Path) -> dict[str, Any]:
    """A run on this machine."""
    target, options = Target(load_board("host")), Options(time_limit=0.5, split=False)
    return reports.run_model(path, target, options, inputs=[], expected=[])


def test_outputs_without_a_shape(tmp_path: Path) -> None:
    model = sequence(5)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert load(save(model, tmp_path)).outputs[0].shape == (1, 5, 8)


def test_a_stated_output_that_contradicts_is_what_the_nodes_make(tmp_path: Path) -> None:
    """With an open batch, of another size or rank, as skl2onnx states it."""
    for stated in (["batch", 10], ["batch"]):
        model = build([node("MatMul", "x w", "y")], {"x": np.zeros((1, 8), np.float32)}, ["y"], {"w": W})
        for value, sizes in ((model.graph.input[0], ["batch", 8]), (model.graph.output[0], stated)):
            kind = value.type.tensor_type.elem_type
            value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, kind, sizes))
        (output,) = load(save(model, tmp_path)).outputs
        assert output.shape == (1, 8)


def test_rules_read_shapes_that_follow_from_computed_constants(tmp_path: Path) -> None:
    """The matrix of a product with a vector has sizes that nodes compute."""
    nodes = [
        node("Shape", "x", "sizes"),
        node("Div", "sizes two", "half"),
        node("Concat", "half minus", "wanted", axis=0),
        node("Reshape", "x wanted", "rows"),
        node("MatMul", "rows v", "y"),
    ]
    constants = {"two": np.array([2]), "minus": np.array([-1]), "v": np.ones(2, np.float32)}
    model = build(nodes, {"x": np.zeros(8, np.float32)}, ["y"], constants)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    (output,) = load(save(model, tmp_path)).outputs
    assert output.shape == (4,)
