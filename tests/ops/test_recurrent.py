"""LSTM, GRU and RNN against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check_against_onnx
from onnx import helper
from single_node import normal

from mcudeploy.ir.graph import Graph
from tests.networks.onnx_files import build

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def check(
    op: str,
    *,
    steps: int = 5,
    inputs: int = 6,
    hidden: int = 7,
    results: tuple[int, ...] = (0,),
    peepholes: bool = False,
    states: bool = False,
    bias: bool = True,
    lost: bool = False,
    **attributes: Any,
) -> Graph:
    """A network with these results as outputs, a number of its input NaN if `lost`; the graph it became."""
    rng = np.random.default_rng(steps * inputs + hidden)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    rows, first = GATES[op] * hidden, attributes.get("layout", 0)
    state = (1, directions, hidden) if first else (directions, 1, hidden)
    constants = {
        "w": 0.5 * normal(rng, (directions, rows, inputs)),
        "r": 0.5 * normal(rng, (directions, rows, hidden)),
        "b": 0.5 * normal(rng, (directions, 2 * rows)),
    }
    order = ["x", *constants]
    if not bias:
        order[3] = ""
        del constants["b"]
    if states or peepholes:
        order += ["", "h"] + ["c"] * (op == "LSTM")
        constants |= {name: normal(rng, state) for name in order[5:]}
    if peepholes:
        order.append("p")
        constants["p"] = normal(rng, (directions, 3 * hidden))
    x = normal(rng, (1, steps, inputs) if first else (steps, 1, inputs))
    if lost:
        x[1, 0, inputs // 2] = np.nan
    sequence = (1, steps, directions, hidden) if first else (steps, directions, 1, hidden)
    shapes = [sequence, state, state]
    names = [f"y{number}" if number in results else "" for number in range(max(results) + 1)]
    node = helper.make_node(op, order, names, name="node", hidden_size=hidden, **attributes)
    model = build(
        [node],
        {"x": (np.float32, x.shape)},
        {f"y{each}": (np.float32, shapes[each]) for each in results},
        constants,
    )
    return check_against_onnx(model, {"x": x}, float_tolerance=1e-4)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("results", [(0,), (1,), (0, 1)])
def test_directions_and_results(op: str, direction: str, results: tuple[int, ...]) -> None:
    check(op, direction=direction, results=results)


@pytest.mark.parametrize(("steps", "inputs", "hidden"), [(1, 1, 1), (2, 3, 4), (9, 8, 16), (3, 17, 5)])
@pytest.mark.parametrize("op", GATES)
def test_sizes(op: str, steps: int, inputs: int, hidden: int) -> None:
    check(op, steps=steps, inputs=inputs, hidden=hidden, results=(0, 1))


def test_peepholes_states_and_the_cell() -> None:
    check("LSTM", peepholes=True)
    check("LSTM", states=True, results=(0, 1, 2))
    check("LSTM", states=True, results=(2,), direction="bidirectional")
    check("GRU", states=True, results=(0, 1))


def test_the_reset_gate_before_and_after_the_product() -> None:
    check("GRU", linear_before_reset=1, states=True)
    check("GRU", linear_before_reset=0, direction="bidirectional")


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("op", GATES)
def test_a_nan_goes_as_far_as_in_onnx_runtime(op: str, bias: bool) -> None:
    """Gates with a bias are clipped to finite numbers there."""
    check(op, bias=bias, lost=True, states=True, results=(0, 1))
    if op == "LSTM":
        check(op, bias=bias, lost=True, peepholes=True)
    if op == "GRU":
        check(op, bias=bias, lost=True, linear_before_reset=1)


@pytest.mark.parametrize(
    ("op", "functions"),
    [
        ("LSTM", ["HardSigmoid", "Tanh", "Tanh"]),
        ("LSTM", ["Sigmoid", "Softsign", "Relu"]),
        ("LSTM", ["Sigmoid", "Relu", "ScaledTanh"]),
        ("GRU", ["HardSigmoid", "Tanh"]),
        ("GRU", ["Sigmoid", "LeakyRelu"]),
        ("RNN", ["Elu"]),
        ("RNN", ["Affine"]),
        ("RNN", ["ThresholdedRelu"]),
    ],
)
def test_other_functions(op: str, functions: list[str]) -> None:
    """Each takes its numbers from the lists; others than the default ones for the direction backwards."""
    numbers = {"activation_alpha": [0.3, 0.6], "activation_beta": [0.4, 0.8]}
    check(op, activations=functions, results=(0, 1), **numbers)
    usual = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Relu"]}[op]
    check(op, activations=[*usual, *functions], direction="bidirectional", **numbers)


def test_functions_have_default_numbers() -> None:
    check("LSTM", activations=["HardSigmoid", "Tanh", "Tanh"], peepholes=True)
    check("GRU", activations=["HardSigmoid", "LeakyRelu"], linear_before_reset=1, states=True)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("op", GATES)
def test_sums_of_gates_are_clipped(op: str, bias: bool) -> None:
    check(op, bias=bias, clip=0.4, results=(0, 1))


def test_the_forget_gate_follows_the_input_gate() -> None:
    check("LSTM", input_forget=1, results=(0, 1, 2))
    check("LSTM", input_forget=1, peepholes=True, clip=0.7)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize(("op", "lengths"), [("LSTM", [3]), ("GRU", [2, 5, 1]), ("RNN", [4, 4])])
def test_sequences_that_end_early(op: str, lengths: list[int], direction: str) -> None:
    rng = np.random.default_rng(7)
    batch, count, rows = len(lengths), 1 + (direction != "forward"), GATES[op] * 3
    arrays = {"w": normal(rng, (count, rows, 4)), "r": normal(rng, (count, rows, 3))}
    arrays["n"] = np.array(lengths, np.int32)
    node = helper.make_node(
        op, ["x", "w", "r", "", "n"], ["y", "h"], "node", hidden_size=3, direction=direction
    )
    sizes = {"y": (5, count, batch, 3), "h": (count, batch, 3)}
    model = build(
        [node],
        {"x": (np.float32, (5, batch, 4))},
        {name: (np.float32, shape) for name, shape in sizes.items()},
        arrays,
    )
    check_against_onnx(model, {"x": normal(rng, (5, batch, 4))}, float_tolerance=1e-4, pieces=False)


@pytest.mark.parametrize("function", ["Relu", "Sigmoid", "Tanh"])
def test_functions_of_plain_networks(function: str) -> None:
    check("RNN", activations=[function])


@pytest.mark.parametrize(("direction", "at"), [("forward", -1), ("reverse", 0), ("forward", 0)])
def test_only_the_last_state_is_made_where_nothing_else_is_read(direction: str, at: int) -> None:
    rng = np.random.default_rng(3)
    arrays = {"w": normal(rng, (1, 9, 4)), "r": normal(rng, (1, 9, 3)), "at": np.array(at, np.int64)}
    nodes = [
        helper.make_node("GRU", ["x", "w", "r"], ["y"], "gru", hidden_size=3, direction=direction),
        helper.make_node("Gather", ["y", "at"], ["last"], "last", axis=0),
        helper.make_node("Relu", ["last"], ["z"], "relu"),
    ]
    model = build(nodes, {"x": (np.float32, (6, 1, 4))}, {"z": (np.float32, (1, 1, 3))}, arrays)
    graph = check_against_onnx(model, {"x": normal(rng, (6, 1, 4))}, float_tolerance=1e-4)
    is_last = (direction, at) != ("forward", 0)
    assert any(operator.op.kind == "Slice" for operator in graph.operators) != is_last
    assert (graph.tensors["recurrent_0"].shape == (1, 1, 3)) == is_last
    assert any(io.name == "last" for io in graph.references.values())


@pytest.mark.parametrize(("batch", "layout"), [(1, 1), (3, 0), (2, 1)])
@pytest.mark.parametrize("op", GATES)
def test_a_batch_and_the_batch_in_front(op: str, batch: int, layout: int) -> None:
    rng = np.random.default_rng(batch)
    rows, letters = GATES[op] * 3, ["h", "c"] if op == "LSTM" else ["h"]
    state = (batch, 1, 3) if layout else (1, batch, 3)
    arrays = {"w": normal(rng, (1, rows, 4)), "r": normal(rng, (1, rows, 3))}
    arrays |= {f"{letter}0": normal(rng, state) for letter in letters}
    results = ["y", *(f"{letter}n" for letter in letters)]
    order = ["x", "w", "r", "", "", *(f"{letter}0" for letter in letters)]
    node = helper.make_node(op, order, results, "node", hidden_size=3, layout=layout)
    x = normal(rng, (batch, 5, 4) if layout else (5, batch, 4))
    sequence = (batch, 5, 1, 3) if layout else (5, 1, batch, 3)
    model = build(
        [node],
        {"x": (np.float32, x.shape)},
        {name: (np.float32, sequence if name == "y" else state) for name in results},
        arrays,
    )
    check_against_onnx(model, {"x": x}, float_tolerance=1e-4, pieces=False)
