"""Models that keep states between runs: on host and board, in the generated C, and what is refused."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import PlanFaultError
from mcudeploy.checker.judge import check as check_plan
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError, ModelError, UsageError
from mcudeploy.common.progress import SILENT
from mcudeploy.device.target import Target
from mcudeploy.extensions.several_boards.link import parse_link
from mcudeploy.extensions.several_boards.run import ChainRequest, plan_chain
from mcudeploy.frontend.load import load
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.verify.samples import NamedArray, drawn_samples, load_samples
from tests import reports
from tests.linked import SANITIZED, linked
from tests.networks.onnx_files import build

HOST = Target(load_board("host"))
STATEFUL = Options(stateful=True, time_limit=0.5)
INPUTS, HIDDEN = 3, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FLOAT = TensorProto.FLOAT


def network(
    op: str, *, steps: int = 2, first: str = "constant", results: tuple[str, ...] = ("y",), **attributes: Any
) -> onnx.ModelProto:
    """x -> `op` -> y; first states `constant`, or inputs h0 and c0, which are handed back as hn and cn."""
    rng = np.random.default_rng(len(op) + steps)
    rows, letters = GATES[op] * HIDDEN, ["h", "c"] if op == "LSTM" else ["h"]
    both = attributes.get("direction") == "bidirectional"
    directions = 2 if both else 1
    shapes = {"w": (rows, INPUTS), "r": (rows, HIDDEN), "b": (2 * rows,)}
    arrays = {name: rng.normal(0, 0.6, (directions, *shape)) for name, shape in shapes.items()}
    state = (directions, 1, HIDDEN)
    if first == "constant":
        arrays |= {f"{letter}0": rng.normal(0, 1, state) for letter in letters}
    node = helper.make_node(
        op,
        ["x", "w", "r", "b", "", *(f"{letter}0" for letter in letters)],
        ["y", *(f"{letter}n" for letter in letters)],
        name="cell",
        hidden_size=HIDDEN,
        **attributes,
    )
    sequences = {"x": (steps, 1, INPUTS), "y": (steps, directions, 1, HIDDEN)}
    inputs = ["x", *(f"{letter}0" for letter in letters if first == "inputs")]
    return build(
        [node],
        {name: (np.float32, sequences.get(name, state)) for name in inputs},
        {name: (np.float32, sequences.get(name, state)) for name in results},
        {name: array.astype(np.float32) for name, array in arrays.items()},
    )


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    onnx.save(model, folder / "net.onnx")
    return folder / "net.onnx"


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("first", ["constant", "inputs"])
def test_runs_go_on_from_each_other_and_a_reset_begins_anew(op: str, first: str, tmp_path: Path) -> None:
    results = ("y", "hn") if first == "constant" else ("y", "hn", "cn")[: 2 + (op == "LSTM")]
    path = saved(network(op, first=first, results=results), tmp_path)
    report = reports.run_model(path, HOST, STATEFUL, inputs=[], expected=[])
    assert report["verified"], report["reason"]
    assert report["state_bytes"] == 4 * HIDDEN * (2 if op == "LSTM" else 1)
    graph = load(path, stateful=True)
    assert [io.name for io in graph.own_inputs()] == ["x"]
    wanted = ["y", "hn"] if first == "constant" else ["y"]  # what was an input before is handed back no more
    assert [io.name for io in graph.own_outputs()] == wanted
    assert sum(operator.op.kind == "Recurrent" for operator in graph.operators) == 1
    assert any("kept between runs" in note for note in graph.notes) == (first == "inputs")


def test_on_an_emulated_board(tmp_path: Path) -> None:
    path = saved(network("LSTM", steps=1), tmp_path)
    target = Target(load_board("mps2-an386"))
    assert reports.run_model(path, target, STATEFUL, inputs=[], expected=[])["verified"]


_MAIN = """
#include <stdio.h>

#include "net.h"

static void runs(const float *x)
{
    for (int call = 0; call < 3; call++) {
        for (uint32_t i = 0; i < NET_INPUT_COUNT; i++) {
            net_input()[i] = *x++;
        }
        net_run();
        for (uint32_t i = 0; i < NET_OUTPUT_COUNT; i++) {
            printf("%.9g\\n", (double)net_output()[i]);
        }
    }
}

int main(void)
{
    static const float x[] = {X};
    runs(x);
    net_reset();
    runs(x);
    return 0;
}
"""


def test_generated_c_gives_what_the_whole_sequence_gives(tmp_path: Path) -> None:
    path = saved(network("LSTM", steps=2), tmp_path)
    reports.build_models([path], load_board("host"), STATEFUL, tmp_path / "out")
    x = np.random.default_rng(5).normal(0, 1, (6, 1, INPUTS)).astype(np.float32)
    main = _MAIN.replace("{X}", "{" + ", ".join(f"{value:.9g}f" for value in x.flat) + "}")
    program = linked(tmp_path / "out", main, *SANITIZED)
    out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    whole = network("LSTM", steps=6)
    for mine, ours in zip(whole.graph.initializer, onnx.load(path).graph.initializer, strict=True):
        mine.CopyFrom(ours)
    session = onnxruntime.InferenceSession(whole.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = np.asarray(session.run(["y"], {"x": x})[0]).reshape(-1)
    outputs = np.array(out.split(), np.float32)
    np.testing.assert_allclose(outputs, np.tile(expected, 2), atol=1e-6)


def test_two_layers_whose_states_are_one_input(tmp_path: Path) -> None:
    model = network("GRU", first="inputs")
    graph = model.graph
    graph.node[0].input[5] = "h0_first"
    second = helper.make_node(
        "GRU", ["flat", "w2", "r", "b", "", "h0_second"], ["y2", "hn2"], "second", hidden_size=HIDDEN
    )
    w2 = np.random.default_rng(1).normal(0, 0.6, (1, 3 * HIDDEN, HIDDEN)).astype(np.float32)
    one = {"zero": np.array([0], np.int64), "one": np.array([1], np.int64), "two": np.array([2], np.int64)}
    graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in {**one, "w2": w2}.items()
    )
    nodes = [
        helper.make_node("Slice", ["h0", "zero", "one", "zero"], ["h0_first"], "first_state"),
        helper.make_node("Slice", ["h0", "one", "two", "zero"], ["h0_second"], "second_state"),
        graph.node[0],
        helper.make_node("Squeeze", ["y", "one"], ["flat"], "squeeze"),
        second,
        helper.make_node("Concat", ["hn", "hn2"], ["all"], "all_states", axis=0),
    ]
    nodes = [onnx.NodeProto.FromString(each.SerializeToString()) for each in nodes]
    del graph.node[:], graph.input[1:], graph.output[:]
    graph.node.extend(nodes)
    graph.input.append(helper.make_tensor_value_info("h0", FLOAT, (2, 1, HIDDEN)))
    for name, shape in {"y2": (2, 1, 1, HIDDEN), "all": (2, 1, HIDDEN)}.items():
        graph.output.append(helper.make_tensor_value_info(name, FLOAT, shape))
    path = saved(model, tmp_path)
    report = reports.run_model(path, HOST, STATEFUL, inputs=[], expected=[])
    assert report["verified"], report["reason"]
    assert report["state_bytes"] == 2 * 4 * HIDDEN
    assert [io.name for io in load(path, stateful=True).own_outputs()] == ["y2"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (network("GRU", direction="bidirectional", first="none"), "reads the sequence from its end"),
        (network("LSTM", results=("y", "cn")), "its last cell state is read"),
    ],
)
def test_states_that_cannot_be_kept(model: onnx.ModelProto, message: str, tmp_path: Path) -> None:
    if model.graph.node[0].op_type == "GRU":
        model.graph.node[0].input[5] = ""
    with pytest.raises(ModelError) as refused:
        load(saved(model, tmp_path), stateful=True)
    assert message in str(refused.value.problems[0])


def test_no_state_at_all(tmp_path: Path) -> None:
    model = network("GRU")
    del model.graph.node[:]
    model.graph.node.append(helper.make_node("Relu", ["x"], ["y"]))
    del model.graph.initializer[:]
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, (2, 1, INPUTS)))
    with pytest.raises(UsageError, match="the model has none, of LSTM, GRU or RNN: leave it out"):
        load(saved(model, tmp_path), stateful=True)


def test_a_state_that_is_computed_is_refused(tmp_path: Path) -> None:
    model = network("GRU", first="inputs")
    model.graph.node[0].input[5] = "h1"
    model.graph.node.insert(0, helper.make_node("Tanh", ["h0"], ["h1"]))
    with pytest.raises(ModelError) as refused:
        load(saved(model, tmp_path), stateful=True)
    assert "neither constant nor an input" in str(refused.value.problems[0])


def test_what_keeps_states_runs_on_one_board_alone(tmp_path: Path) -> None:
    path = saved(network("GRU"), tmp_path)
    request = ChainRequest((HOST, HOST), parse_link("uart:2M"), 2)
    with pytest.raises(UsageError, match="keeps nothing between runs"):
        plan_chain(read_model(path, STATEFUL), request, STATEFUL, SILENT)


def test_a_plan_without_the_state_is_none_of_the_model(tmp_path: Path) -> None:
    path, stored = saved(network("GRU"), tmp_path), tmp_path / "plan.json"
    api.save_plan(api.plan_model(path, HOST.board, Options(time_limit=0.5)), stored)
    with pytest.raises(ConfigError, match="--stateful"):
        api.plan_model(path, HOST.board, replace(STATEFUL, plan_file=stored))


def test_the_checker_refuses_a_second_step_with_the_same_state(tmp_path: Path) -> None:
    model = read_model(saved(network("GRU"), tmp_path), STATEFUL)
    plan = find_plans(model, HOST.board, STATEFUL).baseline
    (step,) = plan.schedule.steps
    twice = replace(plan, schedule=replace(plan.schedule, steps=(step, step)))
    with pytest.raises(PlanFaultError, match="goes on with its state a second time"):
        check_plan(twice, model.work, HOST.board)


def test_drawn_calls_begin_with_the_first_state(tmp_path: Path) -> None:
    graph = load(saved(network("GRU"), tmp_path), stateful=True)
    samples = load_samples(graph, [], [], 0)
    assert len(samples) == 4
    (state,) = graph.states
    assert all(np.array_equal(each.stored[state.tensor], state.initial) for each in samples)
    assert not np.array_equal(samples[0].inputs["x"], samples[1].inputs["x"])


def test_arrays_with_the_inputs_of_several_runs(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(network("GRU"), path)
    graph = load(path, stateful=True)
    values = np.arange(3 * 2 * INPUTS, dtype=np.float32).reshape(3, 2, 1, INPUTS)
    together, apart = (load_samples(graph, its, [], 0) for its in (_arrays(values), _arrays(*values)))
    assert len(together) == len(apart) == 3
    for one, other in zip(together, apart, strict=True):
        assert np.array_equal(one.inputs["x"], other.inputs["x"])
    assert len(drawn_samples(graph, 0, 7)) == 7
    report = reports.run_model(path, HOST, STATEFUL, inputs=[], expected=[], steps=6)
    assert report["verified"] and len(report["outputs"]) == 6


def _arrays(*values: np.ndarray) -> list[NamedArray]:
    return [NamedArray(f"array {number}", each) for number, each in enumerate(values)]
