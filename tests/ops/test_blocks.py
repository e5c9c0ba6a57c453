"""Weights of few bits with a scale for each block: they stay packed, and are multiplied as they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from harness import check_against_onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from single_node import Array, bounded, normal, seeds

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.constants import dequantized
from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import ArrayPointer, KernelCall
from mcudeploy.ops.matrix.block_weights import BlockDense
from mcudeploy.ops.move.columns import column_alignment, part_of
from tests.networks.decoder import Sizes, decoder
from tests.networks.onnx_files import build, node
from tests.networks.packed import packed


def call_of(graph: Graph, operator: Operator) -> KernelCall:
    return operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors[operator.output])


def only(graph: Graph, kind: str) -> Operator:
    (operator,) = (it for it in graph.operators if not it.op.is_view)
    assert operator.op.kind == kind
    return operator


def weight_bytes(call: KernelCall) -> int:
    array: Any = call.params["weights"]
    return int(array.nbytes)


def nbits(x: Array, bits: int, block: int, columns: int, zeros: str, seed: int) -> onnx.ModelProto:
    """MatMulNBits of x [..., K] by random weights."""
    rng, depth = np.random.default_rng(seed), x.shape[-1]
    blocks = -(-depth // block)
    constants: dict[str, Array] = {
        "w": rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8),
        "s": rng.uniform(0.01, 0.1, columns * blocks).astype(np.float32),
    }
    if zeros == "packed":
        constants["z"] = rng.integers(0, 256, columns * -(-blocks * bits // 8)).astype(np.uint8)
    if zeros == "float":
        constants["z"] = rng.uniform(6, 9, columns * blocks).astype(np.float32)
    sizes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    read = ["x", "w", "s", *(["z"] if "z" in constants else [])]
    item = helper.make_node("MatMulNBits", read, ["y"], "product", domain="com.microsoft", **sizes)
    return build([item], {"x": x}, {"y": (np.float32, [*x.shape[:-1], columns])}, constants)


@given(
    rows=st.sampled_from([(1,), (1, 1), (3,), (1, 6), (2, 9)]),
    depth=st.integers(17, 150),
    columns=st.integers(1, 19),
    bits=st.sampled_from([4, 4, 8, 2]),
    block=st.sampled_from([16, 32, 64]),
    zeros=st.sampled_from(["none", "packed"]),
    seed=seeds,
)
@bounded
def test_products(
    rows: tuple[int, ...], depth: int, columns: int, bits: int, block: int, zeros: str, seed: int
) -> None:
    """Depths end within a block, and channels within a group of four."""
    x = normal(np.random.default_rng(seed), (*rows, depth))
    graph = check_against_onnx(nbits(x, bits, block, columns, zeros, seed), {"x": x}, seed=seed)
    if depth <= block:
        return
    operator = only(graph, "BlockDense")
    words = -(-depth * bits // 8)
    assert weight_bytes(call_of(graph, operator)) == 4 * -(-columns // 4) * words
    assert operator.op.block == block  # type: ignore[attr-defined]


@given(
    depth=st.integers(1, 90),
    channels=st.integers(5, 30),
    bits=st.sampled_from([2, 4, 8]),
    first=st.integers(0, 6),
    fours=st.integers(1, 4),
    seed=seeds,
)
def test_parts_of_the_channels_have_their_constants(
    depth: int, channels: int, bits: int, first: int, fours: int, seed: int
) -> None:
    """Calls for some channels, on several cores or in pieces, point into the constants of the whole layer."""
    rng, start = np.random.default_rng(seed), 4 * min(first, (channels - 1) // 4)
    part = Interval(start, min(channels, start + 4 * fours))
    block, blocks = 16, -(-depth // 16)
    constants = {
        "weights": rng.integers(-(1 << bits - 1), 1 << bits - 1, (channels, depth)).astype(np.int8),
        "scale": rng.uniform(0.1, 1, (channels, blocks)).astype(np.float32),
        "zero": rng.integers(-2, 2, (channels, blocks)).astype(np.int8),
        "bias": rng.uniform(-1, 1, channels).astype(np.float32),
    }

    def layer(rows: Interval) -> tuple[KernelCall, Tensor]:
        chosen = {name: array[rows.lo : rows.hi] for name, array in constants.items()}
        op = BlockDense(len(rows), block, bits)
        x, y = (
            Tensor(name, (1, 1, size), DType.FLOAT32, None) for name, size in (("x", depth), ("y", len(rows)))
        )
        return op.kernel(Operator("layer", op, ("x",), "y", chosen), (x,), y), y

    whole, output = layer(Interval(0, channels))
    own, _ = layer(part)
    assert column_alignment(whole, output, 4) == 4
    params = part_of(whole, output, part)[0].params
    assert params["dims.output_channels"] == len(part)
    for name in constants:
        pointer, expected = params[name], own.params[name]
        assert isinstance(pointer, ArrayPointer) and isinstance(expected, np.ndarray)
        assert np.array_equal(pointer.array.ravel()[pointer.first :][: expected.size], expected.ravel())


def test_float_zero_points_are_computed_in_float32() -> None:
    x = normal(np.random.default_rng(0), (2, 40))
    only(check_against_onnx(nbits(x, 4, 16, 5, "float", 1), {"x": x}), "Conv2d")


@given(
    form=st.sampled_from(["MatMul", "Gemm", "Conv", "Clip", "Gather"]),
    kind=st.sampled_from([ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, np.int8, np.uint8]),
    depth=st.integers(9, 70),
    columns=st.integers(1, 14),
    block=st.sampled_from([4, 8, 12, 32]),
    zeros=st.booleans(),
    seed=seeds,
)
@bounded
def test_dequantised_weights(
    form: str, kind: Any, depth: int, columns: int, block: int, zeros: bool, seed: int
) -> None:
    """DequantizeLinear with a block_size before a product, a pointwise convolution or a selection of rows."""
    rng = np.random.default_rng(seed)
    blocks = -(-depth // block)
    info = ml_dtypes.iinfo(kind)
    along = 0 if form in ("MatMul", "Clip") else 1

    def turned(array: Array) -> Array:
        return array.T.copy() if along == 0 else array

    constants: dict[str, Any] = {
        "w": turned(rng.integers(int(info.min), int(info.max) + 1, (columns, depth)).astype(kind)),
        "s": turned(rng.uniform(0.01, 0.1, (columns, blocks)).astype(np.float32)),
        "b": normal(rng, (columns,)),
    }
    if zeros:
        constants["z"] = turned(
            rng.integers(int(info.min), int(info.max) + 1, (columns, blocks)).astype(kind)
        )
    read = f"w s{' z' * zeros}"
    nodes = [node("DequantizeLinear", read, "wd", axis=along, block_size=block)]
    x: Array = normal(rng, (int(rng.integers(1, 7)), depth))
    if form == "Conv":
        constants["shape"] = np.array([columns, depth, 1, 1])
        x = normal(rng, (1, depth, 2, 3))
        nodes += [node("Reshape", "wd shape", "w4"), node("Conv", "x w4 b", "y")]
    elif form == "Gather":
        x = rng.integers(-columns, columns, (1, 5))
        nodes += [node("Gather", "wd x", "y")]
    elif form == "Gemm":
        nodes += [node("Gemm", "x wd b", "y", transB=1, alpha=0.5)]
    else:
        nodes += [node("MatMul", "x wd", "m"), node("Add", "m b", "a"), node("Relu", "a", "y")]
    model = build(nodes, {"x": x}, ["y"], constants, opset=25 if kind is ml_dtypes.int2 else 21)
    graph = check_against_onnx(model, {"x": x}, seed=seed)
    if blocks > 1:
        only(graph, "GatherBlocks" if form == "Gather" else "BlockDense")
        assert any("stay packed" in note for note in graph.notes)


@pytest.mark.parametrize("data", ["packed", "typed", "bytes"])
@pytest.mark.parametrize("zeros", [False, True])
def test_rows_of_tables_of_microsofts(data: str, zeros: bool) -> None:
    """GatherBlockQuantized of two integers in a byte, of a 4-bit type, and of 8 bits."""
    rng = np.random.default_rng(zeros)
    bits, width, blocks = 8 if data == "bytes" else 4, 64, 2
    kind: Any = ml_dtypes.int4 if data == "typed" else np.uint8
    low, high = (-8, 8) if data == "typed" else (0, 256)
    shape = (9, width if data != "packed" else width // 2)
    constants: dict[str, Any] = {
        "w": rng.integers(low, high, shape).astype(kind),
        "s": rng.uniform(0.01, 0.1, (9, blocks)).astype(np.float32),
    }
    if zeros:
        constants["z"] = rng.integers(low, high, (9, blocks if data != "packed" else 1)).astype(kind)
    read = ["w", "x", "s", *(["z"] if zeros else [])]
    sizes = {"bits": bits, "block_size": 32, "gather_axis": 0, "quantize_axis": 1}
    item = helper.make_node("GatherBlockQuantized", read, ["y"], "rows", domain="com.microsoft", **sizes)
    x = np.array([[3, 0, 8, 5]])
    model = build([item], {"x": x}, {"y": (np.float32, [1, 4, width])}, constants, opset=21)
    operator = only(check_against_onnx(model, {"x": x}, float_tolerance=1e-6), "GatherBlocks")
    assert operator.op.bits == bits  # type: ignore[attr-defined]


def test_a_table_that_is_multiplied_too_is_in_flash_once() -> None:
    rng = np.random.default_rng(5)
    constants = {
        "w": rng.integers(-8, 8, (21, 48)).astype(ml_dtypes.int4),
        "s": rng.uniform(0.01, 0.1, (21, 3)).astype(np.float32),
    }
    nodes = [
        node("DequantizeLinear", "w s", "table", axis=1, block_size=16),
        node("Gather", "table x", "rows"),
        node("Transpose", "table", "turned", perm=[1, 0]),
        node("MatMul", "rows turned", "y"),
    ]
    x = np.array([4, 20])
    graph = check_against_onnx(build(nodes, {"x": x}, ["y"], constants, opset=21), {"x": x})
    gathered, multiplied = (call_of(graph, it).params for it in graph.operators if not it.op.is_view)
    for name in ("weights", "scale"):
        assert np.array_equal(gathered[name], multiplied[name])  # type: ignore[arg-type]
    size = 21 * 24 + 21 * 3 * 4
    assert any(f"{size:,} B of flash" in note for note in graph.notes)


def test_blocks_across_the_depth_become_float32() -> None:
    rng = np.random.default_rng(7)
    constants = {
        "w": rng.integers(-8, 8, (20, 16)).astype(ml_dtypes.int4),
        "s": rng.uniform(0.01, 0.1, (20, 2)).astype(np.float32),
    }
    nodes = [node("DequantizeLinear", "w s", "wd", axis=1, block_size=8), node("MatMul", "x wd", "y")]
    x = normal(rng, (1, 20))
    graph = check_against_onnx(build(nodes, {"x": x}, ["y"], constants, opset=21), {"x": x})
    assert any("stored as float32, 1,280 B" in note for note in graph.notes)


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        *(("block_size", 0, "blocks of 0"), ("block_size", -16, "blocks of -16")),
        *(("bits", 3, "weights of 3 bits"), ("bits", 8, "24 values in a row")),
        *(("K", 30, "32 are whole blocks"), ("N", 7, "do not fit")),
        *(("K", 0, "at least 1"), ("N", 0, "at least 1"), ("N", 5, "5 rows of weights")),
    ],
)
def test_sizes_that_do_not_fit_are_refused(tmp_path: Path, attribute: str, value: int, reason: str) -> None:
    model = nbits(normal(np.random.default_rng(0), (2, 40)), 4, 16, 6, "none", 0)
    for item in model.graph.node[0].attribute:
        item.i = value if item.name == attribute else item.i
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    with pytest.raises(ModelError) as caught:
        load(path)
    assert any(reason in problem.reason for problem in caught.value.problems)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("zeros", "reason"),
    [
        (np.zeros(5, np.uint8), "5 bytes of zero points"),
        (np.zeros(6, np.uint8), "12 zero points do not fit 18"),
        (np.full(18, np.nan, np.float32), "weights hold NaN"),
    ],
)
def test_zero_points_that_do_not_fit_are_refused(tmp_path: Path, zeros: Array, reason: str) -> None:
    model = nbits(normal(np.random.default_rng(0), (2, 40)), 4, 16, 6, "none", 0)
    model.graph.node[0].input.append("zeros")
    model.graph.initializer.append(onnx.numpy_helper.from_array(zeros, "zeros"))
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    with pytest.raises(ModelError) as caught:
        load(path)
    assert any(reason in problem.reason for problem in caught.value.problems)


@pytest.mark.filterwarnings("error")
def test_hostile_blocks_and_scales_take_no_memory() -> None:
    integers, axis = np.zeros((4, 2), np.int8), 0
    whole = dequantized(integers, np.ones((1, 2), np.float32), np.zeros((1, 2), np.int8), axis, 1 << 40)
    assert whole.quantized is not None and whole.quantized.scale.shape == (4, 2)
    infinite = dequantized(integers, np.full(1, np.inf, np.float32), np.zeros(1, np.int8), axis)
    assert np.isnan(infinite.value).all()


def test_a_decoder_has_one_packed_table_for_tokens_and_logits(tmp_path: Path) -> None:
    path = tmp_path / "decoder.onnx"
    onnx.save(packed(decoder(Sizes(layers=1, context=8, vocabulary=64))), path)
    graph = load(path)
    layers = [it for it in graph.operators if it.op.kind == "BlockDense"]
    (rows,) = (it for it in graph.operators if it.op.kind == "GatherBlocks")
    assert len(layers) == 8 and not any("bias" in it.constants for it in layers)
    logits = call_of(graph, layers[-1]).params["weights"]
    assert np.array_equal(call_of(graph, rows).params["weights"], logits)  # type: ignore[arg-type]
