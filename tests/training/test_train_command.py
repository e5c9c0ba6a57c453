"""`train run` and `train check`: what they verify, save and report."""

from __future__ import annotations

import errno
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from float64_steps import Array
from train_lines import CLASSES, RUN, invoked, network, outputs_of, refused, report

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import DivergedError, FitError, OutputsDifferError
from mcudeploy.execution.results import VerifiedRun
from mcudeploy.extensions.training import training_run, training_steps
from mcudeploy.extensions.training.recipe import Recipe, Update
from mcudeploy.extensions.training.train_command import _losses
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned
from tests.networks.onnx_files import save
from tests.networks.trained import Network


def test_steps_reduce_the_loss_and_are_verified(folder: Path) -> None:
    training_run = report(f"{RUN} --data data.npz --update full --steps 30")
    training = training_run["training"]
    assert training_run["verified"] and len(training["losses"]) == 30
    assert np.mean(training["losses"][-5:]) < 0.6 * np.mean(training["losses"][:5])
    count = 6 * 2 * 9 + 6 + 6 * 9 + 6 + CLASSES * 6 + CLASSES
    assert (training["parameters"], training["parameter_bytes"]) == (count, 4 * count)
    assert training_run["state_bytes"] == 4 * count + 8  # and the optimizer
    dense = next(it.name for it in onnx.load("net.onnx").graph.node if it.op_type == "Gemm")
    assert training["onnx_nodes"]["conv_2_weights"] == training["onnx_nodes"]["conv_2_bias"] == [dense]
    assert sorted(training["onnx_nodes"]) == sorted(training["trained"])


def test_losses_of_many_steps_are_averaged() -> None:
    assert _losses([1.5, 0.5]) == "1.5 at first, 0.5 at the last of 2 training steps"
    text = _losses([3.0, 1.0, *[9.0] * 17, 0.25, 0.75])
    assert text.endswith("of 21 training steps; 2 is the mean of the first 2, 0.5 of the last")


def test_the_saved_model_is_that_of_the_next_step(folder: Path) -> None:
    report(f"{RUN} --data data.npz --update full --steps 4 --save-model trained.onnx")
    training_run = report(f"{RUN} --data data.npz --update full --steps 5 --stream-input")
    wanted = next(it for it in training_run["outputs"] if it["sample"] == 4 and it["elements"] == CLASSES)
    values = outputs_of(Path("trained.onnx"), np.load("x.npy")[4:5]).reshape(-1)
    for each in wanted["top"]:
        assert values[each["index"]] == pytest.approx(each["value"], abs=1e-6)
    unchanged = outputs_of(Path("net.onnx"), np.load("x.npy")[4:5]).reshape(-1)
    assert np.abs(values - unchanged).max() > 1e-3
    assert onnx.load("trained.onnx").graph.output[0].name == onnx.load("net.onnx").graph.output[0].name


def test_a_diverged_training_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither verified nor saved, although the reference diverges as well; with steps one by one, too."""
    save(network("").model(), folder, "linear")
    np.save("values.npy", np.ones((5, CLASSES), np.float32))
    line = "train run linear.onnx --board host --no-split --loss mse --data x.npy --labels values.npy"
    for part, options in ((12, ""), (1, " --json")):
        monkeypatch.setattr(training_run, "_steps_at_once", lambda *_, part=part: part)
        result = invoked(f"{line} --rate 1e6 --update full --steps 12 --save-model nan.onnx{options}")
        assert result.exit_code == DivergedError.exit_code == 14, result.output
        text = " ".join(result.output.split())
        assert re.search(r"training step [2-9] of 12: \w+( loss)? has the value (nan|inf|-inf)", text), text
        assert "Lower --rate (1e+06)" in text
        assert not Path("nan.onnx").exists()


def test_a_model_is_saved_only_if_verified(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"{RUN} --data data.npz --save-model trained.onnx"
    assert report(line)["training"]["saved_model"] == "trained.onnx"
    again = invoked(line)  # its own file is overwritten without --force
    assert again.exit_code == 0 and "trained.onnx" in again.output
    size = Path("trained.onnx").stat().st_size
    Path("trained.onnx").unlink()
    run_model = api.run_model

    def refuted(*args: Any, **options: Any) -> VerifiedRun:
        result = run_model(*args, **options)
        return replace(result, verdict=replace(result.verdict, reasons=("an output differs",)))

    monkeypatch.setattr(api, "run_model", refuted)
    result = invoked(f"{line} --json")
    assert result.exit_code == OutputsDifferError.exit_code, result.output
    assert json.loads(result.stdout)["training"]["saved_model"] is None
    assert not Path("trained.onnx").exists()

    def full(path: Path, count: int) -> None:
        raise OSError(errno.ENOSPC, f"no room for {count} bytes", str(path))

    monkeypatch.setattr(training_run, "require_room", full)
    monkeypatch.setattr(training_run, "smallest_step", lambda *_, **__: pytest.fail("a search has begun"))
    refused(line, f"trained.onnx: no room for {size} bytes", code=1)


def test_parts_are_verified_as_the_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that run two at a time have the losses and the bits of all together."""
    line = f"{RUN} --data data.npz --update full --batch 3 --steps 7 --save-model"
    whole = report(f"{line} whole.onnx")
    monkeypatch.setattr(training_run, "_steps_at_once", lambda *_: 2)
    parts = report(f"{line} parts.onnx")
    assert parts["verified"] and parts["training"]["losses"] == whole["training"]["losses"]
    for key in ("outputs", "operator_checks", "elements", "mismatches", "max_abs_error", "range"):
        assert parts[key] == whole[key], key
    assert Path("parts.onnx").read_bytes() == Path("whole.onnx").read_bytes()


def test_memory_holds_a_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of earlier parts the parameters are dropped."""
    monkeypatch.setattr(training_run, "PART_BYTES", 0)
    runs: list[int] = []
    require = training_run._require_finite

    def counted(result: VerifiedRun, *rest: Any) -> None:
        graph, outputs = (
            result.measured.device_run.deployment.plan.graph,
            result.measured.device_run.observed.outputs,
        )
        states = {it.after.tensor for it in graph.states}
        runs.append(sum(not states.isdisjoint(each) for each in outputs))
        assert len(outputs) == len(runs)
        require(result, *rest)

    monkeypatch.setattr(training_run, "_require_finite", counted)
    assert report(f"{RUN} --data data.npz --update full --steps 4")["verified"]
    assert runs == [1] * 4


def test_an_interrupt_ends_all_searches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the first search for the tensors to keep: the others do not begin."""
    searches: list[Any] = []

    def counted(*args: Any) -> Planned:
        searches.append(args)
        raise FitError("no plan fits")

    monkeypatch.setattr(training_steps, "find_plans", counted)
    options, recipe = Options(max_overhead=200, time_limit=3), Recipe(update=Update("full"))
    for code, counts, limit in ((0, (2, 3, 4), 1.5), (130, (1,), 1.0)):
        searches.clear()
        monkeypatch.setattr(training_steps, "signalled", lambda code=code: code)
        with training_steps.smallest_step(Path("net.onnx"), load_board("host"), options, recipe) as written:
            assert len(searches) in counts and written.options.time_limit == limit


def weights_of(model: str) -> Array:
    """The weights of the last layer."""
    constants = {it.name: it for it in onnx.load(model).graph.initializer}
    return onnx.numpy_helper.to_array(constants["conv_2_weights"])


def test_weight_decay_shrinks_the_weights(folder: Path) -> None:
    for name, decay in (("plain", 0), ("small", 1)):
        report(f"{RUN} --data data.npz --weight-decay {decay} --save-model {name}.onnx")
    norms = [float(np.abs(weights_of(f"{name}.onnx")).sum()) for name in ("plain", "small")]
    assert norms[1] < 0.8 * norms[0]


def test_an_autoencoder_needs_no_labels(folder: Path) -> None:
    net = Network(1, (6, 1, 1))
    net.dense(3)
    net.activation("Relu")
    net.size = (3, 1, 1)
    inputs = [net.value, net.weights(6, 3), net.weights(6)]
    net.node("Gemm", inputs, transB=1)
    net.size = (6, 1, 1)
    model = net.model()
    model.graph.input[0].CopyFrom(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 6]))
    del model.graph.node[0]
    model.graph.node[0].input[0] = "x"
    save(model, folder, "auto")
    np.save("series.npy", np.random.default_rng(2).normal(0, 1, (4, 6)).astype(np.float32))
    training_run = report(
        "train run auto.onnx --board host --no-split --loss mse --update full --rate 0.1 --steps 40 "
        "--data series.npy"
    )
    losses = training_run["training"]["losses"]
    assert training_run["verified"] and losses[-1] < 0.7 * losses[0]


def test_check_compares_updates(folder: Path) -> None:
    checked = report("train check net.onnx --boards stm32f405,microbit --update last:3")
    counts = {it["update"]: it["parameters"] for it in checked["updates"]}
    assert list(counts) == ["full", "last:3", "last:2", "bias", "last:1"]
    assert counts["full"] == counts["last:3"] > counts["last:2"] > counts["bias"] > counts["last:1"]
    assert {it["board"] for it in checked["updates"][0]["boards"]} == {"stm32f405", "microbit"}
    assert all(it["fits_on"] for it in checked["updates"])
    shown = invoked("train check net.onnx --boards stm32f405")
    assert "last:1" in shown.output and "stm32f405" in shown.output
    assert "All tensors are kept: build and run may compute some again" in " ".join(shown.output.split())


def test_low_rank_factors_are_merged(folder: Path) -> None:
    """The saved model, without factors, computes what the next step does with them."""
    line = f"{RUN} --data data.npz --update lora:2"
    trained = report(f"{line} --steps 14 --save-model trained.onnx")
    counts = 2 * (18 + 6) + 2 + 6, 2 * (6 + CLASSES) + 2 + CLASSES
    assert trained["verified"] and trained["training"]["parameters"] == sum(counts)
    dense = next(it.name for it in onnx.load("net.onnx").graph.node if it.op_type == "Gemm")
    assert trained["training"]["onnx_nodes"]["conv_2_lora_b_weights"] == [dense]
    losses = trained["training"]["losses"]
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
    following = report(f"{line} --steps 15")
    wanted = next(it for it in following["outputs"] if it["sample"] == 14 and it["elements"] == CLASSES)
    x = np.load("x.npy")[4:5]
    values, unchanged = (outputs_of(Path(name), x).reshape(-1) for name in ("trained.onnx", "net.onnx"))
    for each in wanted["top"]:
        assert values[each["index"]] == pytest.approx(each["value"], abs=1e-6)
    assert np.abs(values - unchanged).max() > 1e-2
    assert sum(it.op_type == "Conv" for it in onnx.load("trained.onnx").graph.node) == 3
    built = report("train build net.onnx --update lora:2 --board host --no-split -o lib")
    assert (
        built["training"]["update"] == "lora:2" and "conv_2_lora_a" in Path("lib/include/net.h").read_text()
    )


def test_a_file_names_the_layers(folder: Path) -> None:
    """By nodes of the model's file; also those that are fused with a layer."""
    model = network().model()
    for node, name in zip(
        model.graph.node, ("one", "relu", "two", "clip", "mean", "flat", "dense"), strict=False
    ):
        node.name = name
    save(model, folder, "net")
    Path("some.toml").write_text('weights = ["relu"]\nbiases = ["dense"]')
    trained = report(f"{RUN} --data data.npz --update sparse:some.toml --save-model trained.onnx")
    assert trained["verified"] and trained["training"]["update"] == "sparse:some.toml"
    assert sorted(trained["training"]["trained"]) == ["conv_0_bias", "conv_0_weights", "conv_2_bias"]
    Path("some.json").write_text('{"biases": "all"}')
    checked = report("train check net.onnx --boards microbit --update sparse:some.json")
    counts = {it["update"]: it["parameters"] for it in checked["updates"]}
    assert counts["sparse:some.json"] == 6 + 6 + CLASSES


def test_an_int8_model_is_trained(folder: Path) -> None:
    assert invoked("quantize net.onnx --data x.npy -o int8.onnx").exit_code == 0
    run = RUN.replace("net.onnx", "int8.onnx")
    trained = report(f"{run} --data data.npz --update last:1 --steps 40 --save-model trained.onnx")
    assert trained["verified"]
    losses = trained["training"]["losses"]
    assert np.mean(losses[-8:]) < 0.9 * np.mean(losses[:8])
    assert report("run trained.onnx --board host --time-limit 1")["verified"]
    refused(f"{run} --data data.npz --update lora:1", "lora:1 is for float32 models: this one is int8")


def test_a_network_of_branches_learns(folder: Path) -> None:
    """Pools, activations with a bend, concatenation and a gate; the saved model computes the same."""
    net = Network(5, (2, 8, 8))
    net.conv(6, 3)
    start = net.node("HardSwish", [net.value])
    branches = [net.node("MaxPool", [start], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)]
    net.node("AveragePool", [start], kernel_shape=[2, 2], strides=[2, 2])
    net.size = (6, 4, 4)
    net.conv(4, 3)
    branches.append(net.node("Elu", [net.value]))
    joined = net.node("Concat", branches, axis=1)
    net.node("GlobalAveragePool", [joined])
    net.size = (10, 1, 1)
    net.conv(10, 1)
    gate = net.node("HardSigmoid", [net.value])
    net.node("Mul", [joined, gate])
    net.node("GlobalMaxPool", [net.value])
    net.dense(CLASSES)
    save(net.model(), folder, "branches")
    line = f"{RUN.replace('net.onnx', 'branches.onnx')} --data data.npz --update full"
    training_run = report(f"{line} --steps 20 --save-model trained.onnx")
    losses = training_run["training"]["losses"]
    assert training_run["verified"] and np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5])
    following = report(f"{line} --steps 21")
    wanted = next(it for it in following["outputs"] if it["sample"] == 20 and it["elements"] == CLASSES)
    values = outputs_of(Path("trained.onnx"), np.load("x.npy")[:1]).reshape(-1)
    for each in wanted["top"]:
        assert values[each["index"]] == pytest.approx(each["value"], abs=1e-5)
