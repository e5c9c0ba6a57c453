"""Composite operators, against ONNX Runtime's own kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from harness import check_against_onnx
from onnx import TensorProto, helper
from single_node import Quantized, check_float, check_quantized, kinds, node, normal

from tests.networks.onnx_files import build


@pytest.mark.parametrize("op", ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"])
@pytest.mark.parametrize("axes", [(1,), (2, 3), (3,), None])
def test_functions_of_sums(op: str, axes: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(2)
    x = np.abs(normal(rng, (1, 3, 5, 4))) + 0.5
    constants = {} if axes is None else {"axes": np.array(axes, np.int64)}
    what = node(op, "x", *constants, constants=constants, keepdims=int(axes != (2, 3)))
    check_float(what, {"x": x}, float_tolerance=1e-4)


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_functions_of_any_number_of_values(op: str, count: int) -> None:
    rng = np.random.default_rng(count)
    inputs = {f"x{number}": normal(rng, (1, 3, 4, 5)) for number in range(count)}
    check_float(node(op, *inputs), inputs)


@pytest.mark.parametrize("op", ["Max", "Min", "Pow", "PRelu", "Mod"])
@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (3, 1, 1), (1, 1, 1)])
def test_functions_of_two_values(op: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    x, y = normal(rng, (1, 3, 4, 5)), normal(rng, shape)
    if op in ("Pow", "Mod"):
        x, y = np.abs(x) + 0.1, np.abs(y) + 0.5
    attributes = {"fmod": 1} if op == "Mod" else {}
    if op != "PRelu":
        check_float(node(op, "x", "y", **attributes), {"x": x, "y": y})
    check_float(node(op, "x", "y", constants={"y": y}, **attributes), {"x": x})
    if op in ("Max", "Min"):
        check_quantized(
            node(op, "x", "y"),
            {"x": Quantized.draw(rng, x.shape, np.int8), "y": Quantized.draw(rng, y.shape, np.int8)},
        )


@pytest.mark.parametrize("op", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"])
@pytest.mark.parametrize("other", ["computed", "constant"])
def test_what_is_chosen_by_a_comparison(op: str, other: str) -> None:
    rng = np.random.default_rng(5)
    inputs = {name: np.rint(2 * normal(rng, (1, 3, 4, 5))) for name in ("a", "b")}
    constants = {"c": normal(rng, (1, 1, 5))} if other == "constant" else {}
    inputs |= {} if constants else {"c": normal(rng, (1, 3, 4, 5))}
    check_nodes(
        [
            helper.make_node(op, ["a", "b"], ["chosen"], name="compare"),
            helper.make_node("Where", ["chosen", "a", "c"], ["out"], name="where"),
        ],
        inputs,
        constants,
    )


def test_logic() -> None:
    rng = np.random.default_rng(6)
    inputs = {name: normal(rng, (1, 3, 4, 5)) for name in ("a", "b", "c")}
    nodes = [
        helper.make_node("Less", ["a", "b"], ["p"], name="p"),
        helper.make_node("Less", ["b", "c"], ["q"], name="q"),
        helper.make_node("And", ["p", "q"], ["r"], name="r"),
        helper.make_node("Or", ["p", "r"], ["s"], name="s"),
        helper.make_node("Xor", ["s", "q"], ["t"], name="t"),
        helper.make_node("Not", ["t"], ["u"], name="u"),
        helper.make_node("Where", ["u", "a", "c"], ["out"], name="where"),
    ]
    check_nodes(nodes, inputs, {})


@pytest.mark.parametrize("limit", [-100, 100])
def test_both_branches_of_a_computed_condition(limit: float) -> None:
    then = helper.make_node("Relu", ["a"], ["t"], name="relu")
    other = helper.make_node("Mul", ["a", "k"], ["t"], name="product")
    value = helper.make_tensor_value_info("t", TensorProto.FLOAT, None)
    taken, left = (helper.make_graph([each], "branch", [], [value]) for each in (then, other))
    nodes = [
        helper.make_node("ReduceMax", ["a"], ["most"], name="most", keepdims=1),
        helper.make_node("Less", ["most", "limit"], ["low"], name="low"),
        helper.make_node("If", ["low"], ["out"], name="if", then_branch=taken, else_branch=left),
    ]
    constants = {"limit": np.float32(limit), "k": np.float32(0.25)}
    check_nodes(nodes, {"a": normal(np.random.default_rng(8), (1, 3, 4, 5))}, constants)


def test_a_constant_mask() -> None:
    rng = np.random.default_rng(7)
    mask = np.tril(np.ones((4, 4), np.bool_))
    node_of = helper.make_node("Where", ["mask", "a", "low"], ["out"], name="where")
    constants = {"mask": mask, "low": np.array(-1e9, np.float32)}
    check_nodes([node_of], {"a": normal(rng, (1, 3, 4, 4))}, constants)


def check_nodes(
    nodes: list[onnx.NodeProto], inputs: dict[str, np.ndarray], constants: dict[str, np.ndarray]
) -> None:
    """Nodes of float inputs, all of the shape of `out`, against ONNX Runtime."""
    shape = next(iter(inputs.values())).shape
    model = build(
        nodes,
        {name: (np.float32, array.shape) for name, array in inputs.items()},
        {"out": (np.float32, shape)},
        constants,
    )
    check_against_onnx(model, inputs)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_log_softmax(axis: int) -> None:
    x = 5 * normal(np.random.default_rng(axis), (1, 4, 3, 5))
    check_float(node("LogSoftmax", "x", axis=axis), {"x": x}, float_tolerance=1e-4)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("DepthToSpace", {"blocksize": 2}),
        ("DepthToSpace", {"blocksize": 2, "mode": "CRD"}),
        ("SpaceToDepth", {"blocksize": 2}),
    ],
)
def test_blocks_of_pixels(op: str, attributes: dict[str, Any]) -> None:
    x = normal(np.random.default_rng(0), (1, 8, 4, 6))
    check_float(node(op, "x", **attributes), {"x": x})


_TRANSPOSED = pytest.mark.parametrize(
    ("kernel", "attributes"),
    [
        ((3, 3), {}),
        ((3, 3), {"strides": [2, 2]}),
        ((2, 2), {"strides": [2, 2]}),
        ((4, 3), {"strides": [2, 3], "pads": [1, 1, 1, 0]}),
        ((3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        ((3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        ((3, 4), {"strides": [3, 2], "output_shape": [13, 12]}),
        ((1, 1), {"strides": [2, 2]}),
        ((3, 3), {"strides": [2, 2], "group": 2}),
        ((5,), {"strides": [3]}),
        ((2,), {"strides": [2]}),
    ],
)


@_TRANSPOSED
def test_transposed_convolution(kernel: tuple[int, ...], attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    constants = {"w": normal(rng, (4, 3, *kernel)), "b": normal(rng, (3 * attributes.get("group", 1),))}
    x = normal(rng, (1, 4, *(5, 6)[: len(kernel)]))
    graph = check_float(node("ConvTranspose", "x", "w", "b", constants=constants, **attributes), {"x": x})
    assert "Conv2d" in kinds(graph)
    check_float(node("ConvTranspose", "x", "w", constants={"w": constants["w"]}, **attributes), {"x": x})


@pytest.mark.parametrize(
    ("kernel", "attributes"),
    [
        ((3, 2), {"dilations": [2, 1], "pads": [4, 1, 4, 0]}),
        ((3, 3), {"dilations": [3, 2], "strides": [2, 1], "pads": [4, 0, 3, 1], "group": 2}),
        ((3,), {"dilations": [3], "strides": [2], "auto_pad": "SAME_UPPER"}),
    ],
)
def test_transposed_convolution_with_dilations(kernel: tuple[int, ...], attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    x = normal(rng, (1, 4, *(5, 6)[: len(kernel)]))
    constants = {"w": normal(rng, (4, 3, *kernel))}
    check_float(node("ConvTranspose", "x", "w", constants=constants, **attributes), {"x": x})


def test_a_transposed_convolution_computes_no_row_of_its_padding() -> None:
    """With stride 1 it is one convolution, whose padding is what the pads leave."""
    rng = np.random.default_rng(8)
    constants = {"w": normal(rng, (4, 1, 3, 3))}
    attributes = {"group": 4, "dilations": [2, 1], "pads": [4, 1, 4, 1]}
    graph = check_float(
        node("ConvTranspose", "x", "w", constants=constants, **attributes),
        {"x": normal(rng, (1, 4, 5, 9))},
    )
    assert [operator.op.kind for operator in graph.operators] == ["Conv2d"]


@_TRANSPOSED
@pytest.mark.parametrize("clips", [False, True])
def test_transposed_convolution_of_integers(
    kernel: tuple[int, ...], attributes: dict[str, Any], clips: bool
) -> None:
    """Weights of 8 bits stay integers, also if a Relu and a Slice stand before the quantisation."""
    rng = np.random.default_rng(9)
    x = Quantized.draw(rng, (1, 4, *(5, 6)[: len(kernel)]), np.int8)
    weights = rng.integers(-127, 128, (4, 3, *kernel)).astype(np.int8)
    scales = rng.uniform(0.002, 0.02, 3).astype(np.float32)
    bias = normal(rng, (3 * attributes.get("group", 1),))
    zero = np.zeros(3, np.int8)
    nodes = [
        helper.make_node("DequantizeLinear", ["w_q", "w_s", "w_z"], ["w"], axis=1),
        helper.make_node("DequantizeLinear", ["x", "x_s", "x_z"], ["real"]),
        helper.make_node("ConvTranspose", ["real", "w", "b"], ["up"], **attributes),
        *([helper.make_node("Relu", ["up"], ["clipped"])] if clips else []),
        helper.make_node("QuantizeLinear", ["clipped" if clips else "up", "y_s", "y_z"], ["y"]),
    ]
    constants = {"w_q": weights, "w_s": scales, "w_z": zero, "b": bias, "x_s": np.float32(x.scale)}
    constants |= {"x_z": np.int8(x.zero_point), "y_s": np.float32(0.05), "y_z": np.int8(-3)}
    model = build(nodes, {"x": (np.int8, x.values.shape)}, {"y": (np.int8, None)}, constants)
    lowered = check_against_onnx(model, {"x": x.values}, equal_share=0.99)
    assert {"Quantize", "Dequantize"}.isdisjoint(kinds(lowered)) and "Conv2d" in kinds(lowered)


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("order", ["cx", "xc", "cxc", "cxyc"])
def test_constants_beside_activations(axis: int, order: str) -> None:
    rng = np.random.default_rng(4)
    shape = [1, 3, 4, 5]
    names, constants, inputs = list[str](), dict[str, np.ndarray](), dict[str, np.ndarray]()
    for number, letter in enumerate(order):
        own = tuple(2 if place == axis and letter == "c" else size for place, size in enumerate(shape))
        names.append(f"{letter}{number}")
        (constants if letter == "c" else inputs)[names[-1]] = normal(rng, own)
    graph = check_float(node("Concat", *names, constants=constants, axis=axis), inputs)
    assert "Pad" in kinds(graph)


@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (2, 3, 4, 5), (1, 6)])
def test_padding_of_the_batch(shape: tuple[int, ...]) -> None:
    pads = np.zeros(2 * len(shape), np.int64)
    pads[0], pads[len(shape)], pads[-1] = 1, 2, 1
    what = node("Pad", "x", "pads", constants={"pads": pads})
    check_float(what, {"x": normal(np.random.default_rng(2), shape)})


def test_an_empty_operand_of_concat_is_left_out() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> empty (float[1,4,5,6] x) => (float[1,4,5,6] y)'
        "<int64[1] zero = {0}, int64[1] axis = {3}>"
        "{ none = Slice(x, zero, zero, axis) there = Neg(none) y = Concat<axis = 3>(x, there) }"
    )
    check_against_onnx(model, {"x": normal(np.random.default_rng(2), (1, 4, 5, 6))})


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"p": 1, "strides": [2, 2]},
        {"p": 3, "pads": [1, 0, 1, 1]},
        {"auto_pad": "SAME_LOWER"},
        {"auto_pad": "SAME_UPPER", "strides": [2, 1]},
        {"strides": [2, 2], "ceil_mode": 1},
        {"dilations": [2, 1]},
    ],
)
def test_norms_of_windows(attributes: dict[str, Any]) -> None:
    inputs = {"x": normal(np.random.default_rng(9), (1, 3, 6, 7))}
    check_float(node("LpPool", "x", kernel_shape=[3, 2], **attributes), inputs)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_norms_of_images(p: int) -> None:
    check_float(node("GlobalLpPool", "x", p=p), {"x": normal(np.random.default_rng(10), (1, 3, 4, 5))})


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("diagonal", [None, -2, 1, 9])
def test_triangles_cut_infinities(upper: int, diagonal: int | None) -> None:
    x = normal(np.random.default_rng(0), (1, 3, 4, 5))
    kept = (np.triu if upper else np.tril)(np.ones((4, 5), np.bool_), diagonal or 0)
    x[..., ~kept] = np.inf
    constants = {} if diagonal is None else {"k": np.array(diagonal, np.int64)}
    check_float(node("Trilu", "x", *constants, constants=constants, upper=upper), {"x": x}, float_tolerance=0)


def test_a_centre_is_cut_out_and_padded() -> None:
    sizes = {"sizes": np.array([7, 2], np.int64)}
    what = node("CenterCropPad", "x", "sizes", constants=sizes, axes=[-2, -1])
    graph = check_float(what, {"x": normal(np.random.default_rng(0), (1, 3, 4, 5))}, float_tolerance=0)
    assert kinds(graph) == {"Pad"}


@pytest.mark.parametrize(
    ("op", "indices", "updates", "attributes"),
    [
        ("ScatterElements", [[0, 3, -1], [1, 0, 0]], (2, 3), {"axis": 0}),
        ("ScatterElements", [[1], [2], [0]], (3, 1), {"axis": -1}),
        ("ScatterND", [[1, 2], [3, 0], [0, -1]], (3,), {}),
        ("ScatterND", [[2], [0]], (2, 3), {}),
    ],
)
def test_scattered_updates(
    op: str, indices: list[list[int]], updates: tuple[int, ...], attributes: dict[str, int]
) -> None:
    rng = np.random.default_rng(0)
    inputs = {"x": normal(rng, (4, 3)), "u": normal(rng, updates)}
    what = node(op, "x", "i", "u", constants={"i": np.array(indices, np.int64)}, **attributes)
    check_float(what, inputs, float_tolerance=0)
    check_float(
        node(op, "x", "i", "u", constants={"i": what.constants["i"], "u": inputs["u"]}, **attributes),
        {"x": inputs["x"]},
        float_tolerance=0,
    )
