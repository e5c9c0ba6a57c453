"""Programs that take new rows of a window: on the host, on an emulated board, as a C library."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError, FitError, UsageError
from mcudeploy.common.progress import SILENT
from mcudeploy.device.target import Target
from mcudeploy.extensions.several_boards.link import parse_link
from mcudeploy.extensions.several_boards.run import ChainRequest, run_chain
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from mcudeploy.verify.reference import Reference
from mcudeploy.verify.samples import NamedArray
from tests import reports
from tests.linked import SANITIZED, linked
from tests.networks.windows import CAUSAL, TimeConv, time_network

HOST, BOARD = Target(load_board("host")), Target(load_board("mps2-an386"))
HOP = Options(hop=2, time_limit=0.5, split=False)
ROWS, CHANNELS = 20, 6
PADDED = (TimeConv(8, kernel=3, stride=2, pads=(1, 1)), TimeConv(8, kernel=3, pads=(1, 1)))

_MAIN = """
#include <stdio.h>
#include <string.h>

#include "net.h"

int main(void)
{
    static const float x[][NET_INPUT_COUNT] = {X};
    for (int again = 0; again < 2; again++) {
        for (uint32_t run = 0; run < sizeof x / sizeof x[0]; run++) {
            if (again == 0 && run % 2u == 0u) {
                memcpy(net_input(), x[run], sizeof x[run]);
                for (uint32_t step = 0; step < NET_STEPS; step++) {
                    net_step(step);
                }
                printf("steps");
            } else {
                printf("%u", (unsigned)net_push(x[run]));
            }
            for (uint32_t i = 0; i < NET_OUTPUT_COUNT; i++) {
                printf(" %.9g", (double)net_output()[i]);
            }
            printf("\\n");
        }
        net_reset();
    }
    return 0;
}
"""


def planned(path: Path, options: Options) -> reports.Report:
    return as_json(api.plan_model(path, BOARD.board, options))


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return time_network(tmp_path / "net.onnx", ROWS, CHANNELS, PADDED, "mean")


@pytest.mark.parametrize("target", [HOST, BOARD], ids=["host", "board"])
def test_a_run_is_verified_after_each_hop(target: Target, net: Path) -> None:
    report = reports.run_model(net, target, HOP, inputs=[], expected=[], steps=3)
    assert report["verified"], report["reason"]
    assert [len(report["outputs"]), report["elements"]] == [3, 3 * 8]
    assert report["state_bytes"] > 0


def test_inputs_are_the_new_rows_of_each_run(net: Path) -> None:
    rows = np.random.default_rng(1).standard_normal((12, 1, CHANNELS, 2)).astype(np.float32)
    report = reports.run_model(net, HOST, HOP, inputs=[NamedArray("rows", rows)], expected=[])
    assert report["verified"] and len(report["outputs"]) == 3
    with pytest.raises(UsageError, match="a window of 20 rows is full after 10 runs; --input has 4"):
        reports.run_model(net, HOST, HOP, inputs=[NamedArray("rows", rows[:4])], expected=[])


def test_pushed_rows_give_what_the_window_gives(net: Path, tmp_path: Path) -> None:
    """The reference computes whole windows; after a reset the window is empty again.

    Runs step by step count as runs, and the first step of a program empties the window.
    """
    reports.build_models([net], load_board("host"), HOP, tmp_path / "out")
    stream = np.random.default_rng(5).standard_normal((26, CHANNELS)).astype(np.float32)
    pushes = ("{" + ", ".join(f"{it:.9g}f" for it in part.flat) + "}" for part in np.split(stream, 13))
    main = _MAIN.replace("{X}", "{" + ", ".join(pushes) + "}")
    program = linked(tmp_path / "out", main, *SANITIZED)
    text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in text.splitlines()]
    lacking = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0]
    mixed = ["steps" if run % 2 == 0 else str(it) for run, it in enumerate(lacking)]
    assert [line[0] for line in lines] == [*mixed, *map(str, lacking)]
    reference = Reference(net, ["y"])
    for number, line in enumerate(lines):
        if lacking[number % 13]:
            continue
        end = 2 * (number % 13 + 1)
        window = stream[end - ROWS : end].T[np.newaxis]
        wanted = reference.run({"x": np.ascontiguousarray(window)})["y"]
        np.testing.assert_allclose(np.array(line[1:], np.float32), wanted.ravel(), rtol=1e-4, atol=1e-5)


def test_a_selftest_passes(tmp_path: Path) -> None:
    path = time_network(tmp_path / "net.onnx", 16, 3, CAUSAL[:3])
    report = reports.build_models([path], load_board("host"), HOP, tmp_path / "out")
    main = '#include "net_selftest.h"\nint main(void) { return (int)net_selftest(); }\n'
    program = linked(tmp_path / "out", main)
    assert report["selftest"] and subprocess.run([program], check=False).returncode == 0


def test_a_vector_that_the_model_views_as_rows_is_a_window(tmp_path: Path) -> None:
    weights = np.random.default_rng(3).standard_normal((4, 1, 3, 5)).astype(np.float32)
    constants = [
        numpy_helper.from_array(weights, "w"),
        numpy_helper.from_array(np.array([1, 1, 12, 5], np.int64), "to"),
    ]
    nodes = [
        helper.make_node("Reshape", ["x", "to"], ["image"]),
        helper.make_node("Conv", ["image", "w"], ["y"], pads=[1, 0, 1, 0]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 60])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 12, 1])
    model = helper.make_model(
        helper.make_graph(nodes, "flat", [x], [y], constants),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    onnx.save(model, tmp_path / "flat.onnx")
    report = reports.run_model(tmp_path / "flat.onnx", HOST, replace(HOP, hop=3), inputs=[], expected=[])
    assert report["verified"], report["reason"]
    assert report["window"]["rows"] == 12


def test_expected_outputs_are_of_windows(net: Path) -> None:
    y = NamedArray("y", np.zeros((1, 8, 1), np.float32))
    x = NamedArray("x", np.zeros((12, 1, CHANNELS, 2), np.float32))
    with pytest.raises(UsageError, match="leave it out with --hop"):
        reports.run_model(net, HOST, HOP, inputs=[x], expected=[y])


def test_a_stored_plan_keeps_its_rows(net: Path, tmp_path: Path) -> None:
    """With time to spare, a plan keeps fewer rows; its file names them, and the hop."""
    stored = tmp_path / "plan.json"
    deployment = api.plan_model(net, BOARD.board, replace(HOP, max_overhead=1000))
    window, hop = deployment.model.window, deployment.plan.graph.hop
    assert window is not None and hop is not None
    assert dict(hop.keeping) == window.keeping != load_model(net, hop=2).window.keeping  # type: ignore[union-attr]
    api.save_plan(deployment, stored)
    again = api.plan_model(net, BOARD.board, replace(HOP, plan_file=stored))
    assert again.plan.layout == deployment.plan.layout and again.plan.graph.hop == hop
    report = reports.run_model(net, BOARD, replace(HOP, plan_file=stored), inputs=[], expected=[])
    assert report["verified"], report["reason"]
    for other in (None, 4):
        with pytest.raises(ConfigError, match="a plan with --hop 2"):
            api.plan_model(net, BOARD.board, replace(HOP, plan_file=stored, hop=other))
    content = json.loads(stored.read_text())
    content["hop"]["keeping"]["conv_9"] = "all"
    stored.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="not a plan of this model: it keeps rows of conv_9"):
        api.plan_model(net, BOARD.board, replace(HOP, plan_file=stored))


def test_limits_choose_the_rows_that_are_kept(net: Path) -> None:
    fast = planned(net, HOP)
    window = fast["window"]
    assert (window["hop"], window["rows"], window["runs_to_fill"]) == (2, ROWS, 10)
    assert fast["macs"] < window["macs"] == window["whole"]["macs"]
    curve = window["curve"]
    assert len(curve) > 2 and curve[0]["keeping"] == window["keeping"]
    for before, after in pairwise(curve):
        assert before["state_bytes"] > after["state_bytes"]
        assert before["latency"]["value"] < after["latency"]["value"]
    least = min(it["arena_bytes"] for it in curve)
    small = planned(net, replace(HOP, max_overhead=1000))
    assert small["arena_bytes"] == least < fast["arena_bytes"]
    tight = planned(net, replace(HOP, ram_limit=least))
    assert tight["arena_bytes"] == least
    with pytest.raises(FitError):
        planned(net, replace(HOP, ram_limit=64))


def test_what_cannot_be_combined(net: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--stream-input cannot be combined with --hop"):
        api.plan_model(net, HOST.board, replace(HOP, stream_input=True))
    chain = ChainRequest((HOST, HOST), parse_link("uart:2M"), 1)
    with pytest.raises(UsageError, match="leave it out with --chain"):
        run_chain(net, chain, HOP, inputs=[], expected=[], progress=SILENT)
