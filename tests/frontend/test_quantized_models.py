"""QDQ models: all supported operators are int8, and results are within one step of ONNX Runtime's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate import assert_same, kinds
from harness import outputs_of

from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import DType, Graph, Quantization
from tests.networks.onnx_files import QuantizedModel, build, node, save

RANDOM = np.random.default_rng(11)
IMAGE = (2 * RANDOM.standard_normal((1, 4, 6, 5))).astype(np.float32)


def finish(
    model: QuantizedModel, outputs: list[str], folder: Path, inputs: dict[str, Any] | None = None
) -> Path:
    return save(build(model.nodes, inputs or {"x": IMAGE}, outputs, model.constants), folder)


def check(
    m: QuantizedModel, output: str, folder: Path, inputs: dict[str, Any] | None = None, **operators: int
) -> Graph:
    """The graph computes what the model does, with these operators."""
    inputs = inputs or {"x": IMAGE}
    graph = assert_same(finish(m, [output], folder, inputs), inputs)
    assert kinds(graph) == operators
    return graph


def is_int8(graph: Graph) -> bool:
    return all(tensor.dtype is DType.INT8 for tensor in graph.tensors.values())


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("activation", [None, "Relu", "Clip"])
def test_conv(dtype: Any, activation: str | None, tmp_path: Path) -> None:
    m = QuantizedModel()
    zero = 5 if dtype == np.int8 else 131
    x = m.quantize("x", 0.05, zero, dtype)
    w = m.weights("w", (6, 2, 3, 3))
    b = m.bias("b", m.constants["w_s"] * np.float32(0.05))
    out = m.add("Conv", f"{x} {w} {b}", "c", group=2, pads=[1, 1, 1, 0])
    if activation == "Clip":
        m.constants["lo"], m.constants["hi"] = np.float32(-1), np.float32(2.5)
        out = m.add("Clip", f"{out} lo hi", "a")
    elif activation:
        out = m.add(activation, out, "a")
    y = m.quantize(out, 0.04, zero - 9, dtype)
    graph = check(m, y, tmp_path, Conv2d=1)
    assert is_int8(graph)
    assert graph.inputs[0].dtype == graph.outputs[0].dtype == "float32"


def test_float_io_keeps_float_borders(tmp_path: Path) -> None:
    m = QuantizedModel()
    c = m.add("Conv", f"{m.quantize('x', 0.05, 5)} {m.weights('w', (3, 4, 2, 2))}", "c")
    path = finish(m, [m.quantize(c, 0.04, 0)], tmp_path)
    graph = assert_same(path, {"x": IMAGE}, steps=0.041, float_io=True)
    assert kinds(graph) == {"Quantize": 1, "Conv2d": 1, "Dequantize": 1}


def test_bias_integers_are_taken_as_they_are(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    w = m.weights("w", (3, 4, 2, 2))
    b = m.bias("b", m.constants["w_s"] * np.float32(0.05))
    y = m.quantize(m.add("Conv", f"{x} {w} {b}", "c"), 0.04, 0)
    graph = load(finish(m, [y], tmp_path))
    assert np.array_equal(graph.operators[0].constants["bias"], m.constants["b_i"])


def test_bias_of_another_form_is_rescaled(tmp_path: Path) -> None:
    m = QuantizedModel()
    m.constants["b"] = RANDOM.standard_normal(3).astype(np.float32)
    c = m.add("Conv", f"{m.quantize('x', 0.05, 5)} {m.weights('w', (3, 4, 2, 2))} b", "c")
    check(m, m.quantize(c, 0.04, 0), tmp_path, Conv2d=1)


def test_weights_of_uint8_and_negative_scales(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    stored = m.random.integers(0, 256, (3, 4, 2, 2)).astype(np.uint8)
    w = m.stored("w", stored, np.array(0.02, np.float32), None, zero=128)
    y = m.quantize(m.add("Conv", f"{x} {w}", "c"), 0.1, 0)
    v = m.stored(
        "v",
        m.random.integers(-127, 128, (2, 3, 1, 1)).astype(np.int8),
        np.array([-0.02, 0.0], np.float32),
        0,
    )
    m.constants["b"] = np.array([0.5, -0.5], np.float32)
    z = m.quantize(m.add("Conv", f"{y} {v} b", "d"), 0.05, 0)
    check(m, z, tmp_path, Conv2d=2)


def test_saturated_bias_of_a_silent_channel(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    weights = np.zeros((2, 4, 1, 1), np.int8)
    weights[1] = 100
    w = m.stored("w", weights, np.array([4e-9, 0.01], np.float32), 0)
    scales = np.array([4e-9, 0.01], np.float32) * np.float32(0.05)
    b = m.stored("b", np.array([-(2**31), 40], np.int32), scales, 0)
    y = m.quantize(m.add("Conv", f"{x} {w} {b}", "c"), 0.05, 0)
    assert kinds(assert_same(finish(m, [y], tmp_path), {"x": IMAGE})) == {"Conv2d": 1}


def test_dense_layers(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    p = m.quantize(m.add("AveragePool", x, "p", kernel_shape=[2, 2], strides=[2, 2]), 0.04, 2)
    f = m.add("Flatten", p, "f")
    g = m.weights("g", (7, 24), axis=0)
    y = m.quantize(m.add("Gemm", f"{f} {g}", "d", transB=1), 0.06, -3)
    h = m.weights("h", (7, 5), axis=1)
    b = m.bias("b", m.constants["h_s"] * np.float32(0.06))
    s = m.add("Add", f"{m.add('MatMul', f'{y} {h}', 'e')} {b}", "s")
    z = m.quantize(m.add("Relu", s, "r"), 0.1, -128)
    graph = check(m, z, tmp_path, AveragePool=1, Conv2d=2)
    assert is_int8(graph)


def test_unary_chain_is_one_table(tmp_path: Path) -> None:
    m = QuantizedModel()
    m.constants |= {"three": np.float32(3), "k": np.array([[[[0.25]]]], np.float32)}
    x = m.quantize("x", 0.05, 5)
    m.add("HardSigmoid", x, "a")
    m.add("Add", "a three", "b")
    m.add("Div", "k b", "c")
    m.add("LeakyRelu", "c", "d", alpha=0.3)
    y = m.quantize(m.add("Tanh", "d", "e"), 0.001, 0)
    check(m, y, tmp_path, Lut=1)


def test_hard_swish_in_pieces_is_one_table(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    h = m.quantize(m.add("HardSigmoid", x, "h", alpha=1 / 6), 1 / 255, -128)
    y = m.quantize(m.add("Mul", f"{x} {h}", "p"), 0.04, -100)
    c = m.quantize(m.add("Conv", f"{y} {m.weights('w', (3, 4, 2, 2))}", "c"), 0.04, 0)
    check(m, c, tmp_path, Lut=1, Conv2d=1)


def test_requantisation(tmp_path: Path) -> None:
    m = QuantizedModel()
    same = m.quantize(m.quantize("x", 0.05, 5), 0.05, 5)
    y = m.quantize(same, 0.08, -7)
    check(m, y, tmp_path, Lut=1)


def test_relu_after_a_quantised_conv_is_its_clip(tmp_path: Path) -> None:
    m = QuantizedModel()
    c = m.add("Conv", f"{m.quantize('x', 0.05, 5)} {m.weights('w', (3, 4, 2, 2))}", "c")
    r = m.add("Relu", m.quantize(c, 0.04, 3), "r")
    graph = check(m, m.quantize(r, 0.04, 3), tmp_path, Conv2d=1)
    assert graph.operators[0].output == "conv_0"
    assert graph.references["conv_0"].name.startswith("r_")


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_binary(op: str, tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    z = m.quantize("z", 0.02, -128)
    y = m.quantize(m.add("Relu", m.add(op, f"{x} {z}", "a"), "r"), 0.1, -10)
    inputs = {"x": IMAGE, "z": np.abs(RANDOM.standard_normal((1, 4, 1, 1))).astype(np.float32) + 1}
    graph = check(m, y, tmp_path, inputs, Binary=1)
    assert is_int8(graph)


def test_constant_operands(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    stored = m.random.integers(0, 255, (1, 4, 6, 5)).astype(np.uint8)
    k = m.stored("k", stored, np.array(0.01, np.float32), None, zero=120)
    y = m.quantize(m.add("Sub", f"{k} {x}", "s"), 0.08, 1)
    graph = check(m, y, tmp_path, Binary=1)
    assert graph.operators[0].constants["constant"].dtype == np.int8


def test_batch_normalization_with_quantised_parameters(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    for name in ("g", "o", "u"):
        m.weights(name, (4,), axis=None)
    m.constants["v"] = np.array([1.0, 2.0, 0.5, 1e-3], np.float32)
    n = m.add("BatchNormalization", f"{x} g o u v", "n")
    y = m.quantize(m.add("Relu", n, "r"), 0.2, -128)
    graph = check(m, y, tmp_path, Affine=1)
    assert is_int8(graph)


def test_movers_work_on_what_is_stored(tmp_path: Path) -> None:
    m = QuantizedModel()
    m.constants |= {
        "p": np.array([0, 0, 1, 0, 0, 0, 0, 2]),
        "k": np.array([1, 1, 2, 2], np.float32),
        "b": np.array([1]),
        "e": np.array([3]),
        "a": np.array([1]),
    }
    x = m.quantize("x", 0.05, 5)
    pool = m.quantize(m.add("MaxPool", x, "m", kernel_shape=[2, 2]), 0.05, 5)
    pad = m.quantize(m.add("Pad", f"{pool} p", "q"), 0.05, 5)
    part = m.quantize(m.add("Slice", f"{pad} b e a", "s"), 0.05, 5)
    large = m.quantize(m.add("Resize", f"{part} - k", "z", mode="nearest"), 0.05, 5)
    relu = m.add("Relu", large, "r")
    y = m.quantize(m.add("MaxPool", relu, "t", kernel_shape=[2, 2]), 0.03, -128)
    graph = check(m, y, tmp_path, MaxPool=2, Pad=1, Slice=1, Resize=1, Lut=1)
    assert is_int8(graph)


def test_pad_with_a_value_that_is_not_stored(tmp_path: Path) -> None:
    m = QuantizedModel()
    m.constants |= {"p": np.array([0, 0, 1, 0, 0, 0, 0, 2]), "v": np.float32(0.333)}
    x = m.add("Relu", m.quantize("x", 0.05, 5), "r")
    y = m.quantize(m.add("Pad", f"{x} p v", "q"), 0.04, 0)
    check(m, y, tmp_path, Lut=1, Pad=1)


def test_zero_pads_become_the_convolutions(tmp_path: Path) -> None:
    m = QuantizedModel()
    m.constants["p"] = np.array([0, 1, 2, 0, 0, 0, 1, 0])
    x = m.quantize("x", 0.05, 5)
    q = m.quantize(m.add("Pad", f"{x} p", "q"), 0.05, 5)
    t = m.add("Transpose", q, "t", perm=[0, 3, 1, 2])
    c = m.add("Conv", f"{t} {m.weights('w', (3, 4, 3, 3))}", "c")
    inputs = {"x": np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1))}
    graph = check(m, m.quantize(c, 0.04, 0), tmp_path, inputs, Conv2d=1)
    assert graph.tensors[graph.inputs[0].tensor].shape == (6, 5, 4)


def test_concat_takes_differing_inputs(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    z = m.quantize(m.add("MaxPool", x, "m", kernel_shape=[1, 1]), 0.05, 5)
    r = m.add("Sigmoid", x, "r")
    v = m.quantize("v", 0.02, 3)
    y = m.quantize(m.add("Concat", f"{v} {z} {r}", "c", axis=1), 0.05, 0)
    inputs = {"x": IMAGE, "v": (IMAGE[:, :2] / 2).copy()}
    graph = check(m, y, tmp_path, inputs, MaxPool=1, Lut=1, Concat=1)
    assert is_int8(graph)


def test_int8_borders_reshaped_to_an_image(tmp_path: Path) -> None:
    m = QuantizedModel()
    m.constants |= {"s": np.array([1, 1, 8, 5]), "f": np.array([-1, 2 * 7 * 4])}
    image = m.add("Reshape", "x s", "i")
    x = m.dequantize(image, 0.05, 3)
    c = m.add("Conv", f"{x} {m.weights('w', (2, 1, 2, 2))}", "c")
    m.quantize(c, 0.3, 0)
    flat = m.add("Reshape", m.nodes[-2].output[0] + " f", "k")
    d = m.add("MatMul", f"{m.dequantize(flat, 0.3, 0)} {m.weights('g', (56, 3), axis=1)}", "d")
    m.quantize(d, 1.0, 4)
    inputs = {"x": RANDOM.integers(-128, 128, (1, 40)).astype(np.int8)}
    graph = check(m, m.nodes[-2].output[0], tmp_path, inputs, Conv2d=2)
    assert graph.tensors[graph.inputs[0].tensor].shape == (8, 5, 1)
    assert graph.outputs[0].dtype == "int8"


def test_uint8_borders(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.dequantize("x", 0.05, 100, np.uint8)
    c = m.add("Conv", f"{x} {m.weights('w', (2, 4, 2, 2))}", "c")
    m.quantize(c, 0.1, 140, np.uint8)
    inputs = {"x": RANDOM.integers(0, 256, (1, 4, 6, 5)).astype(np.uint8)}
    graph = assert_same(finish(m, [m.nodes[-2].output[0]], tmp_path, inputs), inputs)
    assert graph.outputs[0].dtype == graph.inputs[0].dtype == "uint8"
    assert graph.tensors[graph.inputs[0].tensor].quantization == Quantization(float(np.float32(0.05)), -28)


def test_float_islands(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    m.constants["v"] = RANDOM.standard_normal((3, 4, 1, 1)).astype(np.float32)
    c = m.add("Conv", f"{x} v", "c")
    s = m.add("Softmax", c, "s", axis=1)
    y = m.quantize(s, 1 / 256, -128)
    d = m.add("Conv", f"{y} {m.weights('w', (2, 3, 2, 2))}", "d")
    graph = assert_same(finish(m, [d, y], tmp_path), {"x": IMAGE}, steps=1.01)
    assert kinds(graph) == {"Dequantize": 2, "Conv2d": 2, "Softmax": 1, "Quantize": 1}


def test_tables_fall_back_to_float(tmp_path: Path) -> None:
    """Without a quantisation between them, a product of two functions is computed in float."""
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    h = m.add("HardSigmoid", m.quantize("z", 0.03, 1), "h")
    part = m.add("Slice", f"{h} b e a", "part")
    m.constants |= {"b": np.array([0]), "e": np.array([4]), "a": np.array([1])}
    y = m.quantize(m.add("Mul", f"{x} {part}", "p"), 0.04, -100)
    inputs = {"x": IMAGE, "z": RANDOM.standard_normal((1, 5, 6, 5)).astype(np.float32)}
    check(m, y, tmp_path, inputs, Dequantize=2, Unary=1, Slice=1, Binary=1, Quantize=1)


def test_products_of_activations(tmp_path: Path) -> None:
    m = QuantizedModel()
    a, b = m.quantize("x", 0.05, 5), m.quantize("z", 0.02, 0)
    t = m.add("Transpose", b, "t", perm=[0, 2, 1])
    s = m.quantize(m.add("MatMul", f"{a} {t}", "m"), 0.2, 7)
    y = m.quantize(m.add("Softmax", s, "s", axis=-1), 1 / 256, -128)
    inputs = {
        "x": RANDOM.standard_normal((1, 6, 4)).astype(np.float32),
        "z": RANDOM.standard_normal((1, 5, 4)).astype(np.float32),
    }
    check(m, y, tmp_path, inputs, MatMul=1, Softmax=1)


def test_two_quantisations_of_one_input(tmp_path: Path) -> None:
    m = QuantizedModel()
    one, two = m.quantize("x", 0.05, 5), m.quantize("x", 0.03, 0)
    y = m.quantize(m.add("Add", f"{one} {two}", "a"), 0.1, 0)
    check(m, y, tmp_path, Quantize=2, Binary=1)


def test_one_tensor_read_with_two_meanings(tmp_path: Path) -> None:
    m = QuantizedModel()
    one, two = m.dequantize("x", 0.05, 5), m.dequantize("x", 0.02, -3)
    c = m.quantize(m.add("Conv", f"{one} {m.weights('w', (4, 4, 1, 1))}", "c"), 0.1, 0)
    d = m.quantize(m.add("Conv", f"{two} {m.weights('v', (4, 4, 1, 1))}", "d"), 0.1, 0)
    y = m.quantize(m.add("Add", f"{c} {d}", "a"), 0.1, 0)
    inputs = {"x": RANDOM.integers(-128, 128, (1, 4, 6, 5)).astype(np.int8)}
    check(m, y, tmp_path, inputs, Conv2d=2, Reshape=1, Binary=1)


def test_references_name_the_quantised_tensors(tmp_path: Path) -> None:
    m = QuantizedModel()
    c = m.add("Conv", f"{m.quantize('x', 0.05, 5)} {m.weights('w', (3, 4, 2, 2))}", "c")
    y = m.quantize(c, 0.04, 0)
    graph = load(finish(m, [y], tmp_path))
    io = graph.references["conv_0"]
    assert (io.dtype, io.shape) == ("int8", (1, 3, 5, 4))
    assert io.name.endswith("_q")
    assert sorted(io.order.tolist()) == list(range(60))
    assert outputs_of(graph, {"x": IMAGE})[y].dtype == np.float32


def test_unread_nodes_disappear(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    m.nodes.append(node("Bernoulli", x, "unused"))
    y = m.quantize(m.add("Relu", x, "r"), 0.05, 5)
    assert kinds(load(finish(m, [y], tmp_path))) == {"Lut": 1}


@pytest.mark.parametrize(
    ("op", "more", "attributes"),
    [
        ("ReduceSum", "axis", {}),
        ("ReduceMax", "", {"axes": [1]}),
        ("ReduceMax", "", {"axes": [2]}),
        ("ReduceMin", "", {"axes": [2]}),
        ("ReduceMean", "", {"axes": [1], "keepdims": 0}),
        ("Split", "", {"axis": 2}),
    ],
)
def test_a_function_of_int8_handed_on_is_computed_in_float(
    op: str, more: str, attributes: dict[str, Any], tmp_path: Path
) -> None:
    """Sigmoid is a table of stored values; a product of floats needs real ones."""
    x = RANDOM.standard_normal((1, 1, 4, 6)).astype(np.float32)
    model = QuantizedModel()
    real = model.quantize("x", 0.03, 5)
    outputs = "part rest" if op == "Split" else "part"
    constants = {"axis": np.array([1]), "w": RANDOM.standard_normal((6, 3)).astype(np.float32)}
    nodes = [
        *model.nodes,
        node("Sigmoid", real, "e"),
        node(op, f"e {more}", outputs, **attributes),
        *(node("MatMul", f"{name} w", f"{name}_y") for name in outputs.split()),
    ]
    ends = [f"{name}_y" for name in outputs.split()]
    assert_same(save(build(nodes, {"x": x}, ends, model.constants | constants), tmp_path), {"x": x})
