"""Random graphs are verified or refused by name, in whatever way they are planned; and faults are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from fuzzing import plans, running
from fuzzing.generate import draw
from fuzzing.plans import Made
from fuzzing.reduce import smaller
from fuzzing.running import BAD, examine
from onnx import helper, numpy_helper

from mcudeploy.model.model import Model, load_model
from tests.residing import lying, offsets_of

_SEEDS, _TOGETHER = 40, 10


@pytest.mark.parametrize("first", range(0, _SEEDS, _TOGETHER))
def test_graphs_are_verified_or_refused_by_name(first: int, tmp_path: Path) -> None:
    drawn = [draw(seed) for seed in range(first, first + _TOGETHER)]
    subjects = examine([(f"g{it.seed}", it.seed, it.model) for it in drawn], tmp_path)
    bad = [f"{it.name} {each}" for it in subjects for each in it.findings if each.kind in BAD]
    assert not bad, "\n".join(bad)
    assert sum(it.verdict == "verified" for it in subjects) >= 0.6 * _TOGETHER


def test_a_seed_gives_the_same_graph() -> None:
    assert draw(7).model.SerializeToString() == draw(7).model.SerializeToString()


def _chain() -> onnx.ModelProto:
    """float32 [1,2,6,6] -> Conv -> Relu -> Tanh -> Add to what came in -> MaxPool."""
    weights = np.random.default_rng(1).standard_normal((2, 2, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Tanh", ["b"], ["c"]),
        helper.make_node("Add", ["c", "x"], ["d"]),
        helper.make_node("MaxPool", ["d"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    infos = [
        helper.make_tensor_value_info(name, 1, [1, 2, side, side]) for name, side in (("x", 6), ("y", 3))
    ]
    graph = helper.make_graph(nodes, "chain", infos[:1], infos[1:], [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _found(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, made: Made) -> list[running.Finding]:
    """Findings where the way of this name gives another plan than it should."""
    usual = plans.others

    def others(model: Model, base: Made, seed: int):  # type: ignore[no-untyped-def]
        for way, make in usual(model, base, seed):
            yield way, (lambda: replace(made, way=name)) if way == name else make

    monkeypatch.setattr(plans, "others", others)
    (subject,) = examine([("chain", 0, _chain())], folder, [name])
    return subject.findings


def _unsplit(folder: Path) -> Made:
    path = folder / "usual.onnx"
    onnx.save(_chain(), path)
    return plans.unsplit(load_model(path))


def test_a_plan_that_overwrites_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = _unsplit(tmp_path)
    first = next(iter(made.plan.graph.inputs)).tensor
    second = made.plan.graph.operators[0].output
    wrong = replace(made, plan=lying(made.plan, {second: offsets_of(made.plan, first)}))
    assert [it.kind for it in _found(monkeypatch, tmp_path, "split", wrong)] == ["wrong", "wrong"]


def test_an_arena_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = _unsplit(tmp_path)
    layout = replace(made.plan.layout, arenas={"ram": 64})
    small = replace(made, plan=replace(made.plan, layout=layout))
    (finding,) = _found(monkeypatch, tmp_path, "split", small)
    assert finding.kind == "sanitizer" and "AddressSanitizer" in finding.text


def test_a_failing_graph_is_reduced_to_what_fails() -> None:
    def fails(model: onnx.ModelProto) -> bool:
        onnx.checker.check_model(model, full_check=True)
        return any(node.op_type == "Tanh" for node in model.graph.node)

    least = smaller(_chain(), fails)
    assert [node.op_type for node in least.graph.node] == ["Tanh"]
    assert [dim.dim_value for dim in least.graph.input[0].type.tensor_type.shape.dim] == [1, 1, 1, 1]
