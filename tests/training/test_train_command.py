"""`train`: what it writes, what it verifies, and what it refuses."""

from __future__ import annotations

import errno
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner, Result
from test_gradients import step_of
from training_models import Array, Descent, Network, one_hot, saved

from mcudeploy.boards.board import load_board
from mcudeploy.cli.main import cli
from mcudeploy.cli.train_command import _losses
from mcudeploy.commands import commands as api
from mcudeploy.commands import training_run, training_steps
from mcudeploy.common.errors import DivergedError, FitError, OutputsDifferError
from mcudeploy.execution.results import VerifiedRun
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned
from mcudeploy.training.recipe import Recipe, Update

CLASSES = 4


def network(tail: str = "Softmax") -> Network:
    """A convolution, a depthwise one, a mean, a dense layer and `tail`."""
    net = Network(3, (2, 8, 8))
    net.conv(6, 3, stride=2)
    net.activation("Relu")
    net.conv(6, 3, group=6)
    net.activation("Clip6")
    net.node("GlobalAveragePool", [net.value])
    net.size = (6, 1, 1)
    net.dense(CLASSES)
    net.activation(tail)
    return net


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, images and labels."""
    monkeypatch.chdir(tmp_path)
    saved(network().model(), tmp_path, "net")
    images = np.random.default_rng(0).normal(0, 1, (5, 2, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=images, y=np.array([0, 3, 1, 2, 3]))
    np.save(tmp_path / "x.npy", images)
    return tmp_path


def invoked(line: str) -> Result:
    return CliRunner().invoke(cli, line.split())


def report(line: str) -> dict[str, Any]:
    result = invoked(f"{line} --json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


RUN = "train run net.onnx --board host --no-split --rate 0.2"


def outputs_of(model: Path, inputs: Array) -> Array:
    """The first output by ONNX Runtime."""
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": inputs})[0])


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


@pytest.mark.parametrize("part", [1, 12])
def test_a_diverged_training_is_an_error(part: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither verified nor saved, although the reference diverges as well."""
    monkeypatch.setattr(training_run, "_steps_at_once", lambda *_: part)
    saved(network("").model(), folder, "linear")
    np.save("values.npy", np.ones((5, CLASSES), np.float32))
    line = "train run linear.onnx --board host --no-split --loss mse --data x.npy --labels values.npy"
    for options in ("", " --json"):
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
    """Steps that run one or two at a time have the losses and the bits of all together."""
    line = f"{RUN} --data data.npz --update full --batch 3 --steps 7 --save-model"
    whole = report(f"{line} whole.onnx")
    for steps in (1, 2):
        monkeypatch.setattr(training_run, "_steps_at_once", lambda *_, steps=steps: steps)
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
        graph, outputs = result.measured.ran.made.plan.graph, result.measured.ran.observed.outputs
        states = {it.after.tensor for it in graph.states}
        runs.append(sum(not states.isdisjoint(each) for each in outputs))
        assert len(outputs) == len(runs)
        require(result, *rest)

    monkeypatch.setattr(training_run, "_require_finite", counted)
    assert report(f"{RUN} --data data.npz --update full --steps 4")["verified"]
    assert runs == [1] * 4


def test_bad_samples_are_refused_before_the_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.load("x.npy")
    images[3, 0, 0, 0] = np.nan
    np.savez("data.npz", x=images, y=np.array([0, 3, 1, 2, 3]))
    monkeypatch.setattr(training_run, "smallest_step", lambda *_, **__: pytest.fail("a search has begun"))
    refused(f"{RUN} --data data.npz", "sample 3", "not finite")


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


def printed_by(main: Path) -> str:
    """The output of a program with the library lib, compiled under sanitizers, which must return 0."""
    strict = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    sources = [str(it) for it in (main, *Path("lib/src").glob("*.c"))]
    subprocess.run(["gcc", *strict, "-Ilib/include", "-Ilib/src", *sources, "-lm", "-o", "main"], check=True)
    return subprocess.run(["./main"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("loss", "tail", "options"), [("cross-entropy", "Softmax", ""), ("mse", "", " --stream-input")]
)
def test_the_example_of_the_library_trains(loss: str, tail: str, options: str, folder: Path) -> None:
    """It prints the output for a sample of zeros, and the loss of its target: class 0, or zeros."""
    saved(network(tail).model(), folder, "net")
    line = f"train build net.onnx --loss {loss} --update full --rate 0.2 --board host --no-split -o lib"
    report(f"{line}{options}")
    *lines, last = printed_by(Path("lib/examples/main.c")).splitlines()
    values = np.array([float(line.partition(" = ")[2]) for line in lines])
    wanted = outputs_of(Path("net.onnx"), np.zeros((1, 2, 8, 8), np.float32)).reshape(-1)
    np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-6)
    text, _, number = last.partition(": ")
    squares = float((wanted**2).mean())
    assert text == "loss before the update"
    assert float(number) == pytest.approx(-np.log(wanted[0]) if tail else squares, rel=1e-4)
    header = Path("lib/include/net.h").read_text()
    target = "a probability for each class" if tail else "the value that each element of net_output_0()"
    assert f"The target: {target}" in header


def test_the_library_names_the_nodes_of_the_model(folder: Path) -> None:
    model = network().model()
    for number, node in enumerate(model.graph.node):
        node.name = f"/layer{number}/{node.op_type}"
    saved(model, folder, "net")
    report("train build net.onnx --update last:1 --board host --no-split -o lib")
    header = Path("lib/include/net.h").read_text()
    (shown,) = (line for line in header.splitlines() if "net_state_0(): ONNX conv_2_weights" in line)
    nodes = shown.partition("; of ")[2].split(", ")
    (name,) = (node.name for node in model.graph.node if node.op_type == "Gemm")
    assert name in nodes and set(nodes) < {node.name for node in model.graph.node}
    count = 4 * (CLASSES * 6 + CLASSES) + 8  # and the optimizer
    assert f"states   {count} B of initial values in flash" in header
    readme = Path("lib/README.md").read_text()
    assert f"| `net_state_1()` | {', '.join(nodes)} | {CLASSES} | ONNX conv_2_bias float32 [4] as" in readme
    assert f"{count} B of initial values of the states of `net`" in readme


def test_restored_parameters_need_a_reset_before_them(folder: Path) -> None:
    """The order that header and README state: reset, copy, run."""
    report("train build net.onnx --update last:1 --board host --no-split -o lib")
    header = Path("lib/include/net.h").read_text()
    assert "call net_reset(), then copy them here, then run" in header
    Path("main.c").write_text(
        """#include <stdio.h>
#include "net.h"
static void restore(void)
{
    net_state_0()[0] = 42.0f;
    net_step(0);
    printf("%d\\n", net_state_0()[0] == 42.0f);
}
int main(void)
{
    restore();
    net_reset();
    restore();
    return 0;
}
"""
    )
    assert printed_by(Path("main.c")).split() == ["0", "1"]


SET_SAMPLE = """
static void set_sample(const float *image)
{
    memcpy(net_input_0(), image, NET_INPUT_0_COUNT * sizeof *image);
}
"""
FEED_SAMPLE = """
static int32_t next;
static void deliver(void *image, uint32_t input, int32_t first_row, int32_t rows, void *to)
{
    const int32_t row = NET_INPUT_0_COUNT / 8;
    const float *from = image;
    if (input != 0 || first_row != next) {
        abort();
    }
    memcpy(to, from + first_row * row, (size_t)(rows * row) * sizeof(float));
    next = first_row + rows;
}
static void set_sample(float *image)
{
    next = 0;
    net_set_feed(deliver, image);
}
"""


@pytest.mark.parametrize(
    ("tail", "update", "options", "set_sample"),
    [
        ("Softmax", "bias", "--time-limit 0.2 --stream-input", FEED_SAMPLE),
        ("", "full", "--no-split", SET_SAMPLE),
    ],
    ids=["streamed", "whole"],
)
def test_the_library_trains_as_the_run_does(
    tail: str, update: str, options: str, set_sample: str, folder: Path
) -> None:
    """The losses of the C library, compiled alone, are those of `train run`: by label, and step by step."""
    saved(network(tail).model(), folder, "net")
    built = report(f"train build net.onnx --update {update} --rate 0.2 --board host {options} -o lib")
    assert built["streamed"] == (set_sample is FEED_SAMPLE)
    inputs = np.load("x.npy")
    training_run = report(f"{RUN} --data data.npz --update {update}")
    labels = np.load("data.npz")["y"]
    images = inputs.transpose(0, 2, 3, 1).reshape(len(inputs), -1)
    rows = ",\n".join("{" + ", ".join(f"{value:.9g}f" for value in row) + "}" for row in images)
    stop = built["training"]["inference_steps"]
    if not tail:  # three layers, a mean and the mask of a clip: nothing of the loss
        assert stop == 5
    Path("main.c").write_text(
        f"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"
{set_sample}
static float images[{len(images)}][NET_INPUT_0_COUNT] = {{ {rows} }};
static const uint32_t labels[] = {{ {", ".join(map(str, labels))} }};
int main(void)
{{
    for (int i = 0; i < {len(images)}; i++) {{
        set_sample(images[i]);
        if (i % 2 == 0) {{
            printf("%.9g\\n", (double)net_train_step(labels[i]));
            continue;
        }}
        memset(net_input_1(), 0, NET_INPUT_1_COUNT * sizeof(float));
        net_input_1()[labels[i]] = 1.0f;
        for (uint32_t step = 0; step < NET_STEPS; step++) {{
            net_step(step);
        }}
        printf("%.9g\\n", (double)net_output_1()[0]);
    }}
    const float before = net_state_0()[0];
    if (net_train_step({CLASSES}) != -1.0f || net_state_0()[0] != before) {{
        return 2;
    }}
    set_sample(images[0]);
    for (uint32_t step = 0; step < {stop}u; step++) {{
        net_step(step);
    }}
    printf("%.9g\\n", (double)net_output_0()[0]);
    return net_state_0()[0] != before;
}}
"""
    )
    *losses, probability = map(float, printed_by(Path("main.c")).split())
    assert losses == [pytest.approx(it, rel=1e-6) for it in training_run["training"]["losses"]]
    again = report(f"{RUN} --data data.npz --update {update} --steps 6")
    last = next(it for it in again["outputs"] if it["sample"] == 5 and it["elements"] == CLASSES)
    assert probability == pytest.approx(next(it["value"] for it in last["top"] if it["index"] == 0), rel=1e-5)


def test_the_library_counts_batches_and_takes_rates(folder: Path) -> None:
    """A rate that is set before the first run holds, and one that is set later holds for the next update."""
    choices = {"batch": 2, "momentum": 0.5, "weight_decay": 0.1}
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in choices.items())
    report(f"train build net.onnx --update last:1 --rate 9 {options} --board host --no-split -o lib")
    images, labels = np.load("x.npy")[:4], [1, 0, 3, 3]
    rows = (
        f"{{ {', '.join(f'{it:.9g}f' for it in image.transpose(1, 2, 0).reshape(-1))} }}" for image in images
    )
    Path("main.c").write_text(
        f"""#include <stdio.h>
#include <string.h>
#include "net.h"
static const float images[4][NET_INPUT_0_COUNT] = {{ {", ".join(rows)} }};
static const uint32_t labels[] = {{ {", ".join(map(str, labels))} }};
int main(void)
{{
    net_set_rate(0.2f);
    for (int i = 0; i < 4; i++) {{
        if (i == 2) {{
            net_set_rate(0.05f);
        }}
        memcpy(net_input_0(), images[i], sizeof images[i]);
        net_train_step(labels[i]);
        for (uint32_t k = 0; k < NET_STATE_0_COUNT; k++) {{
            printf("%.9g ", (double)net_state_0()[k]);
        }}
        printf("\\n");
    }}
    return 0;
}}
"""
    )
    lines = printed_by(Path("main.c")).splitlines()
    step = step_of(Path("net.onnx"), "cross-entropy", "last:1")
    runs = [
        {"x": image[np.newaxis], step.target: one_hot(label, CLASSES)}
        for image, label in zip(images, labels, strict=True)
    ]
    wanted = Descent(step, **choices).parameters(runs, [0.2, 0.2, 0.05, 0.05])
    for line, after in zip(lines, wanted, strict=True):
        values = np.array([float(value) for value in line.split()])
        np.testing.assert_allclose(values, after["conv_2_weights"].reshape(-1), rtol=1e-5, atol=1e-6)
    assert lines[0] != lines[1] == lines[2]


def test_the_library_takes_the_values_of_a_target(folder: Path) -> None:
    saved(network("").model(), folder, "net")
    targets = np.random.default_rng(1).normal(0, 1, (5, CLASSES)).astype(np.float32)
    np.save("values.npy", targets)
    report("train build net.onnx --loss mse --rate 0.2 --board host --no-split -o lib")
    run = report(f"{RUN} --loss mse --data x.npy --labels values.npy")
    images = np.load("x.npy").transpose(0, 2, 3, 1).reshape(5, -1)
    samples, values = (
        ",\n".join("{" + ", ".join(f"{value:.9g}f" for value in row) + "}" for row in rows)
        for rows in (images, targets)
    )
    Path("main.c").write_text(
        f"""#include <stdio.h>
#include <string.h>
#include "net.h"
static const float images[5][NET_INPUT_0_COUNT] = {{ {samples} }};
static const float targets[5][NET_INPUT_1_COUNT] = {{ {values} }};
int main(void)
{{
    for (int i = 0; i < 5; i++) {{
        memcpy(net_input_0(), images[i], sizeof images[i]);
        printf("%.9g\\n", (double)net_train_step(targets[i]));
    }}
    return 0;
}}
"""
    )
    losses = [float(line) for line in printed_by(Path("main.c")).split()]
    assert losses == [pytest.approx(it, rel=1e-6) for it in run["training"]["losses"]]


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
    saved(model, folder, "auto")
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
    saved(model, folder, "net")
    Path("some.toml").write_text('weights = ["relu"]\nbiases = ["dense"]')
    trained = report(f"{RUN} --data data.npz --update sparse:some.toml --save-model trained.onnx")
    assert trained["verified"] and trained["training"]["update"] == "sparse:some.toml"
    assert sorted(trained["training"]["trained"]) == ["conv_0_bias", "conv_0_weights", "conv_2_bias"]
    Path("some.json").write_text('{"biases": "all"}')
    checked = report("train check net.onnx --boards microbit --update sparse:some.json")
    counts = {it["update"]: it["parameters"] for it in checked["updates"]}
    assert counts["sparse:some.json"] == 6 + 6 + CLASSES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'weights = ["Conf_0"]',
            "weights names 'Conf_0', which is no layer with weights; did you mean 'Conv_0' or ",
        ),
        (
            'biases = ["\\u001b[1m"]',
            r"biases names '\\x1b[1m', which is no layer with weights; layers are 'Conv_0', ",
        ),
        ("biases = []", "--update sparse:some.toml names no layer: there is nothing to train"),
        ('biases = {"Conv_0" = 0.5}', 'some.toml: biases is "all", or a list of names of nodes'),
        (
            'weights = {"Conv_0" = 1.5}',
            "some.toml: weights has 'Conv_0' = 1.5: a share of the input channels is",
        ),
        (
            'weights = {"Conf_0" = 0.5}',
            "weights names 'Conf_0', which is no layer with weights; did you mean",
        ),
        ("weight = []", "some.toml has neither weights nor biases"),
        ("weights = []\nbias = []", "some.toml has the key 'bias': it has weights and biases"),
        ("{", "some.toml is neither TOML nor .json"),
    ],
)
def test_files_of_layers_that_are_refused(text: str, message: str, folder: Path) -> None:
    model = network().model()
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    saved(model, folder, "net")
    Path("some.toml").write_text(text)
    refused(f"{RUN} --data data.npz --update sparse:some.toml", message)
    refused(f"{RUN} --data data.npz --update sparse:none.toml", "none.toml cannot be read: No such file")


def test_initial_parameters_are_no_tables(folder: Path) -> None:
    """They are beside the tables: the parts of the flash add up."""
    built = report("train build net.onnx --update full --board stm32f405 --no-split -o lib")
    initial = built["initial_parameters_bytes"]
    assert initial == built["training"]["parameter_bytes"] + 8  # and the optimizer
    parts = ("code", "weights", "tables", "initial_parameters")
    rest = built["flash_bytes"] - sum(built[f"{name}_bytes"] for name in parts)
    assert 0 <= rest < 64  # initialised variables
    shown = invoked("train build net.onnx --update full --board stm32f405 --no-split -o lib")
    assert f"initial parameters {initial:,} B" in " ".join(shown.output.split())


def test_check_states_the_shortage_of_each_memory(folder: Path) -> None:
    net = Network(3, (16, 8, 8))
    net.dense(256)
    saved(net.model(), folder, "wide")
    line = "train check wide.onnx --boards microbit"
    result = invoked(f"{line} --json")
    assert result.exit_code == FitError.exit_code
    board = next(it for it in json.loads(result.stdout)["updates"] if it["update"] == "full")["boards"][0]
    flash = board["flash_bytes"] - board["board_flash_bytes"]
    assert flash > 0
    text = " ".join(invoked(line).output.split())
    assert f"RAM {board['excess_bytes'] - flash:,} B short, flash {flash:,} B short" in text, text
    assert " B none" in text


def refused(line: str, *messages: str, code: int = 2) -> None:
    result = invoked(line)
    assert result.exit_code == code, result.output
    text = " ".join(result.output.replace("│", " ").split())
    for message in messages:
        assert message in text, text


def test_data_that_do_not_fit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the search begins."""
    monkeypatch.setattr(training_run, "smallest_step", lambda *_, **__: pytest.fail("a search has begun"))
    refused(f"{RUN} --data x.npy", "--loss cross-entropy needs labels")
    np.savez("real.npz", x=np.load("x.npy"), y=np.ones(5))
    refused(f"{RUN} --data real.npz", "real.npz has labels of float64 [5]; class numbers are integers")
    np.savez("wrong.npz", x=np.load("x.npy"), y=np.array([0, 1, 2, 4, 0]))
    refused(f"{RUN} --data wrong.npz", "sample 3 has the label 4", "4 values, for classes 0 to 3")
    np.save("few.npy", np.load("x.npy")[:, :1])
    refused(f"{RUN} --data few.npy", "needs [N, 2, 8, 8]")
    Path("labels.txt").write_text("0\n1\n")
    refused(f"{RUN} --data x.npy --labels labels.txt", "2 labels for 5 samples")


def test_targets_that_do_not_fit(folder: Path) -> None:
    saved(network("").model(), folder, "linear")
    run = RUN.replace("net.onnx", "linear.onnx")
    refused(f"{run} --loss mse --data x.npy", "the output [1, 4] with the input", "give --labels")
    refused(f"{run} --loss mse --data data.npz", "a value for each element of the output, [1, 4]")
    np.save("values.npy", np.zeros((5, 4), np.float32))
    assert report(f"{run} --loss mse --data x.npy --labels values.npy")["verified"]


def test_targets_that_are_not_finite(folder: Path) -> None:
    saved(network("").model(), folder, "linear")
    for worst in (np.nan, 1e39):
        values = np.zeros((5, 4))
        values[2, 1] = worst
        np.save("values.npy", values)
        run = RUN.replace("net.onnx", "linear.onnx")
        refused(
            f"{run} --loss mse --data x.npy --labels values.npy", "sample 2 has labels that are not finite"
        )


@pytest.mark.parametrize(
    ("sizes", "shape", "message"),
    [
        ((1,), [1, 1], "the output has 1 position of 1 value; --loss cross-entropy needs"),
        (
            (4,),
            [8, 4],
            "the output [8, 4] has a batch of 8, and a training step takes one sample: give --shape",
        ),
    ],
)
def test_outputs_without_classes(sizes: tuple[int], shape: list[int], message: str, folder: Path) -> None:
    net = Network(1, (6, 1, 1))
    net.node("Gemm", ["x", net.weights(sizes[0], 6), net.weights(sizes[0])], transB=1)
    model = net.model()
    for values, dims in ((model.graph.input, [shape[0], 6]), (model.graph.output, shape)):
        info = onnx.helper.make_tensor_value_info(values[0].name, onnx.TensorProto.FLOAT, dims)
        values[0].CopyFrom(info)
    saved(model, folder, "flat")
    np.savez("flat.npz", x=np.ones((8, 6), np.float32), y=np.zeros(8, np.int64))
    refused("train run flat.onnx --board host --data flat.npz", message, code=4)


def test_models_that_are_not_trained(folder: Path) -> None:
    refused(f"{RUN} --loss mse --data data.npz", "take --loss cross-entropy", code=4)
    net = network("")
    model = net.model()
    relu = next(node for node in model.graph.node if node.op_type == "Relu")
    relu.op_type = "Floor"
    saved(model, folder, "steps")
    steps = RUN.replace("net.onnx", "steps.onnx")
    refused(f"{steps} --data data.npz --update full", "floor has no gradient here", code=4)
    (end,) = model.graph.output
    model.graph.output.append(onnx.helper.make_tensor_value_info(relu.output[0], 1, [1, 6, 4, 4]))
    saved(model, folder, "two")
    names = f"has 2 outputs, {end.name!r}, {relu.output[0]!r}, and the loss is that of one: write a file"
    refused(RUN.replace("net.onnx", "two.onnx") + " --data data.npz", names, code=4)


def test_an_int8_model_is_trained(folder: Path) -> None:
    assert invoked("quantize net.onnx --data x.npy -o int8.onnx").exit_code == 0
    run = RUN.replace("net.onnx", "int8.onnx")
    trained = report(f"{run} --data data.npz --update last:1 --steps 40 --save-model trained.onnx")
    assert trained["verified"]
    losses = trained["training"]["losses"]
    assert np.mean(losses[-8:]) < 0.9 * np.mean(losses[:8])
    assert report("run trained.onnx --board host --time-limit 1")["verified"]
    refused(f"{run} --data data.npz --update lora:1", "lora:1 is for float32 models: this one is int8")


def test_models_with_integers_beside_floats(folder: Path) -> None:
    """They are not called quantised: the error names the operators."""
    net = Network(1, (4, 1, 1))
    net.dense(CLASSES)
    net.node("Cast", [net.value], to=onnx.TensorProto.INT32)
    net.node("Cast", [net.value], to=onnx.TensorProto.FLOAT)
    saved(net.model(), folder, "casts")
    run = RUN.replace("net.onnx", "casts.onnx")
    refused(
        f"{run} --loss mse --data x.npy", "it computes with int32; training takes float32 and int8", code=4
    )


@pytest.mark.parametrize("through", ["", "Transpose", "Constant"])
def test_shared_constants_are_not_trained_twice(through: str, folder: Path) -> None:
    """Two layers that read the same weights, directly or each through a node."""
    tied = Network(4, (4, 1, 1))
    tied.node("Flatten", [tied.value])
    weights = tied.weights(4, 4)
    if through == "Constant":
        value = onnx.numpy_helper.from_array(tied.constants.pop(weights))
        weights = tied.node("Constant", [], value=value)
        tied.value = "v0"
    for name in ("first", "second"):
        source = tied.value
        factor = tied.node("Transpose", [weights], perm=[1, 0]) if through == "Transpose" else weights
        tied.node("MatMul", [source, factor])
        tied.nodes[-1].name = name
        tied.activation("Tanh")
    saved(tied.model(), folder, "tied")
    np.savez("tied.npz", x=np.ones((2, 4, 1, 1), np.float32), y=np.array([0, 3]))
    line = "train run tied.onnx --board host --no-split --data tied.npz"
    message = f"second (Conv2d): it shares the constant {weights!r} with first"
    refused(f"{line} --update full", message, code=4)
    assert report(f"{line} --update last:1")["verified"]
    assert report(f"{line} --update bias")["verified"]


def test_an_operator_without_gradient(folder: Path) -> None:
    """A quotient of two tensors passes no gradient, but a model that is trained after it may have one."""
    net = Network(5, (2, 8, 8))
    net.conv(4, 3)
    values = net.value
    net.node("Div", [values, net.node("Softplus", [values])])
    net.dense(CLASSES)
    saved(net.model(), folder, "inner")
    run = RUN.replace("net.onnx", "inner.onnx")
    assert report(f"{run} --data data.npz --update last:1")["verified"]
    refused(f"{run} --data data.npz --update last:2", "a division by a constant, and no other", code=4)


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
    saved(net.model(), folder, "branches")
    line = f"{RUN.replace('net.onnx', 'branches.onnx')} --data data.npz --update full"
    training_run = report(f"{line} --steps 20 --save-model trained.onnx")
    losses = training_run["training"]["losses"]
    assert training_run["verified"] and np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5])
    following = report(f"{line} --steps 21")
    wanted = next(it for it in following["outputs"] if it["sample"] == 20 and it["elements"] == CLASSES)
    values = outputs_of(Path("trained.onnx"), np.load("x.npy")[:1]).reshape(-1)
    for each in wanted["top"]:
        assert values[each["index"]] == pytest.approx(each["value"], abs=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--update last:9", "the model has 3 layers with weights"),
        (
            "--update some",
            "is none of full, bias, last:K, as in last:1, lora:R, as in lora:4, and sparse:FILE",
        ),
        ("--update sparse:", "sparse: lacks the file: take sparse:FILE"),
        ("--update lora:9", "no layer has more weights than factors of this rank would have"),
        ("--rate 0", "0.0 is not in the range"),
        ("--rate 10 --weight-decay 1", "times the rate it is in [0, 1)"),
        ("--batch 0", "0 is not in the range"),
        ("--clip-norm 1 --momentum 0.5", "--clip-norm is not for --momentum"),
        ("--stateful --hop 2", "--stateful, --hop are not for a training step"),
    ],
)
def test_options_that_do_not_fit(options: str, message: str, folder: Path) -> None:
    refused(f"{RUN} --data data.npz {options}", message)
