"""Elements by indices that are known at run time: gathered, scattered, of maxima, of regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check_against_onnx, graph_of, run_graph, run_operator
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from plain_node import check, loaded, model
from single_node import Quantized, bounded, kinds, normal, quantized_types, seeds, shapes

from mcudeploy.ir.graph import DType, Tensor
from mcudeploy.ops.move.write_rows import WriteRows

Array = NDArray[Any]
few = settings(parent=bounded, max_examples=6)


@given(shape=shapes, axis=st.integers(-3, 2), count=st.integers(1, 5), seed=seeds)
@few
def test_gather_elements(shape: tuple[int, ...], axis: int, count: int, seed: int) -> None:
    """Indices of a part of the other axes, also from the end."""
    rng = np.random.default_rng(seed)
    x = normal(rng, shape[1:])
    part = tuple(
        count if at == axis % 3 else int(rng.integers(1, size + 1)) for at, size in enumerate(x.shape)
    )
    indices = rng.integers(-x.shape[axis], x.shape[axis], part)
    for name in ("x", "c"):
        check("GatherElements", {name: x, "i": indices}, {"y": (np.float32, part)}, axis=axis)


@given(shape=shapes, depth=st.integers(1, 3), batch=st.integers(0, 1), seed=seeds)
@few
def test_gather_nd(shape: tuple[int, ...], depth: int, batch: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-(2**31), 2**31, (2, *shape[1:])).astype(np.int32)
    sizes = x.shape[batch : batch + depth]
    outer = (*x.shape[:batch], 3)
    indices = np.stack([rng.integers(-size, size, outer) for size in sizes], -1)
    result = (*outer, *x.shape[batch + depth :])
    check("GatherND", {"x": x, "i": indices}, {"y": (np.int32, result)}, batch_dims=batch)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_scatter_elements(reduction: str, dtype: type) -> None:
    """Any of the operands constant; some elements are updated several times if that has one result."""
    rng = np.random.default_rng(4)
    data, updates = (rng.integers(-9, 10, shape).astype(dtype) for shape in ((1, 5, 4), (1, 3, 4)))
    indices = np.array([rng.permutation(5)[:3] for _ in range(4)]).T[np.newaxis] - 5
    if reduction != "none":
        indices[0, 1] = indices[0, 0]
    for names in (("d", "i", "u"), ("d", "c", "u"), ("c", "i", "u"), ("d", "i", "c"), ("c", "i", "cu")):
        operands = dict(zip(names, (data, indices, updates), strict=True))
        check("ScatterElements", operands, {"y": (dtype, data.shape)}, axis=1, reduction=reduction)


@given(shape=shapes, depth=st.integers(1, 3), seed=seeds, reduction=st.sampled_from(["none", "add", "min"]))
@few
def test_scatter_nd(shape: tuple[int, ...], depth: int, seed: int, reduction: str) -> None:
    rng = np.random.default_rng(seed)
    data = normal(rng, shape[1:])
    places = rng.permutation(int(np.prod(data.shape[:depth])))[:4]
    indices = np.stack(np.unravel_index(places, data.shape[:depth]), -1) - (
        data.shape[0] if depth == 1 else 0
    )
    updates = normal(rng, (len(places), *data.shape[depth:]))
    for zeros in ("d", "c"):
        first = data if zeros == "d" else np.zeros_like(data)
        operands = {zeros: first, "i": indices.astype(np.int64), "u": updates}
        check("ScatterND", operands, {"y": (np.float32, data.shape)}, tolerance=1e-6, reduction=reduction)


def test_indices_that_are_outside_are_ignored() -> None:
    """Nothing beyond the data is touched: the sanitizers look on."""
    data, updates = np.zeros((3, 2), np.float32), np.ones((4, 2), np.float32)
    indices = np.array([[-4], [3], [2**31 - 1], [1]])
    graph = loaded(model("ScatterND", {"d": data, "i": indices, "u": updates}, {"y": (np.float32, (3, 2))}))
    arrays = {"d": data, "i": indices.astype(np.int32), "u": updates}
    values = {io.tensor: arrays[io.name].reshape(graph.tensors[io.tensor].shape) for io in graph.inputs}
    computed = run_graph(graph, values)[graph.outputs[0].tensor]
    assert computed.reshape(3, 2).tolist() == [[0, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize(("axis", "kind"), [(-1, np.float32), (0, np.int64), (1, np.float32)])
def test_one_hot(axis: int, kind: type) -> None:
    indices = np.array([[0, 4, -1, -5, 7, -6]])
    result = np.expand_dims(indices, axis % 3).shape
    shape = tuple(5 if at == axis % 3 else size for at, size in enumerate(result))
    for levels in ([0, 1], [-2, 7]):
        operands = {"i": indices, "cd": np.array(5), "cv": np.array(levels, kind)}
        check("OneHot", operands, {"y": (kind, shape)}, axis=axis)


@pytest.mark.parametrize("axis", [1, -1, None])
def test_compress(axis: int | None) -> None:
    x = normal(np.random.default_rng(1), (1, 4, 6))
    shape = {1: (1, 2, 6), -1: (1, 4, 2), None: (2,)}[axis]
    attributes = {} if axis is None else {"axis": axis}
    check(
        "Compress", {"x": x, "c": np.array([0, 1, 0, 1], np.bool_)}, {"y": (np.float32, shape)}, **attributes
    )


@given(
    shape=shapes, kernel=st.integers(1, 3), stride=st.integers(1, 3), order=st.integers(0, 1), seed=seeds,
    dtype=quantized_types,
)  # fmt: skip
@few
def test_indices_of_maxima(
    shape: tuple[int, ...], kernel: int, stride: int, order: int, seed: int, dtype: type
) -> None:
    """Of floats and of quantised values, many of them equal."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, shape).astype(np.float32)
    pads = [kernel // 2] * 4
    sizes = [(size + 2 * (kernel // 2) - kernel) // stride + 1 for size in shape[2:]]
    if min(sizes) < 1:
        return
    attributes = {
        "kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": pads, "storage_order": order,
    }  # fmt: skip
    result = (*shape[:2], *sizes)
    check("MaxPool", {"x": x}, {"y": (np.float32, result), "i": (np.int64, result)}, **attributes)
    stored = Quantized(rng.integers(0, 5, shape).astype(dtype), 0.5, 1)
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        helper.make_node("MaxPool", ["x"], ["", "i"], **attributes),
    ]
    proto = model("MaxPool", {"q": stored.values}, {"i": (np.int64, result)})
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    proto.graph.node[1].output[0] = "unused"
    constants = {"s": np.float32(0.5), "z": dtype(1)}
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(it), k) for k, it in constants.items())
    graph = check_against_onnx(proto, {"q": stored.values})
    assert kinds(graph) <= {"MaxPoolIndices", "Reshape", "Transpose"}


@pytest.mark.parametrize("quantized", [False, True])
def test_unpooling(quantized: bool) -> None:
    """A pool and its reverse, in float and on int8."""
    x = (
        np.random.default_rng(5)
        .integers(-100, 100, (1, 3, 6, 4))
        .astype(np.int8 if quantized else np.float32)
    )
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m", "i"], **attributes),
        helper.make_node("MaxUnpool", ["m", "i"], ["y"], **attributes),
    ]
    proto = model("MaxPool", {"x": x}, {"y": (x.dtype, x.shape)})
    del proto.graph.node[:]
    if quantized:
        nodes.insert(0, helper.make_node("DequantizeLinear", ["x", "cs", "cz"], ["r"]))
        nodes[1].input[0], nodes[2].output[0] = "r", "u"
        nodes.append(helper.make_node("QuantizeLinear", ["u", "cs", "cz"], ["y"]))
        constants = {"cs": np.float32(0.1), "cz": np.int8(-7)}
        proto.graph.initializer.extend(
            numpy_helper.from_array(np.asarray(it), name) for name, it in constants.items()
        )
    proto.graph.node.extend(nodes)
    graph = check_against_onnx(proto, {"x": x}, float_tolerance=0)
    assert {"MaxPool", "MaxPoolIndices", "ScatterRows"} <= kinds(graph)
    assert not kinds(graph) & {"Dequantize", "Quantize"}


@given(
    constant=st.booleans(), samples=st.integers(0, 3), half=st.booleans(), largest=st.booleans(), seed=seeds
)
@few
def test_regions(constant: bool, samples: int, half: bool, largest: bool, seed: int) -> None:
    """Inside the image, over its border, turned round, and without area."""
    rng = np.random.default_rng(seed)
    x = normal(rng, (1, 3, 7, 9))
    regions = rng.uniform(-3, 12, (4, 4)).astype(np.float32)
    regions[:2].sort(axis=1)
    regions[3, 2:] = regions[3, :2]
    operands = {"x": x, "cr" if constant else "r": regions, "cb": np.zeros(4, np.int64)}
    check(
        "RoiAlign",
        operands,
        {"y": (np.float32, (4, 3, 3, 2))},
        tolerance=1e-5,
        output_height=3,
        output_width=2,
        sampling_ratio=samples,
        spatial_scale=0.75,
        mode="max" if largest else "avg",
        coordinate_transformation_mode="half_pixel" if half else "output_half_pixel",
    )


def test_regions_of_any_bits_end() -> None:
    """Regions that are NaN, or huge, neither hang nor read other memory."""
    regions = np.array([[np.nan] * 4, [-3e38, -3e38, 3e38, 3e38], [np.inf, 0, np.inf, 1]], np.float32)
    x = np.ones((1, 1, 2, 2), np.float32)
    operands = {"x": x, "r": regions, "cb": np.zeros(3, np.int64)}
    graph = loaded(model("RoiAlign", operands, {"y": (np.float32, (3, 1, 1, 1))}))
    values = {io.tensor: operands[io.name].reshape(graph.tensors[io.tensor].shape) for io in graph.inputs}
    assert run_graph(graph, values)[graph.outputs[0].tensor].size == 3


@given(
    blocks=st.integers(1, 3),
    rows=st.integers(1, 6),
    positions=st.lists(
        st.one_of(st.integers(-8, 8), st.sampled_from([2**31 - 1, -(2**31)])), min_size=1, max_size=4
    ),
    dtype=st.sampled_from([DType.FLOAT32, DType.INT32]),
    constant=st.booleans(),
    own=st.booleans(),
    seed=seeds,
)
@bounded
def test_rows_at_positions_outside_are_not_written(
    blocks: int, rows: int, positions: list[int], dtype: DType, constant: bool, own: bool, seed: int
) -> None:
    """Negative ones count from the end. The harness refuses a write anywhere else."""
    rng, count = np.random.default_rng(seed), len(positions)
    places = np.array(positions, np.int32)
    x, state = (rng.integers(-9, 9, (1, blocks * size, 3)).astype(dtype.value) for size in (count, rows))
    tensors = [
        *([] if constant else [Tensor("at", (1, 1, count), DType.INT32)]),
        *(Tensor(name, it.shape, dtype) for name, it in (("x", x), ("state", state), ("y", state))),
    ]
    op = WriteRows(blocks, rows, constant)
    graph = graph_of(op, *tensors, constants={"positions": places} if constant else {})
    values = {"x": x, "state": state, **({} if constant else {"at": places.reshape(1, 1, count)})}
    output = run_operator(
        graph, graph.operators[0], values, seed=seed, in_place=op.continues if own else None
    )
    wanted = state.reshape(blocks, rows, 3).copy()
    for number, position in enumerate(positions):
        if -rows <= position < rows:
            wanted[:, position] = x.reshape(blocks, count, 3)[:, number]
    assert np.array_equal(output, wanted.reshape(state.shape))
