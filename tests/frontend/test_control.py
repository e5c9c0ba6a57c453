"""Control flow whose course is known: branches taken, loops unrolled, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from evaluate import assert_same, kinds
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from mcudeploy.frontend.passes import control
from tests.networks.onnx_files import build, node, save
from tests.networks.refusals import problems_of

RNG = np.random.default_rng(7)
X = RNG.normal(size=(1, 6)).astype(np.float32)
SEQUENCE = RNG.normal(size=(5, 6)).astype(np.float32)
W = RNG.normal(size=(6, 6)).astype(np.float32) / 3
TRUE, FALSE = np.array(True), np.array(False)


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    constants: dict[str, Any] | None = None,
) -> onnx.GraphProto:
    """A graph inside a node; inputs and outputs are "name:type", float32 without a type, of any shape."""
    kinds = {"int": TensorProto.INT64, "bool": TensorProto.BOOL, "": TensorProto.FLOAT}

    def value(text: str) -> onnx.ValueInfoProto:
        name, _, kind = text.partition(":")
        return helper.make_tensor_value_info(name, kinds[kind], [] if kind else None)

    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    return helper.make_graph(list(nodes), "inner", [*map(value, inputs)], [*map(value, outputs)], held)


def model(
    nodes: Sequence[onnx.NodeProto],
    x: Any,
    shape: Sequence[int] | None,
    constants: dict[str, Any],
    opset: int = 17,
) -> onnx.ModelProto:
    """A model from x to y, whose shape need not follow from its nodes."""
    built = build([node("Identity", "x", "y")], {"x": x}, ["y"], constants, opset)
    del built.graph.node[:]
    built.graph.node.extend(nodes)
    built.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, shape))
    return built


def branches(condition: str = "c") -> onnx.NodeProto:
    then = graph([node("MatMul", "x w", "t")], outputs=["t"], constants={"w": W})
    other = graph([node("Relu", "x", "t")], outputs=["t"])
    return node("If", condition, "y", then_branch=then, else_branch=other)


def refusal(proto: onnx.ModelProto, folder: Path) -> str:
    (problem,) = problems_of(save(proto, folder))
    return f"{problem.node} {problem.reason}"


@pytest.mark.parametrize(("value", "kind"), [(TRUE, "Conv2d"), (FALSE, "Unary")])
def test_a_constant_if_is_its_branch(value: Any, kind: str, tmp_path: Path) -> None:
    path = save(model([branches()], X, (1, 6), {"c": value}), tmp_path)
    assert kinds(assert_same(path, {"x": X})) == {kind: 1}


def test_a_condition_may_follow_from_shapes(tmp_path: Path) -> None:
    nodes = [node("Shape", "x", "s"), node("Gather", "s i", "n"), node("Equal", "n i", "c"), branches()]
    path = save(model(nodes, X, (1, 6), {"i": np.array(1)}), tmp_path)
    assert kinds(assert_same(path, {"x": X})) == {"Unary": 1}


_COMPUTED = [node("ReduceMax", "x", "m", keepdims=1), node("Less", "m limit", "c")]


def test_a_computed_condition_chooses_between_both_branches(tmp_path: Path) -> None:
    proto = model([*_COMPUTED, branches()], X, (1, 6), {"limit": np.float32(0)})
    graph = load(save(proto, tmp_path))
    assert kinds(graph) == {"Reduce": 1, "Binary": 4, "Conv2d": 1, "Unary": 1}
    assert any("both branches run" in note for note in graph.notes)


@pytest.mark.parametrize(
    ("other", "opset", "reason"),
    [
        ("Squeeze", 17, "they are float32 [1, 6] and float32 [6] in opset 17"),
        ("Relu", 8, "results of one type and shape and opset 9"),
    ],
)
def test_a_computed_condition_is_refused_if_nothing_can_choose(
    other: str, opset: int, reason: str, tmp_path: Path
) -> None:
    then = graph([node("Relu", "x", "t")], outputs=["t"])
    different = graph([node(other, "x", "t")], outputs=["t"])
    chosen = node("If", "c", "y", then_branch=then, else_branch=different)
    proto = model([*_COMPUTED, chosen], X, None, {"limit": np.float32(0)}, opset)
    assert reason in refusal(proto, tmp_path)


def loop(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], result: str) -> onnx.NodeProto:
    body = graph(nodes, ["i:int", "go:bool", "a"], outputs, {"w": W})
    return node("Loop", "n t x", result, body=body)


STEP = [
    node("MatMul", "a w", "m"),
    node("Tanh", "m", "b"),
    node("Identity", "go", "on"),
    helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.float32(0.5), "k")),
    node("Mul", "b k", "row"),
]


@pytest.mark.parametrize("opset", [11, 17])
def test_a_loop_carries_values_and_stacks_others(opset: int, tmp_path: Path) -> None:
    nodes = [loop(STEP, ["on:bool", "b", "row"], "last rows"), node("Add", "last rows", "y")]
    proto = model(nodes, X, (3, 1, 6), {"n": np.array(3), "t": TRUE}, opset)
    graph = assert_same(save(proto, tmp_path), {"x": X})
    assert kinds(graph)["Conv2d"] == 3
    assert not any("Loop" in name for name in graph.references)  # ONNX Runtime shows none of these


def test_a_loop_ends_by_its_own_counter(tmp_path: Path) -> None:
    nodes = [node("Add", "a a", "b"), node("Less", "i two", "on")]
    body = graph(nodes, ["i:int", "go:bool", "a"], ["on:bool", "b"], {"two": np.array(2)})
    proto = model([node("Loop", "- - x", "y", body=body)], X, None, {})
    assert kinds(assert_same(save(proto, tmp_path), {"x": X})) == {"Binary": 3}


def test_loops_with_branches_inside(tmp_path: Path) -> None:
    """Inner names equal outer names, and both branches contain a constant of one name."""
    then = graph([node("Mul", "a k", "b")], outputs=["b"], constants={"k": np.float32(3)})
    other = graph([node("Add", "a k", "b")], outputs=["b"], constants={"k": np.float32(0.25)})
    inner = [
        node("Equal", "i one", "c"),
        node("If", "c", "m", then_branch=then, else_branch=other),
        node("Identity", "go", "on"),
    ]
    body = graph(inner, ["i:int", "go:bool", "a"], ["on:bool", "m"], {"one": np.array(1)})
    proto = model(
        [node("Loop", "n - x", "m", body=body), node("Relu", "m", "y")], X, (1, 6), {"n": np.array(3)}
    )
    assert_same(save(proto, tmp_path), {"x": X})


def test_a_loop_without_iterations_gives_what_it_was_given(tmp_path: Path) -> None:
    nodes = [loop(STEP, ["on:bool", "b", "row"], "last rows"), node("Relu", "last", "y")]
    proto = model(nodes, X, None, {"n": np.array(0), "t": TRUE})
    proto.graph.output.append(helper.make_tensor_value_info("rows", 1, None))
    assert "its result 'rows' has no elements" in refusal(proto, tmp_path)
    del proto.graph.output[1:]  # nothing reads them any more
    assert kinds(assert_same(save(proto, tmp_path), {"x": X})) == {"Unary": 1}
    nodes[0] = loop(STEP, ["on:bool", "b"], "last")
    proto = model(nodes, X, None, {"n": np.array(0), "t": TRUE})
    assert kinds(assert_same(save(proto, tmp_path), {"x": X})) == {"Unary": 1}


@pytest.mark.parametrize("backward", [0, 1])
def test_a_scan_goes_over_an_axis(backward: int, tmp_path: Path) -> None:
    body = graph(
        [node("MatMul", "h w", "m"), node("Add", "m s", "z"), node("Tanh", "z", "n"), node("Relu", "n", "o")],
        ["h", "s"],
        ["n", "o"],
        {"w": W},
    )
    item = node(
        "Scan",
        "h0 x",
        "last all",
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_input_directions=[backward],
        scan_output_axes=[-1],
        scan_output_directions=[1 - backward],
    )
    x = SEQUENCE.T[None].transpose(1, 2, 0)  # (6, 5, 1)
    nodes = [node("Transpose", "x", "p", perm=[2, 1, 0]), item, node("Relu", "all", "y")]
    item.input[1] = "p"
    proto = model(nodes, x, (1, 6, 5), {"h0": np.zeros((1, 6), np.float32)})
    assert_same(save(proto, tmp_path), {"x": x})


def nested(depth: int, iterations: int) -> onnx.ModelProto:
    """Nested loops around a single Add."""
    nodes = [node("Add", "a0 a0", "b0"), node("Identity", "g0", "o0")]
    for level in range(depth):
        body = graph(nodes, [f"i{level}:int", f"g{level}:bool", f"a{level}"], [f"o{level}:bool", f"b{level}"])
        outer = level + 1
        nodes = [
            node("Loop", f"n - a{outer}", f"b{outer}", body=body),
            node("Identity", f"g{outer}", f"o{outer}"),
        ]
    nodes = nodes[:1]
    nodes[0].input[2], nodes[0].output[0] = "x", "y"
    return model(nodes, X, None, {"n": np.array(iterations)})


@pytest.mark.parametrize(("depth", "iterations"), [(1, 2**62), (6, 50), (20, 3)])
def test_unrolling_has_a_limit(
    depth: int, iterations: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_MAX_NODES", 1000)
    assert "unrolled, it has more than 1,000 nodes" in refusal(nested(depth, iterations), tmp_path)


def test_functions_in_branches_are_counted(tmp_path: Path) -> None:
    """Twenty functions, each with a branch that calls the next one twice."""
    proto = model([node("F0", "x", "y")], X, (1, 6), {})
    proto.graph.node[0].domain = "own"
    proto.opset_import.append(helper.make_opsetid("own", 1))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    for number in range(20):
        calls = [node(f"F{number + 1}", "a", "b"), node(f"F{number + 1}", "b", "t")]
        if number == 19:
            calls = [node("Relu", "a", "t")]
        for call in calls:
            call.domain = "own" if call.op_type != "Relu" else ""
        taken = node(
            "If", "c", "r", then_branch=graph(calls, outputs=["t"]), else_branch=graph(calls, outputs=["t"])
        )
        held = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(TRUE, "c"))
        proto.functions.append(helper.make_function("own", f"F{number}", ["a"], ["r"], [held, taken], opsets))
    with pytest.raises(ModelError, match="more than 65536 nodes"):
        load(save(proto, tmp_path))


def test_shapes_are_known_after_quantisations_of_onnx_runtime(tmp_path: Path) -> None:
    """onnx infers nothing of the domain com.microsoft."""
    quantisation = {"domain": "com.microsoft"}
    nodes = [
        node("QuantizeLinear", "x s z", "q", **quantisation),
        node("DequantizeLinear", "q s z", "d", **quantisation),
        node("Shape", "d", "n"),
        node("Gather", "n i", "m"),
        node("Equal", "m i", "c"),
        branches(),
    ]
    constants = {"s": np.float32(1e-4), "z": np.array(3, np.int16), "i": np.array(1)}
    proto = model(nodes, X, (1, 6), constants)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    graph = load(save(proto, tmp_path))
    assert kinds(graph) == {"Unary": 1}
