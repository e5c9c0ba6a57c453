"""A graph is the same whatever form an exporter gives its constants, names and copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from fuzzing.forms import FORMS, formed
from fuzzing.generate import Trait, draw

from mcudeploy.boards.catalogue import load_board
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.plain_forms import in_plain_forms
from mcudeploy.ir.graph import Graph
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from tests.networks.onnx_files import build, node, save

X = np.zeros((2, 4), np.float32)


def int16_product() -> onnx.ModelProto:
    """int16 activations by int8 weights, in QDQ format."""
    constants = {
        "s": np.float32(0.01), "z": np.int16(0), "w": np.arange(8, dtype=np.int8).reshape(4, 2),
        "t": np.float32(0.1), "u": np.int8(0),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w t u", "v"), node("MatMul", "d v", "m"),
        node("QuantizeLinear", "m s z", "r"), node("DequantizeLinear", "r s z", "y"),
    ]  # fmt: skip
    return build(nodes, {"x": X}, ["y"], constants, opset=21)


def described(graph: Graph) -> list[object]:
    """Operators, constants and borders, without names."""
    numbers = {io.tensor: number for number, io in enumerate(graph.inputs)}
    lines: list[object] = []
    for operator in graph.operators:
        read = [numbers[name] for name in operator.inputs]
        numbers[operator.output] = len(numbers)
        arrays = [(name, np.asarray(it).tobytes()) for name, it in operator.constants.items()]
        lines.append((repr(operator.op), read, arrays, graph.tensors[operator.output].shape))
    return [*lines, [numbers[io.tensor] for io in graph.outputs]]


@pytest.mark.parametrize("form", FORMS)
def test_int16_weights_in_any_form_are_integers(form: str, tmp_path: Path) -> None:
    base = load(save(int16_product(), tmp_path))
    other = load(save(formed(int16_product(), [form], 1), tmp_path))
    assert "Conv2dInt16" in {type(it.op).__name__ for it in base.operators}
    assert described(other) == described(base)


@pytest.mark.parametrize(
    ("seed", "traits"),
    [(1, ()), (2, ("int16",)), (5, ("decomposed", "batch")), (7, ("recurrent", "control"))],
)
def test_other_forms_of_a_graph_are_the_same_graph(
    seed: int, traits: tuple[Trait, ...], tmp_path: Path
) -> None:
    model = draw(seed, traits).model
    base = described(load(save(model, tmp_path)))
    for form in FORMS:
        assert described(load(save(formed(model, [form], seed), tmp_path))) == base, form


@pytest.mark.parametrize(("seed", "traits"), [(1, ()), (5, ("decomposed", "batch"))])
def test_other_forms_of_a_graph_get_equal_arenas(
    seed: int, traits: tuple[Trait, ...], tmp_path: Path
) -> None:
    model, arenas = draw(seed, traits).model, []
    for forms in ((), ("identities", "order", "names")):
        read = load_model(save(formed(model, forms, seed), tmp_path))
        plans = find_plans(read, load_board("host"), Options(time_limit=0.1))
        arenas.append([plan.layout.arena_bytes for plan in plans.choices])
    assert arenas[0] == arenas[1]


@pytest.mark.parametrize(
    "value",
    [{"value_int": 3}, {"value_ints": [1, 2]}, {"value_float": 0.5}, {"value_floats": [0.5, 1.5]},
     {"value_string": "a"}, {"value_strings": ["a", "b"]}],
    ids=str,
)  # fmt: skip
def test_every_form_of_a_constant_is_an_initializer(value: dict[str, object]) -> None:
    model = onnx.ModelProto()
    model.graph.node.append(onnx.helper.make_node("Constant", [], ["c"], **value))
    in_plain_forms(model)
    (tensor,) = model.graph.initializer
    (given,) = value.values()
    array = onnx.numpy_helper.to_array(tensor)
    expected = np.asarray(given, array.dtype)
    assert not model.graph.node and tensor.name == "c" and array.tolist() == expected.tolist()


def test_a_value_that_is_written_twice_stays_written_twice(tmp_path: Path) -> None:
    model = build([node("Constant", "", "c", value_float=1.0), node("Add", "x c", "y")], {"x": X}, ["y"])
    model.graph.node.append(node("Identity", "x", "c"))
    before = model.SerializeToString()
    in_plain_forms(model)
    assert model.SerializeToString() == before


def test_copies_between_an_input_and_outputs_stay() -> None:
    nodes = [node("Identity", "x", "a"), node("Identity", "a", "y"), node("Identity", "y", "z")]
    model = build(nodes, {"x": X}, ["y", "z"])
    in_plain_forms(model)
    assert [(it.input[0], it.output[0]) for it in model.graph.node] == [("x", "y"), ("y", "z")]
