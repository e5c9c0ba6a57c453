"""Inputs of ONNX files that the user names as constants and as states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.device.target import Target
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.ops.move.queue import Queue
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.networks.onnx_files import build, node

HOST = Target(load_board("host"))
QUICK = Options(time_limit=0.5, constants=(("rate", 3),), states=(("cache", "cache_out"), ("h", "h_out")))
_STATES = dict(QUICK.states)
"""The state `cache` is the last rows of a concatenation, `h` is computed."""


def _streaming(folder: Path, start: int = -4, opset: int = 17) -> Path:
    random = np.random.default_rng(0)
    model = build(
        [
            node("Concat", "cache x", "rows", axis=2),
            node("Conv", "rows w", "features"),
            node("Slice", "rows start end axes", "cache_out"),
            node("GlobalAveragePool", "features", "mean"),
            node("Flatten", "mean", "flat"),
            node("Add", "flat h", "sum"),
            node("MatMul", "sum v", "product"),
            node("Tanh", "product", "h_out"),
            node("Cast", "rate", "factor", to=onnx.TensorProto.FLOAT),
            node("Mul", "h_out factor", "y"),
        ],
        {
            "x": np.zeros((1, 4, 3), np.float32),
            "cache": np.zeros((1, 4, 4), np.float32),
            "h": np.zeros((1, 8), np.float32),
            "rate": np.zeros((), np.int64),
        },
        ["y", "cache_out", "h_out"],
        {
            "w": random.standard_normal((8, 4, 3)).astype(np.float32) / 3,
            "v": random.standard_normal((8, 8)).astype(np.float32) / 3,
            "start": np.array([start]),
            "end": np.array([np.iinfo(np.int64).max]),
            "axes": np.array([2]),
        },
        opset,
    )
    path = folder / "streaming.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("start", [-4, 3], ids=["from the end", "from the begin"])
def test_a_cache_of_rows_is_a_queue(tmp_path: Path, start: int) -> None:
    path = _streaming(tmp_path, start)
    graph = load(path, choices=InputChoices(constants={"rate": 2}, states=_STATES))
    assert [io.name for io in graph.own_inputs()] == ["x"]
    assert [io.name for io in graph.own_outputs()] == ["y"]
    queues = {operator.inputs[1]: operator for operator in graph.operators if isinstance(operator.op, Queue)}
    cache = next(state for state in graph.states if state.before.name == "cache_before")
    assert queues[cache.tensor].output == cache.after.tensor and cache.initial.size == 4 * 7


def test_states_go_from_run_to_run(tmp_path: Path) -> None:
    report = reports.run_model(_streaming(tmp_path), HOST, QUICK, inputs=[], expected=[], steps=6)
    assert report["verified"] and report["state_bytes"] >= 4 * (4 * 7 + 8)


def test_the_steps_equal_the_model_with_its_states_fed_back(tmp_path: Path) -> None:
    """The outputs of a sequence are those of ONNX Runtime, whose states the caller feeds."""
    path = _streaming(tmp_path)
    session = onnxruntime.InferenceSession(path)
    steps = np.random.default_rng(1).standard_normal((5, 1, 4, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", steps)
    fed = {"cache": np.zeros((1, 4, 4), np.float32), "h": np.zeros((1, 8), np.float32)}
    outputs = []
    for x in steps:
        y, cache, h = session.run(None, {"x": x, "rate": np.array(3), **fed})
        outputs.append(y)
        fed = {"cache": cache, "h": h}
    np.save(tmp_path / "y.npy", np.stack(outputs))
    inputs, expected = ([tmp_path / f"{name}.npy"] for name in "xy")
    report = reports.run_model(path, HOST, QUICK, inputs=inputs, expected=expected)
    assert report["verified"]


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        (InputChoices(constants={"sr": 2}), "no input 'sr'; its inputs are x, cache, h, rate"),
        (InputChoices(constants={"rate": 2.5}), "input 'rate' is int64, which cannot be 2.5"),
        (InputChoices(states={"h": "cache_out"}), r"'cache_out' is float32 \[1, 4, 4\], and input 'h'"),
        (InputChoices(states={"h": "h_new"}), "no output 'h_new'; its outputs are y, cache_out, h_out"),
        (InputChoices(constants={"h": 0}, states={"h": "h_out"}), "is given to --bind and to --state"),
        (InputChoices(constants=dict.fromkeys(("x", "cache", "h", "rate"), 0.0)), "leave the model no input"),
        (InputChoices(constants={"rate": 1e30}), "cannot be 1e[+]30"),
        (InputChoices(constants={"x": 1e39}), "cannot be 1e[+]39"),
        (InputChoices(states={"h": "h_out", "cache": "h_out"}), "'h_out' is the state of 2 inputs"),
    ],
)
def test_choices_that_do_not_fit_are_refused(tmp_path: Path, choices: InputChoices, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        load(_streaming(tmp_path), choices=choices)


def test_a_star_stands_for_the_names_of_several_states(tmp_path: Path) -> None:
    path = _streaming(tmp_path)
    named = load(path, choices=InputChoices({"cache": (1, 4, 4)}, {"rate": 2}, states=_STATES))
    starred = load(path, choices=InputChoices({"cache": (1, 4, 4)}, {"rate": 2}, states={"*": "*_out"}))
    places = [[(it.before.name, it.after.name) for it in each.states] for each in (starred, named)]
    assert places[0] == places[1] and len(places[0]) == 2
    assert [it.name for it in starred.own_inputs()] == ["x"]
    assert InputChoices(states={"h": "h_out"}).for_inputs(["h", "h2"]).states == {"h": "h_out"}
    with pytest.raises(UsageError, match=r"has no input 'past\.\*'"):
        load(path, choices=InputChoices(states={"past.*": "present.*"}))


def test_the_error_for_a_cache_that_grows_says_what_is_missing(tmp_path: Path) -> None:
    path = _streaming(tmp_path)
    model = onnx.load(path)
    output = next(it for it in model.graph.output if it.name == "cache_out")
    output.CopyFrom(onnx.helper.make_tensor_value_info("rows", onnx.TensorProto.FLOAT, (1, 4, 7)))
    onnx.save(model, path)
    with pytest.raises(UsageError, match=r"\[1, 4, 7\].* is float32 \[1, 4, 4\]. A cache .* by Slice"):
        load(path, choices=InputChoices(states={"cache": "rows"}))


def test_states_that_depend_on_each_other(tmp_path: Path) -> None:
    """Each is read before it is replaced, whatever the order."""
    row = np.zeros((1, 4), np.float32)
    model = build(
        [node("Relu", "a", "b_out"), node("Add", "b x", "a_out"), node("Add", "a b", "y")],
        {"x": row, "a": row, "b": row},
        ["y", "a_out", "b_out"],
    )
    path = tmp_path / "crossed.onnx"
    onnx.save(model, path)
    options = Options(time_limit=0.5, states=(("a", "a_out"), ("b", "b_out")))
    report = reports.run_model(path, HOST, options, inputs=[], expected=[], steps=5)
    assert report["verified"]


def test_a_state_is_not_an_output(tmp_path: Path) -> None:
    row = np.zeros((1, 4), np.float32)
    path = tmp_path / "alone.onnx"
    onnx.save(build([node("Add", "s x", "s_out")], {"x": row, "s": row}, ["s_out"]), path)
    with pytest.raises(UsageError, match=r"the model's only output.*Identity"):
        load(path, choices=InputChoices(states={"s": "s_out"}))


def _images(folder: Path, reader: str) -> tuple[Path, Options]:
    """A cache of rows of images, which a convolution or a function reads."""
    weights = np.random.default_rng(0).standard_normal((5, 4, 3, 3)).astype(np.float32) / 6
    limits = {"start": np.array([-2]), "end": np.array([np.iinfo(np.int64).max]), "axes": np.array([2])}
    model = build(
        [
            node("Concat", "cache x", "rows", axis=2),
            node("Conv", "rows w", "y") if reader == "Conv" else node(reader, "rows", "y"),
            node("Slice", "rows start end axes", "cache_out"),
        ],
        {"x": np.zeros((1, 4, 1, 6), np.float32), "cache": np.zeros((1, 4, 2, 6), np.float32)},
        ["y", "cache_out"],
        limits | ({"w": weights} if reader == "Conv" else {}),
    )
    path = folder / "images.onnx"
    onnx.save(model, path)
    return path, Options(time_limit=0.5, states=(("cache", "cache_out"),))


def test_channels_of_cached_images_come_last(tmp_path: Path) -> None:
    path, options = _images(tmp_path, "Conv")
    graph = load(path, choices=InputChoices(states=dict(options.states)))
    assert [operator.op.kind for operator in graph.operators] == ["Queue", "Reshape", "Conv2d"]
    assert reports.run_model(path, HOST, options, inputs=[], expected=[], steps=5)["verified"]


def test_headers_name_the_order_of_axes(tmp_path: Path) -> None:
    (path, options), out = _images(tmp_path, "Tanh"), tmp_path / "out"
    assert reports.run_model(path, HOST, options, inputs=[], expected=[], steps=5)["verified"]
    reports.build_models([path], HOST.board, options, out)
    header = (out / "include" / "images.h").read_text()
    assert "float32 [1,4,3,6] as [1][3][24], its axes in the order 2," in header


@pytest.mark.parametrize("step", [0, 2])
def test_a_slice_by_steps_is_not_a_queue(tmp_path: Path, step: int) -> None:
    """A step of 0 is a fault of the file, which ends with its name."""
    path = _streaming(tmp_path)
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([step]), "step"))
    next(it for it in model.graph.node if it.op_type == "Slice").input.append("step")
    onnx.save(model, path)
    with pytest.raises((ModelError, UsageError)):
        load(path, choices=InputChoices(constants={"rate": 1}, states=_STATES))


def test_an_old_operator_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="opset 11; --state needs 12 or newer"):
        load(_streaming(tmp_path, opset=11), choices=InputChoices(states=_STATES))


def test_a_tflite_file_has_its_own_states(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(b"\x00\x00\x00\x00TFL3" + bytes(64))
    with pytest.raises(UsageError, match="--bind is for ONNX files"):
        load(path, choices=InputChoices(constants={"x": 1}))
