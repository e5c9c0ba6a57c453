"""Random graphs are verified or refused by name, in whatever way they are planned; and faults are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from fuzzing import plans, running
from fuzzing.caches import examine_caches
from fuzzing.flat import draw_flat
from fuzzing.forms import examine_forms
from fuzzing.generate import TRAITS, Drawn, Trait, draw, traits_of
from fuzzing.plans import JudgedPlan
from fuzzing.reduce import smaller
from fuzzing.running import BAD, examine
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.frontend.decompose.decompose import RULES
from mcudeploy.frontend.tflite.writer import Writer
from mcudeploy.planner.model.model import Model, load_model
from tests.residing import lying, offsets_of
from tests.weekly import sample

_SEEDS, _TOGETHER = 21, 7
_OF_A_TRAIT = 3
_WIDE = {TensorProto.INT16, TensorProto.UINT16}
_INTEGERS = {TensorProto.INT32, TensorProto.INT64}


def assert_verified(drawn: Sequence[Drawn], folder: Path) -> None:
    """Verified, or refused by name, and most verified."""
    subjects = examine([(f"g{it.seed}", it.seed, it.model) for it in drawn], folder)
    bad = [f"{it.name} {each}" for it in subjects for each in it.findings if each.kind in BAD]
    assert not bad, "\n".join(bad)
    assert sum(it.verdict == "verified" for it in subjects) >= 0.6 * len(drawn)


@pytest.mark.parametrize("first", sample(range(0, _SEEDS, _TOGETHER), 1))
def test_graphs_are_verified_or_refused_by_name(first: int, tmp_path: Path) -> None:
    assert_verified([draw(seed) for seed in range(first, first + _TOGETHER)], tmp_path)


@pytest.mark.parametrize("trait", TRAITS)
def test_graphs_with_a_trait_are_verified_or_refused_by_name(trait: Trait, tmp_path: Path) -> None:
    """A different one beside it in each graph."""
    others = [it for it in TRAITS if it != trait]
    first = 1000 * TRAITS.index(trait)
    drawn = [draw(first + at, {trait, others[at]}) for at in range(_OF_A_TRAIT)]
    assert_verified(drawn, tmp_path)


def test_caches_are_those_of_onnx_runtime_in_runs_in_turn(tmp_path: Path) -> None:
    """With caches of one element, ranks that differ, and values whose shapes are not inferred."""
    findings = examine_caches([1005, 1010, 1226], tmp_path)
    assert [it for it in findings if it.verdict != "verified"] == []


def test_other_forms_of_graphs_give_the_same_outputs(tmp_path: Path) -> None:
    drawn = [draw(seed, traits_of(seed)) for seed in (3, 5)]
    subjects = examine_forms([(f"g{it.seed}", it.seed, it.model) for it in drawn], tmp_path)
    assert [(it.name, it.findings) for it in subjects if it.findings] == [] and len(subjects) == 6


def test_a_form_with_other_outputs_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A rewriting that negates the output."""

    def negated(model: onnx.ModelProto, _: np.random.Generator) -> None:
        model.graph.node[-1].op_type = "Neg"

    monkeypatch.setattr("fuzzing.forms.FORMS", dict.fromkeys(("constants", "identities"), negated))
    chain = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["y"])],
        "chain", *([helper.make_tensor_value_info(name, 1, [1, 8])] for name in "xy"),
    )  # fmt: skip
    model = helper.make_model(chain, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    base, *others = examine_forms([("g", 0, model)], tmp_path)
    assert base.verdict == "verified" and [it.verdict for it in others] == ["form", "form"]


def test_a_value_between_two_int16_steps_may_be_rounded_to_either(tmp_path: Path) -> None:
    drawn = draw(952000659, traits_of(952000659))
    (subject,) = examine([("tie", drawn.seed, drawn.model)], tmp_path, ways=())
    assert subject.verdict == "verified"


def test_a_block_that_takes_over_where_its_input_was_copied_to(tmp_path: Path) -> None:
    """The image comes from the slow memory for step 0, which overwrites it in place; both leave after it."""
    drawn = draw_flat(91256)
    (subject,) = examine([("copied", drawn.seed, drawn)], tmp_path, ways=("tiny",))
    assert subject.verdict == "verified", subject.findings


def test_a_rounded_nan_is_not_a_defect(tmp_path: Path) -> None:
    """0 / 0 that QuantizeLinear rounds to an integer: ONNX does not define it."""
    drawn = draw(952000052, traits_of(952000052))
    (subject,) = examine([("nan", drawn.seed, drawn.model)], tmp_path, ways=())
    assert subject.verdict == "undefined"


@pytest.mark.parametrize("trait", TRAITS)
def test_half_of_the_graphs_drawn_with_a_trait_have_it(trait: Trait) -> None:
    drawn = [draw(seed, [trait]).model.graph for seed in range(12)]
    assert sum(trait in _traits_seen(graph) for graph in drawn) >= 6


def _traits_seen(graph: onnx.GraphProto) -> set[Trait]:
    ops = {node.op_type for node in graph.node}
    types = {tensor.data_type for tensor in graph.initializer}
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [info.type.tensor_type for info in graph.input if info.name not in constants]
    traits: dict[Trait, bool] = {
        "batch": any(kind.shape.dim[0].dim_value > 1 for kind in inputs),
        "decomposed": not ops.isdisjoint({*RULES, "Elu", "Erf", "Max", "Min", "PRelu", "ReduceMax"}),
        "control": not ops.isdisjoint({"If", "Loop", "Scan"}),
        "recurrent": not ops.isdisjoint({"LSTM", "GRU", "RNN"}),
        "int16": not types.isdisjoint(_WIDE),
        "int32": any(kind.elem_type in _INTEGERS for kind in inputs),
    }
    return {trait for trait, seen in traits.items() if seen}


def test_the_fast_memory_of_some_plans_is_tiny(tmp_path: Path) -> None:
    (subject,) = examine([("chain", 0, _chain())], tmp_path, ["tiny"])
    assert not subject.findings
    (judged,) = (judged for judged, _ in subject.plans if judged.way == "tiny")
    fast, large = judged.board.memories
    assert judged.plan.layout.arenas.get(fast.name, 0) <= 300 < judged.plan.layout.arenas[large.name]


def test_tflite_files_are_verified_and_are_litert_s(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    drawn = [draw_flat(seed) for seed in range(6)]
    subjects = examine([(f"f{it.seed}", it.seed, it) for it in drawn], tmp_path, ["split"])
    bad = [f"{it.name} {each}" for it in subjects for each in it.findings if each.kind in BAD]
    assert not bad, "\n".join(bad)
    assert sum(it.verdict == "verified" for it in subjects) >= 5


@pytest.mark.parametrize("seed", [961000145, 961000464, 961000673])
def test_files_that_were_wrong_or_seemed_so(seed: int, tmp_path: Path) -> None:
    """A minimum below the range of a convolution; a product and a mean that round twice near ties."""
    pytest.importorskip("ai_edge_litert.interpreter")
    (subject,) = examine([("f", seed, draw_flat(seed))], tmp_path, [])
    assert subject.verdict == "verified", subject.findings


def test_a_result_that_is_not_litert_s_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An average pool that rounds ties to even, as ONNX Runtime does, which lets ties pass."""
    pytest.importorskip("ai_edge_litert.interpreter")
    monkeypatch.setattr(Writer, "round_exactly", lambda *_: None)
    monkeypatch.setattr("mcudeploy.frontend.load.rounded", lambda graph, *_, **__: graph)
    drawn = next(it for it in map(draw_flat, range(100)) if set(it.producers.values()) == {"AVERAGE_POOL_2D"})
    (subject,) = examine([("f", drawn.seed, drawn)], tmp_path, [])
    assert [it.way for it in subject.findings] == ["beside LiteRT"]


def test_a_seed_gives_the_same_graph() -> None:
    for traits in ((), TRAITS):
        assert draw_flat(7).content == draw_flat(7).content
        assert draw(7, traits).model.SerializeToString() == draw(7, traits).model.SerializeToString()


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


def _found(
    monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, judged: JudgedPlan
) -> list[running.Finding]:
    """Findings where the way of this name gives another plan than it should."""
    usual = plans.others

    def others(model: Model, base: JudgedPlan, seed: int):  # type: ignore[no-untyped-def]
        for way, make in usual(model, base, seed):
            yield way, (lambda: replace(judged, way=name)) if way == name else make

    monkeypatch.setattr(plans, "others", others)
    (subject,) = examine([("chain", 0, _chain())], folder, [name])
    return subject.findings


def _unsplit(folder: Path) -> JudgedPlan:
    path = folder / "usual.onnx"
    onnx.save(_chain(), path)
    return plans.unsplit(load_model(path))


def test_a_plan_that_overwrites_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    judged = _unsplit(tmp_path)
    first = next(iter(judged.plan.graph.inputs)).tensor
    second = judged.plan.graph.operators[0].output
    wrong = replace(judged, plan=lying(judged.plan, {second: offsets_of(judged.plan, first)}))
    assert [it.kind for it in _found(monkeypatch, tmp_path, "split", wrong)] == ["wrong", "wrong"]


def test_an_arena_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    judged = _unsplit(tmp_path)
    layout = replace(judged.plan.layout, arenas={"ram": 64})
    small = replace(judged, plan=replace(judged.plan, layout=layout))
    (finding,) = _found(monkeypatch, tmp_path, "split", small)
    assert finding.kind == "sanitizer" and "AddressSanitizer" in finding.text


def test_a_failing_graph_is_reduced_to_what_fails() -> None:
    def fails(model: onnx.ModelProto) -> bool:
        onnx.checker.check_model(model, full_check=True)
        return any(node.op_type == "Tanh" for node in model.graph.node)

    least = smaller(_chain(), fails)
    assert [node.op_type for node in least.graph.node] == ["Tanh"]
    assert [dim.dim_value for dim in least.graph.input[0].type.tensor_type.shape.dim] == [1, 1, 1, 1]
