"""Batches of images: each image is computed as a single image, with shared weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from evaluate import assert_same, kinds

from mcudeploy.ir.graph import DType
from tests.networks.onnx_files import Array, QuantizedModel, build, node, save

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((3, 2, 6, 6)).astype(np.float32)


def weights(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_a_network_of_images(tmp_path: Path) -> None:
    """One of its outputs is in the middle if all images are put together."""
    nodes = [
        node("Conv", "x w b", "c", pads=[1] * 4),
        node("BatchNormalization", "c b b b v", "n"),
        node("Relu", "n", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Add", "p k", "a"),
        node("Concat", "a p", "d", axis=1),
        node("GlobalAveragePool", "d", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f m", "e", transB=1),
        node("Softmax", "e", "y"),
    ]
    constants = {
        "w": weights(4, 2, 3, 3),
        "b": weights(4),
        "v": np.ones(4, np.float32),
        "k": weights(4, 1, 1),
        "m": weights(5, 8),
    }
    graph = assert_same(save(build(nodes, {"x": X}, ["y", "p"], constants), tmp_path), {"x": X})
    assert kinds(graph)["Conv2d"] == 2 * len(X)
    kernels = [op.constants["weights"] for op in graph.operators if op.name.startswith("conv")]
    assert len({array.tobytes() for array in kernels}) == 2
    parts = [io for io in graph.references.values() if io.name == "p" and -1 in io.order]
    assert len(parts) == len(X)


def test_integers_stay_integers(tmp_path: Path) -> None:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    w = m.stored(
        "w", RANDOM.integers(-90, 90, (4, 2, 3, 3)).astype(np.int8), np.array(0.01, np.float32), None
    )
    first = m.quantize(m.add("Relu", m.add("Conv", f"{x} {w}", "c"), "r"), 0.1, -3)
    y = m.quantize(m.add("MaxPool", first, "p", kernel_shape=[2, 2]), 0.1, -3)
    graph = assert_same(save(build(m.nodes, {"x": X}, [y], m.constants), tmp_path), {"x": X})
    assert {tensor.dtype for tensor in graph.tensors.values()} == {DType.INT8}


@pytest.mark.parametrize(
    ("item", "constants"),
    [
        (node("Softmax", "c", "y", axis=0), {}),
        (node("Add", "c k", "y"), {"k": weights(3, 4, 1, 1)}),
        (node("ReduceMean", "c", "y", axes=[1]), {}),
        (node("Transpose", "c", "y", perm=[1, 0, 2, 3]), {}),
        (node("Resize", "c - - k", "y"), {"k": np.array([3, 4, 8, 8])}),
        (node("Resize", "c - s", "y"), {"s": np.array([1, 1, 2, 2], np.float32)}),
        (node("Pad", "c k", "y"), {"k": np.array([0, 0, 1, 1, 0, 0, 1, 0])}),
        (node("Slice", "c k e a", "y"), {"k": np.array([1]), "e": np.array([3]), "a": np.array([2])}),
        (node("Slice", "c k e", "y"), {"k": np.array([1]), "e": np.array([3])}),
        (node("MatMul", "c k", "y"), {"k": weights(4, 5)}),
    ],
)
def test_what_comes_after_a_convolution(
    item: onnx.NodeProto, constants: dict[str, Array], tmp_path: Path
) -> None:
    """Batches are split by entry if the operator works on each entry alone, else computed together."""
    model = build([node("Conv", "x w", "c"), item], {"x": X}, ["y"], {"w": weights(4, 2, 3, 3), **constants})
    assert_same(save(model, tmp_path), {"x": X})


def test_a_transposed_convolution(tmp_path: Path) -> None:
    model = build(
        [node("ConvTranspose", "x w", "y", strides=[2, 2])], {"x": X}, ["y"], {"w": weights(2, 3, 3, 3)}
    )
    assert_same(save(model, tmp_path), {"x": X})


def test_an_input_left_out_is_not_an_output_left_out(tmp_path: Path) -> None:
    """Both nodes have the empty name."""
    pool = node("MaxPool", "x", "p", kernel_shape=[2, 2])
    pool.output.append("")
    nodes = [pool, node("Resize", "p - s", "y")]
    scales = np.array([1, 1, 2, 2], np.float32)
    path = save(build(nodes, {"x": X}, ["y"], {"s": scales}), tmp_path)
    assert kinds(assert_same(path, {"x": X}))["Resize"] == 3
