"""`train build`: the library, compiled alone, trains as `train run` does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from float64_steps import Descent, one_hot
from test_gradients import step_of
from train_lines import CLASSES, RUN, invoked, network, outputs_of, report

from tests.linked import SANITIZED, linked
from tests.networks.onnx_files import save


def printed_by(main: Path) -> str:
    """The output of a program with the library lib, compiled under sanitizers, which must return 0."""
    program = linked(Path("lib"), main, *SANITIZED)
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("loss", "tail", "options"),
    [
        ("cross-entropy", "Softmax", ""),
        pytest.param("mse", "", " --stream-input", marks=pytest.mark.weekly),
    ],
)
def test_the_example_of_the_library_trains(loss: str, tail: str, options: str, folder: Path) -> None:
    """It prints the output for a sample of zeros, and the loss of its target: class 0, or zeros."""
    save(network(tail).model(), folder, "net")
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
    save(model, folder, "net")
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
        pytest.param("", "full", "--no-split", SET_SAMPLE, marks=pytest.mark.weekly),
    ],
    ids=["streamed", "whole"],
)
def test_the_library_trains_as_the_run_does(
    tail: str, update: str, options: str, set_sample: str, folder: Path
) -> None:
    """The losses of the C library, compiled alone, are those of `train run`: by label, and step by step."""
    save(network(tail).model(), folder, "net")
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
    save(network("").model(), folder, "net")
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


def test_initial_parameters_are_not_tables(folder: Path) -> None:
    """They are beside the tables: the parts of the flash add up."""
    built = report("train build net.onnx --update full --board stm32f405 --no-split -o lib")
    initial = built["initial_parameters_bytes"]
    assert initial == built["training"]["parameter_bytes"] + 8  # and the optimizer
    parts = ("code", "weights", "tables", "initial_parameters")
    rest = built["flash_bytes"] - sum(built[f"{name}_bytes"] for name in parts)
    assert 0 <= rest < 64  # initialised variables
    shown = invoked("train build net.onnx --update full --board stm32f405 --no-split -o lib")
    assert f"initial parameters {initial:,} B" in " ".join(shown.output.split())
