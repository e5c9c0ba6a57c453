"""`import mcudeploy`: models loaded, and the commands as functions, on a small model."""

from __future__ import annotations

import ast
import gc
import inspect
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import fully_connected, quantised_convolutions

import mcudeploy
import mcudeploy as md
from mcudeploy.common.errors import BoardNotFoundError, FitError, UsageError
from mcudeploy.planner.plan_options import OPTIONS


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fully_connected(tmp_path_factory.mktemp("python") / "net.onnx", (8, 6, 4), quantised=False)


def test_a_model_is_planned_built_and_run(model: Path, tmp_path: Path) -> None:
    plan = mcudeploy.plan(model, "host", time_limit=1)
    assert 0 < plan.arena_bytes == plan.report["arena_bytes"] <= plan.unsplit_arena_bytes
    plan.save(tmp_path / "plan.json")
    plan.chart(tmp_path / "arena.svg")
    assert (tmp_path / "arena.svg").read_text().startswith("<svg")

    values = [np.full((1, 8), number, np.float32) for number in (1, 2)]
    np.save(tmp_path / "two.npy", values[1])
    result = mcudeploy.run(model, inputs=[values[0], tmp_path / "two.npy"], plan=tmp_path / "plan.json")
    assert result.verified and result.milliseconds >= 0 and len(result.outputs) == 2
    assert all(it["y"].shape == (1, 4) and it["y"].dtype == np.float32 for it in result.outputs)
    assert result.report["outputs"][1]["values"] == pytest.approx(result.outputs[1]["y"].ravel().tolist())
    with pytest.raises(KeyError, match="2 samples"):
        result.outputs["y"]

    built = mcudeploy.build(model, "mps2-an386", tmp_path / "out", kind="rust", verify=False, time_limit=1)
    sizes = f"arena {built.report['arena_bytes']:,} B, {len(built.files)} files"
    assert repr(built) == f"<library for mps2-an386: not run, {sizes}>"
    assert built.verified is None and tmp_path / "out" / "Cargo.toml" in built.files


def test_a_loaded_model_becomes_a_plan_a_run_and_a_library(model: Path, tmp_path: Path) -> None:
    proto = onnx.load(model)
    for source in (str(model), model.read_bytes(), proto):
        loaded = md.load(source)
        assert repr(loaded).count("\n") == 0 and "2 operators" in repr(loaded), repr(loaded)
    plan = md.load(proto).plan("host", time_limit=1, max_overhead=5)
    gc.collect()  # the model's file lasts as long as the plan
    assert repr(plan).startswith("<plan of model.onnx for host: arena ") and "\n" not in repr(plan)
    assert plan.arena_bytes == md.plan(model, "host", time_limit=1).arena_bytes
    assert plan.splits == plan.deployment.plan.splits
    assert plan.latency is None or plan.latency["unit"] == "us"  # if it was measured before
    assert "srcdoc" in plan._repr_html_() and "model.onnx on host" in plan._repr_html_()

    sample = np.ones((1, 8), np.float32)
    result = plan.run(inputs=[sample])
    assert result.verified and result.outputs["y"].shape == (1, 4)
    assert result.outputs["y"] is result.outputs[0]["y"] and list(result.outputs.keys()) == ["y"]
    assert {it["name"] for it in result.profile} and "verified" in repr(result)
    with pytest.raises(KeyError, match="no output 'z'; there are 'y'"):
        result.outputs["z"]

    built = plan.build(tmp_path / "library", layout="cmake")
    assert built.verified and tmp_path / "library" / "CMakeLists.txt" in built.files
    assert built.report["arena_bytes"] == plan.arena_bytes
    folder = plan.deployment.model.path.parent
    del plan
    gc.collect()
    assert not folder.exists()


def test_shapes_of_a_loaded_model_hold_for_its_plans(model: Path) -> None:
    proto = onnx.load(model)
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "features"
    with pytest.raises(md.DeployError, match="features"):
        md.load(proto)
    name = proto.graph.input[0].name
    plan = md.load(proto, shapes={name: (1, 8)}).plan("host", time_limit=1)
    assert plan.run(inputs=[np.zeros((1, 8), np.float32)]).verified
    with pytest.raises(UsageError, match="not int"):
        md.load(3)  # type: ignore[arg-type]


def test_what_can_be_deployed_and_where(model: Path) -> None:
    assert mcudeploy.check(model)["supported"] and md.load(model).check("stm32f405")["fits"]
    report = mcudeploy.fit(model, ["microbit", "stm32f405"])
    assert {it["board"] for it in report["boards"]} == {"microbit", "stm32f405"}
    assert "stm32f405" in {board.name for board in md.list_boards()}


def test_devices_from_python(tmp_path: Path, small_bench: None) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    assert {it["kernel"] for it in md.measure(model, time_limit=1)["operators"]}
    tuned = md.tune(model, "host", time_limit=1)
    assert tuned.report["measurers"] == 1 and tuned.run().verified
    with pytest.raises(UsageError, match="nothing is flashed"):
        md.flash(model, "host")


def test_a_model_is_quantised(model: Path, tmp_path: Path) -> None:
    samples = np.random.default_rng(0).normal(size=(8, 1, 8)).astype(np.float32)
    np.save(tmp_path / "samples.npy", samples)
    md.quantize(model, tmp_path / "samples.npy", tmp_path / "int8.onnx", method="minmax")
    assert md.load(tmp_path / "int8.onnx").check()["supported"]


def test_a_model_is_trained_on_a_board(model: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(6, 1, 8)).astype(np.float32), rng.integers(0, 4, 6)
    loaded = md.load(model)
    trained = loaded.train(images, labels, update="full", rate=0.1, steps=30, board="host", split=False)
    assert trained.verified and len(trained.losses) == 30
    assert np.mean(trained.losses[-6:]) < 0.9 * np.mean(trained.losses[:6])
    first, last = trained.losses[0], trained.losses[-1]
    assert f"verified, 30 steps, loss {first:.3g} to {last:.3g}, " in repr(trained) and "\n" not in repr(
        trained
    )
    assert set(trained.parameters) == set(trained.report["training"]["trained"])
    trained.save(tmp_path / "trained.onnx")
    assert (tmp_path / "trained.onnx").read_bytes() == trained.model
    constants = onnx.load_from_string(trained.model).graph.initializer
    stored = {it.name: onnx.numpy_helper.to_array(it) for it in constants}
    for name, values in trained.parameters.items():
        np.testing.assert_array_equal(stored[name], values, name)
    assert md.load(trained.model).plan("host", split=False).run([images[:1].reshape(1, 8)]).verified
    np.savez(tmp_path / "data.npz", x=images, y=labels)
    again = md.train(model, data=tmp_path / "data.npz", update="full", rate=0.1, steps=30, split=False)
    assert again.losses == trained.losses
    faster = md.train(model, data=tmp_path / "data.npz", update="full", rate=0.1, momentum=0.5, split=False)
    assert faster.verified and faster.report["training"]["momentum"] == 0.5
    batches = loaded.train(images, labels, update="lora:1", batch=2, clip_norm=1.0, split=False)
    assert batches.verified and (
        batches.report["training"]["batch"],
        batches.report["training"]["clip_norm"],
    ) == (2, 1)
    assert faster.losses[:2] == trained.losses[:2] and faster.losses[2] != trained.losses[2]
    assert set(faster.parameters) == set(trained.parameters)
    by_name = md.train(
        model, data={"x": images}, labels=labels.tolist(), update="full", rate=0.1, split=False
    )
    assert by_name.losses == trained.losses[:6]
    board = loaded.train(images, labels, update="full", rate=0.1, steps=2, board="mps2-an386", split=False)
    assert board.verified and board.losses == pytest.approx(trained.losses[:2], rel=1e-6)
    assert board.report["board"] == "mps2-an386" and board.flash_bytes and board.milliseconds


def test_a_training_step_is_a_library(model: Path, tmp_path: Path) -> None:
    built = md.load(model).build_training("mps2-an386", tmp_path / "lib", update="bias", split=False)
    assert built.verified and tmp_path / "lib" / "include" / "net.h" in built.files
    assert "float net_train_step(uint32_t label)" in (tmp_path / "lib" / "include" / "net.h").read_text()
    assert built.report["training"]["update"] == "bias"


def test_an_unverified_training_is_not_saved(model: Path, tmp_path: Path) -> None:
    images = np.ones((1, 1, 8), np.float32)
    trained = md.load(model).train(images, [2], split=False)
    wrong = replace(trained, verified=False, report={**trained.report, "reason": "an output differs"})
    with pytest.raises(md.OutputsDifferError, match="an output differs"):
        wrong.save(tmp_path / "trained.onnx")
    assert "NOT verified" in repr(wrong) and not (tmp_path / "trained.onnx").exists()


@pytest.mark.parametrize(
    ("reason", "arguments"),
    [
        ("^loss='l2'", {"loss": "l2"}),
        ("^update='last'", {"update": "last"}),
        ("^rate=0", {"rate": 0}),
        ("^weight_decay=-1", {"weight_decay": -1}),
        ("^momentum=1", {"momentum": 1}),
        ("^batch=0", {"batch": 0}),
        ("^clip_norm=0", {"clip_norm": 0}),
        (r"^update='sparse:none.toml': none.toml cannot be read", {"update": "sparse:none.toml"}),
        ("^steps=0", {"steps": 0}),
        ("^steps=100001: .* less than or equal to 100000", {"steps": 100_001}),
        ("^rate=1e.30: .* less than or equal to 1000000", {"rate": 1e30}),
        ("^labels has 2 labels for 3 samples", {"labels": [0, 1]}),
        ("needs labels", {"labels": None}),
        ("^labels is a path, and data an array", {"labels": "labels.npy"}),
        (r"^data has the shape \[3, 7\]; input 'x' needs \[N, 1, 8\]", {"data": np.ones((3, 7), np.float32)}),
        (r"^data\['x'\] has the shape \[\]", {"data": {"x": np.float32(1)}}),
        ("^data has the arrays z; the inputs of the model are 'x'", {"data": {"z": np.ones((3, 8))}}),
        ("^each input needs the same number of samples", {"data": np.ones((0, 8), np.float32)}),
        (
            "^sample 1 has values that are not finite",
            {"data": np.array([[0.0] * 8, [np.nan] * 8, [0.0] * 8])},
        ),
    ],
)
def test_wrong_arguments_of_a_training(model: Path, reason: str, arguments: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"data": np.ones((3, 8), np.float32), "labels": [0, 1, 2], "split": False}
    with pytest.raises(UsageError, match=reason):
        md.load(model).train(**{**usual, **arguments})


def test_a_keyword_of_a_training_is_suggested(model: Path) -> None:
    with pytest.raises(TypeError, match="no such option: step; did you mean 'steps'"):
        md.load(model).train(np.ones((3, 8), np.float32), [0, 1, 2], step=3)  # type: ignore[call-arg]


def test_a_training_that_diverges(model: Path) -> None:
    inputs, targets = np.full((3, 8), 1e6, np.float32), np.ones((3, 4), np.float32)
    with pytest.raises(md.DivergedError, match="training step"):
        md.load(model).train(inputs, targets, loss="mse", rate=1e6, update="full", steps=9, split=False)


def test_errors_are_those_of_the_command_line(model: Path) -> None:
    with pytest.raises(BoardNotFoundError, match="no board 'nope'"):
        mcudeploy.plan(model, "nope")
    with pytest.raises(FitError):
        mcudeploy.plan(model, "microbit", ram_limit=8, time_limit=1)
    with pytest.raises(TypeError, match="no such option: xyz; there are shapes"):
        mcudeploy.plan(model, "microbit", xyz=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="max_overhed; did you mean 'max_overhead'"):
        md.load(model).plan("microbit", max_overhed=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        mcudeploy.nope  # noqa: B018
    assert md.FitError is FitError and all(getattr(md, name) for name in md.__all__)


def test_errors_name_the_input_and_no_file(model: Path) -> None:
    with pytest.raises(UsageError, match=r"^inputs\[0\] holds float64"):
        mcudeploy.run(model, inputs=[np.zeros((1, 8))])
    with pytest.raises(UsageError, match=r"^inputs\[1\] has the shape \[1, 7\]"):
        mcudeploy.run(model, inputs=[np.zeros((1, 8), np.float32), np.zeros((1, 7), np.float32)])


def test_sizes_are_numbers_or_texts(model: Path) -> None:
    with pytest.raises(FitError) as text:
        md.plan(model, "microbit", ram_limit="8", time_limit=1)
    with pytest.raises(FitError) as number:
        md.plan(model, "microbit", ram_limit=8, time_limit=1)
    assert str(text.value) == str(number.value)
    plan = md.plan(model, "stm32f405", ram_limit="1k", memory={"ccm": "0", "sram": "20k"}, time_limit=1)
    assert plan.report["memory_limits"]["sram"] <= 20480 and plan.latency is not None
    with pytest.raises(UsageError, match="ram_limit: '20x' is not a size"):
        md.plan(model, "microbit", ram_limit="20x")


@pytest.mark.parametrize(
    "choices",
    [
        {"max_overhead": "five"},
        {"max_overhead": -1},
        {"time_limit": float("nan")},
        {"parallel": 0},
        {"seed": -1},
        {"objective": "speed"},
        {"assign": "auto"},
        {"memory": ["sram=1k"]},
        {"ram_limit": 1.5},
        {"shapes": {"x": "1,8"}},
        {"shapes": {"x": (1, -8)}},
    ],
)
def test_wrong_values_are_refused_by_name(model: Path, choices: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(choices))}="):
        mcudeploy.plan(model, "host", **choices)


def test_numbers_of_numpy_and_lists_are_values(model: Path) -> None:
    choices: dict[str, Any] = {"seed": np.int64(1), "shapes": {"x": [np.int64(1), 8]}, "time_limit": 1}
    assert mcudeploy.plan(model, "host", split=False, **choices).arena_bytes


def test_wrong_arguments_are_refused_by_name(model: Path, tmp_path: Path) -> None:
    untyped: Any = mcudeploy
    for reason, call in {
        "^kind='make'": lambda: untyped.build(model, "host", tmp_path / "library", kind="make"),
        "^timing='clock'": lambda: untyped.measure(model, timing="clock"),
        "^method='best'": lambda: untyped.quantize(model, tmp_path, tmp_path / "q.onnx", method="best"),
        "^samples=0": lambda: untyped.quantize(model, tmp_path, tmp_path / "q.onnx", samples=0),
        "a board is a name": lambda: untyped.plan(model, 3),
        r"boards is a list, such as \['microbit'\]": lambda: untyped.fit(model, "microbit"),
    }.items():
        with pytest.raises(UsageError, match=reason):
            call()


def test_help_shows_the_keywords(model: Path) -> None:
    loaded = md.load(model)
    assert {"plan", "train", "build_training"} <= set(dir(loaded))
    with pytest.raises(AttributeError, match="'LoadedModel' object has no attribute 'trian'"):
        _ = loaded.trian
    for function in (
        md.plan,
        md.check,
        md.fit,
        md.build,
        md.run,
        md.tune,
        md.measure,
        md.train,
        md.LoadedModel.plan,
        loaded.train,
    ):
        parameters = inspect.signature(function).parameters
        assert parameters["optimize"].default == "balanced" and "ram_limit" in parameters
        assert set(md.Choices.__annotations__) <= set(parameters)
    assert set(md.Choices.__annotations__) == {spec.keyword for spec in OPTIONS} | {"name"}


def test_type_checkers_see_the_names_that_exist() -> None:
    stub = ast.parse(Path(mcudeploy.__file__).with_suffix(".pyi").read_text("utf-8"))
    homes = {
        it.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for it in node.names
    }
    (listed,) = (ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign))
    assert listed == dir(mcudeploy) == sorted([*homes, "__version__"])
    for name, home in homes.items():
        assert getattr(mcudeploy, name) is getattr(import_module(str(home)), name)


def test_importing_it_loads_nothing_else() -> None:
    code = "import sys, mcudeploy; sys.exit('numpy' in sys.modules or 'plan' not in mcudeploy.__all__)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_errors_about_a_model_in_memory_name_no_temporary_file() -> None:
    with pytest.raises(md.ModelError, match=r"^the model is not an ONNX file"):
        md.load(b"abc")
