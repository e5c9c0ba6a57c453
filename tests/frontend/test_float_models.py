"""Float models: the graph computes what ONNX Runtime does, without superfluous operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate import assert_same, kinds

from tests.networks.onnx_files import build, node, save

RANDOM = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def integers(*values: int) -> Any:
    return np.array(values, np.int64)


X = floats(1, 4, 6, 5)
W = floats(3, 4, 3, 3)
W1 = floats(6, 4, 3)
V = floats(1, 12)
T = floats(1, 7, 8)
HEADS = floats(1, 2, 5, 3)

# name, nodes, inputs, constants, kinds of operators, opset unless it is 17
CASES: list[tuple[Any, ...]] = [
    (
        "conv_relu",
        [node("Conv", "x w b", "c", pads=[1, 0, 1, 2], strides=[2, 1]), node("Relu", "c", "y")],
        {"x": X},
        {"w": W, "b": floats(3)},
        {"Conv2d": 1},
    ),
    (
        "sum_with_a_computed_constant",
        [node("Neg", "c", "k"), node("Add", "x k", "y")],
        {"x": X},
        {"c": floats(*X.shape)},
        {"Binary": 1},
    ),
    *(
        (
            f"conv_{mode}",
            [node("Conv", "x w", "y", auto_pad=mode, strides=[2, 3])],
            {"x": X},
            {"w": W},
            {"Conv2d": 1},
            17,
        )
        for mode in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ),
    *(
        (
            f"{op}_of_a_constant",
            [node(op, inputs, "k", **attributes), node("Mul", "x k", "y")],
            {"x": floats(1, 3, 4, 3)},
            {"c": X, "w": W} if op == "Conv" else {"c": X[:, :3]},
            {"Binary": 1},
            17,
        )
        for op, inputs, attributes in (
            ("Conv", "c w", {}),
            ("MaxPool", "c", {"kernel_shape": [3, 3]}),
        )
    ),
    (
        "first_state",
        [
            node("Conv", "h w", "k", pads=[1] * 4),
            node("Conv", "x w", "c", pads=[1] * 4),
            node("Add", "k c", "y"),
        ],
        {"x": X},
        {"h": 0 * X, "w": W},
        {"Conv2d": 1},
    ),
    (
        "conv_groups_clip",
        [node("Conv", "x w", "c", group=2), node("Clip", "c lo hi", "y")],
        {"x": X},
        {"w": floats(6, 2, 2, 2), "lo": np.float32(-0.5), "hi": np.float32(0.7)},
        {"Conv2d": 1},
    ),
    (
        "conv_1d",
        [node("Conv", "x w b", "y", pads=[2, 1], strides=[2], dilations=[2])],
        {"x": floats(1, 4, 11)},
        {"w": W1, "b": floats(6)},
        {"Conv2d": 1},
    ),
    (
        "conv_affine_folds",
        [
            node("Conv", "x w b", "c"),
            node("BatchNormalization", "c g o m v", "n"),
            node("Mul", "n k", "s"),
            node("Sub", "l s", "t"),
            node("LeakyRelu", "t", "y", alpha=0.2),
        ],
        {"x": X},
        {
            "w": W,
            "b": floats(3),
            "g": floats(3),
            "o": floats(3),
            "m": floats(3),
            "v": np.abs(floats(3)),
            "k": floats(3, 1, 1),
            "l": floats(1, 3, 1, 1),
        },
        {"Conv2d": 1, "Unary": 1},
    ),
    (
        "batch_normalization_alone",
        [node("Relu", "x", "r"), node("BatchNormalization", "r g o m v", "y")],
        {"x": X},
        {"g": floats(4), "o": floats(4), "m": floats(4), "v": np.abs(floats(4))},
        {"Unary": 1, "Conv2d": 1},
    ),
    (
        "flatten_gemm",
        [
            node("Conv", "x w", "c"),
            node("Flatten", "c", "f"),
            node("Gemm", "f g b", "y", transB=1, alpha=0.5, beta=2.0),
        ],
        {"x": X},
        {"w": W, "g": floats(5, 36), "b": floats(5)},
        {"Conv2d": 2},
    ),
    (
        "gemm_without_its_third_matrix",
        [node("Relu", "v", "r"), node("Gemm", "v g r", "y", beta=0.0)],
        {"v": V},
        {"g": floats(12, 12)},
        {"Conv2d": 1},
    ),
    (
        "gemm_of_only_its_third_matrix",
        [node("Gemm", "v g b", "y", alpha=0.0, beta=2.0)],
        {"v": V},
        {"g": floats(12, 5), "b": floats(1, 5)},
        {"Conv2d": 1},
    ),
    (
        "nhwc_input",
        [
            node("Transpose", "x", "t", perm=[0, 3, 1, 2]),
            node("Conv", "t w", "c"),
            node("Transpose", "c", "u", perm=[0, 2, 3, 1]),
            node("Reshape", "u s", "r"),
            node("MatMul", "r g", "m"),
            node("Add", "m b", "y"),
        ],
        {"x": floats(1, 6, 5, 4)},
        {"w": W, "s": integers(-1, 36), "g": floats(36, 2), "b": floats(2)},
        {"Conv2d": 2},
    ),
    (
        "matmul_tokens",
        [node("MatMul", "x w", "m"), node("Add", "m b", "a"), node("Relu", "a", "y")],
        {"x": T},
        {"w": floats(8, 3), "b": floats(3)},
        {"Conv2d": 1},
    ),
    (
        "matmul_constant_left",
        [node("MatMul", "w x", "m"), node("Add", "m b", "y")],
        {"x": T},
        {"w": floats(3, 7), "b": floats(3, 1)},
        {"Transpose": 1, "Conv2d": 1},
    ),
    (
        "attention",
        [
            node("MatMul", "x wq", "q0"),
            node("Reshape", "q0 s", "q1"),
            node("Transpose", "q1", "q", perm=[0, 2, 1, 3]),
            node("MatMul", "x wk", "k0"),
            node("Reshape", "k0 s", "k1"),
            node("Transpose", "k1", "k", perm=[0, 2, 3, 1]),
            node("MatMul", "q k", "a0"),
            node("Div", "a0 d", "a1"),
            node("Softmax", "a1", "a", axis=-1),
            node("MatMul", "a q", "o0"),
            node("Transpose", "o0", "o1", perm=[0, 2, 1, 3]),
            node("Reshape", "o1 u", "y"),
        ],
        {"x": T},
        {
            "wq": floats(8, 8),
            "wk": floats(8, 8),
            "s": integers(1, 7, 2, 4),
            "d": np.float32(2),
            "u": integers(0, 0, -1),
        },
        {"Conv2d": 2, "Reshape": 2, "MatMul": 2, "Binary": 1, "Softmax": 1},
    ),
    (
        "pools",
        [
            node("MaxPool", "x", "m", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], ceil_mode=1),
            node("AveragePool", "m", "a", kernel_shape=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1),
            node("AveragePool", "a", "b", kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
            node("GlobalAveragePool", "b", "y"),
            node("GlobalMaxPool", "b", "z"),
        ],
        {"x": X},
        {},
        {"MaxPool": 2, "AveragePool": 3},
    ),
    (
        "pool_1d",
        [
            node("MaxPool", "x", "m", kernel_shape=[3], dilations=[2]),
            node("AveragePool", "m", "y", kernel_shape=[2]),
        ],
        {"x": floats(1, 3, 12)},
        {},
        {"MaxPool": 1, "AveragePool": 1},
    ),
    *(
        (
            f"reduce_mean_{'_'.join(map(str, axes))}_{keep}",
            [node("Conv", "x w", "c"), node("ReduceMean", "c", "y", axes=list(axes), keepdims=keep)],
            {"x": X},
            {"w": W},
            {"Conv2d": 1, ("Reduce" if 1 in axes or -3 in axes else "AveragePool"): 1},
            13,
        )
        for axes in ((2, 3), (1,), (2,), (-1,), (1, 2, 3), (1, 3), (-3, 2))
        for keep in (0, 1)
    ),
    (
        "reduce_mean_input_axes",
        [node("ReduceMean", "x axes", "y", keepdims=0)],
        {"x": T},
        {"axes": integers(1)},
        {"AveragePool": 1},
        18,
    ),
    *(
        (
            f"softmax_{axis}",
            [node("Relu", "x", "r"), node("Softmax", "r", "y", axis=axis)],
            {"x": X},
            {},
            {"Unary": 1, "Softmax": 1},
            17,
        )
        for axis in (1, 2, -1)
    ),
    (
        "softmax_flattened",
        [node("Conv", "x w", "c"), node("Reshape", "c s", "r"), node("Softmax", "r", "y", axis=-1)],
        {"x": X},
        {"w": W, "s": integers(1, 3, 12)},
        {"Conv2d": 1, "Reshape": 1, "Softmax": 1},
    ),
    *(
        (
            f"concat_{axis}",
            [node("Conv", "x w", "c"), node("Relu", "c", "r"), node("Concat", "c r", "y", axis=axis)],
            {"x": X},
            {"w": W},
            {"Conv2d": 1, "Unary": 1, "Concat": 1},
            17,
        )
        for axis in (1, 2, -1)
    ),
    (
        "squeeze_and_excite",
        [
            node("Conv", "x w", "c"),
            node("ReduceMean", "c", "m", axes=[2, 3]),
            node("Conv", "m v", "d"),
            node("HardSigmoid", "d", "h", alpha=0.25),
            node("Mul", "c h", "y"),
        ],
        {"x": X},
        {"w": W, "v": floats(3, 3, 1, 1)},
        {"Conv2d": 2, "AveragePool": 1, "Unary": 1, "Binary": 1},
    ),
    (
        "broadcasting",
        [
            node("Add", "x p", "a"),
            node("Mul", "r a", "b"),
            node("Div", "b s", "c"),
            node("Sub", "one c", "y"),
        ],
        {"x": X, "r": floats(6, 1)},
        {"p": floats(1, 6, 5), "s": np.abs(floats(4, 1, 5)) + 1, "one": np.float32(1)},
        {"Binary": 4},
    ),
    (
        "outer_sum",
        [node("Add", "x z", "y")],
        {"x": floats(1, 3, 1, 1), "z": floats(1, 1, 4, 2)},
        {},
        {"Binary": 1},
    ),
    (
        "operands_laid_out_differently",
        [node("Conv", "x w", "c"), node("Transpose", "z", "t", perm=[0, 2, 1, 3]), node("Add", "c t", "y")],
        {"x": X, "z": floats(1, 4, 3, 3)},
        {"w": W},
        {"Conv2d": 1, "Transpose": 1, "Binary": 1},
    ),
    (
        "slices",
        [
            node("Conv", "x w", "c"),
            node("Slice", "c b e a s", "p"),
            node("Slice", "c b2 e2 a2 s2", "q"),
            node("Add", "p q", "y"),
        ],
        {"x": floats(1, 4, 8, 7)},
        {
            "w": W,
            "b": integers(0, 1),
            "e": integers(99, -1),
            "a": integers(1, 2),
            "s": integers(2, 1),
            "b2": integers(-1, 4),
            "e2": integers(-99, 0),
            "a2": integers(1, -2),
            "s2": integers(-2, -1),
        },
        {"Conv2d": 1, "Slice": 2, "Binary": 1},
    ),
    (
        "split_and_gather",
        [node("Split", "x", "p q", axis=1), node("Gather", "q k", "g", axis=2), node("Relu", "p", "y")],
        {"x": floats(1, 4, 5, 6)},
        {"k": integers(1, 3)},
        {"Slice": 3, "Unary": 1},
    ),
    (
        "pads",
        [node("Relu", "x", "r"), node("Pad", "r p v", "q"), node("Pad", "q p2", "y")],
        {"x": X},
        {
            "p": integers(0, 1, 0, 2, 0, 0, 1, 0),
            "v": np.float32(1.5),
            "p2": integers(0, 0, -1, 0, 0, 0, 0, -2),
        },
        {"Unary": 1, "Pad": 2},
    ),
    (
        "pad_into_windows",
        [
            node("Pad", "x p", "q"),
            node("Conv", "q w", "c", pads=[1, 0, 0, 0]),
            node("Pad", "c p", "d"),
            node("AveragePool", "d", "y", kernel_shape=[2, 2]),
        ],
        {"x": X},
        {"p": integers(0, 0, 1, 2, 0, 0, 0, 1), "w": W},
        {"Conv2d": 1, "AveragePool": 1},
    ),
    (
        "pad_kept_for_other_readers",
        [node("Pad", "x p", "q"), node("Conv", "q w", "c"), node("Relu", "q", "y")],
        {"x": X},
        {"p": integers(0, 0, 1, 2, 0, 0, 0, 1), "w": W},
        {"Pad": 1, "Unary": 1, "Conv2d": 1},
    ),
    *(
        (
            f"resize_{mode}_{coordinates}",
            [
                node(
                    "Resize",
                    "x - k",
                    "y",
                    mode=mode,
                    coordinate_transformation_mode=coordinates,
                    nearest_mode="floor",
                )
            ],
            {"x": X},
            {"k": np.array([1, 1, 2, 2 if coordinates == "align_corners" else 1.5], np.float32)},
            {"Resize": 1},
            17,
        )
        for mode in ("nearest", "linear")
        for coordinates in ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel")
    ),
    (
        "resize_to_sizes",
        [node("Resize", "x - - k", "y", mode="linear")],
        {"x": X},
        {"k": integers(1, 4, 9, 4)},
        {"Resize": 1},
    ),
    ("view_alone", [node("Flatten", "x", "y"), node("Identity", "x", "z")], {"x": V}, {}, {"Slice": 1}),
    (
        "shape_chain_folds",
        [
            node("Conv", "x w", "c"),
            node("Shape", "c", "s"),
            node("Gather", "s first", "n"),
            node("Unsqueeze", "n zero", "u"),
            node("Concat", "u minus", "t", axis=0),
            node("Reshape", "c t", "y"),
        ],
        {"x": X},
        {"w": W, "zero": integers(0), "minus": integers(-1), "first": np.array(0)},
        {"Conv2d": 1, "Transpose": 1},
    ),
    (
        "shared_activation_is_not_fused",
        [node("Conv", "x w", "c"), node("Relu", "c", "y"), node("Sigmoid", "c", "z")],
        {"x": X},
        {"w": W},
        {"Conv2d": 1, "Unary": 2},
    ),
    (
        "activations",
        [
            node("Sigmoid", "x", "a"),
            node("Tanh", "a", "b"),
            node("HardSwish", "b", "c"),
            node("Identity", "c", "d"),
            node("Dropout", "d", "e"),
            node("LeakyRelu", "e", "y"),
        ],
        {"x": V},
        {},
        {"Unary": 4},
    ),
    (
        "dropout_makes_an_output",
        [node("Relu", "x", "a"), node("Dropout", "a - off", "y g_unused")],
        {"x": V},
        {"off": np.array(False)},
        {"Unary": 1},
    ),
    (
        "unsqueeze_conv_squeeze",
        [node("Unsqueeze", "x two", "u"), node("Conv", "u w", "c"), node("Squeeze", "c two", "y")],
        {"x": floats(1, 4, 9)},
        {"two": integers(2), "w": floats(3, 4, 1, 3)},
        {"Conv2d": 1},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_means_the_same(case: tuple[Any, ...], tmp_path: Path) -> None:
    _, nodes, inputs, constants, operators, *opset = case
    outputs = [name for item in nodes for name in item.output]
    read = {name for item in nodes for name in item.input}
    ends = [name for name in outputs if name not in read and name != "g_unused"]
    path = save(build(nodes, inputs, ends, constants, *opset), tmp_path)
    graph = assert_same(path, inputs)
    assert kinds(graph) == operators


def test_opset_21_and_symbolic_batch(tmp_path: Path) -> None:
    model = build([node("Conv", "x w", "c"), node("Relu", "c", "y")], {"x": X}, ["y"], {"w": W}, 21)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    graph = assert_same(save(model, tmp_path), {"x": X})
    assert graph.inputs[0].shape == (1, 4, 6, 5)
    (note,) = graph.notes
    assert "input 'x': dimension 0 (batch) is open and taken as a batch of 1" in note


def test_heads_keep_their_order(tmp_path: Path) -> None:
    path = save(build([node("MatMul", "x z", "y")], {"x": HEADS, "z": floats(1, 2, 3, 5)}, ["y"]), tmp_path)
    graph = assert_same(path, {"x": HEADS, "z": floats(1, 2, 3, 5)})
    assert kinds(graph) == {"MatMul": 1}
    assert graph.tensors[graph.inputs[0].tensor].shape == (2, 5, 3)
