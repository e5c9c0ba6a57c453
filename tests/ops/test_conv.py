"""Convolutions and products with constant weights, against ONNX Runtime and by hand."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from harness import check_against_onnx
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from single_node import OPSET, bounded, check_float, fitting, node, normal, real_output, seeds

from mcudeploy.ir.graph import DType, Graph, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_constants import fold_zero_point
from tests.networks.onnx_files import build

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A convolution: ONNX attributes, and the shapes of input [1, C, H, W] and weights."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    attributes: dict[str, Any]


@st.composite
def cases(draw: st.DrawFn, grouping: str = "any") -> Case:
    """Any attributes whose window fits its padded input, with a row of it in some window; small enough for a
    large number of examples.
    """
    rank = draw(st.sampled_from([1, 2, 2, 2]))
    groups = draw(st.integers(1, 3)) if grouping == "any" else draw(st.integers(2, 9))
    inputs = draw(st.integers(1, 7)) if grouping == "any" else 1
    outputs = draw(st.integers(1, 7)) if grouping == "any" else draw(st.sampled_from([1, 1, 1, 2, 4]))
    kernel = [draw(st.integers(1, 4)) for _ in range(rank)]
    dilation = [draw(st.sampled_from([1, 1, 2])) for _ in range(rank)]
    pads = [draw(st.integers(0, 3)) for _ in range(2 * rank)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [draw(st.integers(max(1, reach[i] - pads[i] - pads[i + rank]), reach[i] + 5)) for i in range(rank)]
    strides = [draw(st.integers(1, 3)) for _ in range(rank)]
    starts = range(-pads[0], size[0] + pads[rank] - reach[0] + 1, strides[0])
    assume(any(-reach[0] < at < size[0] for at in starts))
    attributes = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilation,
        "pads": pads,
        "group": groups,
    }
    return Case((1, inputs * groups, *size), (outputs * groups, inputs, *kernel), attributes)


def quantized_model(
    op: str,
    rng: np.random.Generator,
    x: Array,
    w: Array,
    attributes: dict[str, Any],
    activation: str = "",
    zero: int = 0,
) -> onnx.ModelProto:
    """DequantizeLinear of input, per-channel weights and bias; `op`; QuantizeLinear that uses its range.

    `zero`: the zero point of the weights.
    """
    dtype = x.dtype.type
    count = w.shape[0]
    scales = rng.uniform(0.002, 0.02, count).astype(np.float32)
    x_scale, x_zero = np.float32(rng.uniform(0.01, 0.1)), dtype(rng.integers(*_range(dtype)))
    bias = rng.integers(-20000, 20000, count).astype(np.int32)
    constants = {
        "w": (w.astype(np.float32) - zero) * scales.reshape(-1, *[1] * (w.ndim - 1)),
        "b": bias.astype(np.float32) * (scales * x_scale),
    }
    real_x = (x.astype(np.int32) - np.int32(x_zero)).astype(np.float32) * x_scale
    real = real_output(node(op, "x", "w", "b", constants=constants, **attributes), {"x": real_x})
    y_scale, y_zero = fitting(real, dtype)
    zeros = np.full(count, zero, w.dtype)
    initializers = {
        "x_s": x_scale, "x_z": x_zero, "w_q": w, "w_s": scales, "w_z": zeros,
        "b_q": bias, "b_s": scales * x_scale, "y_s": np.float32(y_scale), "y_z": dtype(y_zero),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x_q", "x_s", "x_z"], ["x"], name="dq_x"),
        helper.make_node("DequantizeLinear", ["w_q", "w_s", "w_z"], ["w"], name="dq_w", axis=0),
        helper.make_node("DequantizeLinear", ["b_q", "b_s"], ["b"], name="dq_b", axis=0),
        helper.make_node(op, ["x", "w", "b"], ["real"], name="node", **attributes),
    ]
    if activation:
        nodes.append(helper.make_node(activation, ["real"], ["active"], name="activation"))
    nodes.append(helper.make_node("QuantizeLinear", [nodes[-1].output[0], "y_s", "y_z"], ["y"], name="q"))
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    return build(nodes, {"x_q": (kind, x.shape)}, {"y": (kind, real.shape)}, initializers, OPSET)


def _range(dtype: type) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max) + 1


def _kernels(graph: Graph) -> set[str]:
    return {
        operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors[operator.output]).kernel
        for operator in graph.operators
        if operator.op.kind == "Conv2d"
    }


def _variants(graph: Graph, isa: Isa = Isa.ANY) -> set[str]:
    """Kernels of the convolutions for cores with these instructions."""
    return {
        call.kernel
        for operator in graph.operators
        if operator.op.kind == "Conv2d"
        for call in operator.op.kernel(
            operator, graph.input_tensors(operator), graph.tensors[operator.output]
        ).variants(isa)
    }


def _check_quantized(case: Case, seed: int, dtype: type, activation: str = "", op: str = "Conv") -> Graph:
    rng = np.random.default_rng(seed)
    x = rng.integers(*_range(dtype), case.x).astype(dtype)
    w = rng.integers(-128, 128, case.w).astype(np.int8)
    return check_against_onnx(
        quantized_model(op, rng, x, w, case.attributes, activation), {"x_q": x}, seed=seed
    )


def _check_float(case: Case, seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    constants = {"w": normal(rng, case.w), "b": normal(rng, case.w[:1])}
    what = node("Conv", "x", "w", "b", constants=constants, **case.attributes)
    return check_float(what, {"x": normal(rng, case.x)})


@given(case=cases(), dtype=st.sampled_from([np.int8, np.uint8]), relu=st.booleans(), seed=seeds)
@bounded
def test_int8(case: Case, dtype: type, relu: bool, seed: int) -> None:
    _check_quantized(case, seed, dtype, "Relu" if relu else "")


@given(
    case=st.one_of(cases(), cases("depthwise")),
    dtype=st.sampled_from([np.int8, np.uint8]),
    zero=st.sampled_from([0, 3, 100, 255]),
    seed=seeds,
)
@bounded
def test_weights_less_a_zero_point(case: Case, dtype: type, zero: int, seed: int) -> None:
    """uint8 around another zero point than 128: the products are still integers."""
    rng = np.random.default_rng(seed)
    x = rng.integers(*_range(dtype), case.x).astype(dtype)
    w = rng.integers(0, 256, case.w).astype(np.uint8)
    w.reshape(len(w), -1)[:, 0] = 255 if zero < 128 else 0  # less the zero point it is not int8
    model = quantized_model("Conv", rng, x, w, case.attributes, zero=zero)
    graph = check_against_onnx(model, {"x_q": x}, seed=seed)
    assert _kernels(graph) <= {"conv2d_s8_asymmetric", "dwconv2d_s8_asymmetric"}
    assert graph.float_causes == {}


@given(case=cases(), seed=seeds)
@bounded
def test_float(case: Case, seed: int) -> None:
    _check_float(case, seed)


@given(case=cases("depthwise"), seed=seeds)
@bounded
def test_depthwise(case: Case, seed: int) -> None:
    kernel = "dwconv2d_s8" if case.w[0] == case.x[1] else "dwconv2d_s8_multiplied"
    assert kernel in _kernels(_check_quantized(case, seed, np.int8))
    assert "dwconv2d_f32" in _kernels(_check_float(case, seed))


@given(
    channels=st.one_of(st.integers(2, 9), st.integers(15, 35)),
    size=st.tuples(st.integers(1, 20), st.integers(1, 40)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    kernel=st.sampled_from([(3, 3), (3, 3), (5, 5), (7, 7), (1, 5), (4, 7)]),
    pads=st.tuples(*[st.integers(0, 3)] * 4),
    seed=seeds,
)
@bounded
def test_depthwise_by_pairs_of_rows(
    channels: int,
    size: tuple[int, int],
    strides: tuple[int, int],
    kernel: tuple[int, int],
    pads: tuple[int, int, int, int],
    seed: int,
) -> None:
    """All variants; row cuts of one, and all rows."""
    image = (size[0] + kernel[0] - 1, size[1] * strides[1] + kernel[1] - 1)
    attributes = {
        "kernel_shape": list(kernel), "strides": list(strides), "pads": list(pads), "group": channels
    }  # fmt: skip
    graph = _check_quantized(Case((1, channels, *image), (channels, 1, *kernel), attributes), seed, np.int8)
    assert ("dwconv2d_s8_rows" if kernel == (3, 3) else "dwconv2d_s8_pairs") in _variants(graph, Isa.DSP)


def test_no_pairs_of_rows_for_scales_beyond_the_fast_shift() -> None:
    """The kernel has no shift to the left, nor windows of another size, dilation or stride."""
    others = {"scale": 0.0001}, {"dilations": [1, 2]}, {"strides": [1, 3]}
    for size, changed in (*product((3, 5), others), (2, {})):
        kernel = [3, size]
        attributes = {"kernel_shape": kernel, "group": 4} | {k: v for k, v in changed.items() if k != "scale"}
        rng = np.random.default_rng(5)
        x = rng.integers(-128, 128, (1, 4, 9, 9)).astype(np.int8)
        w = rng.integers(-4, 5, (4, 1, *kernel)).astype(np.int8)  # type: ignore[misc]
        model = quantized_model("Conv", rng, x, w, attributes)
        for tensor in model.graph.initializer:
            if tensor.name == "y_s" and "scale" in changed:
                tensor.CopyFrom(numpy_helper.from_array(np.float32(changed["scale"]), "y_s"))
        assert _variants(check_against_onnx(model, {"x_q": x}), Isa.DSP) == {"dwconv2d_s8"}


@given(
    channels=st.integers(1, 19),
    outputs=st.integers(1, 11),
    size=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    seed=seeds,
)
@bounded
def test_pointwise(
    channels: int, outputs: int, size: tuple[int, int], strides: tuple[int, int], seed: int
) -> None:
    case = Case(
        (1, channels, *size), (outputs, channels, 1, 1), {"kernel_shape": [1, 1], "strides": list(strides)}
    )
    kernel = "conv2d_s8_full" if size == (1, 1) else "conv2d_s8_1x1"
    assert _kernels(_check_quantized(case, seed, np.int8)) == {kernel}
    float_kernel = "dense_f32" if size == (1, 1) else "conv2d_f32_1x1"
    assert _kernels(_check_float(case, seed)) == {float_kernel}


def _plain(conv: Conv2d, shape: tuple[int, int, int], scale: float) -> KernelCall:
    """A convolution by weights of 1."""
    weights = np.ones((8, *conv.kernel_shape, shape[2] // conv.groups), np.int8)
    scales = np.full(8, scale, np.float32)
    constants = {"weights": weights, "bias": np.zeros(8, np.int32), "weight_scale": scales}
    x = Tensor("x", shape, DType.INT8, Quantization(1.0, 0))
    y = Tensor("y", conv.loops((x.shape,)).output_shape(), DType.INT8, Quantization(1.0, 0))
    return conv.kernel(Operator("conv", conv, ("x",), "y", constants), (x,), y)


@pytest.mark.parametrize(
    ("conv", "channels", "wide"),
    [
        (Conv2d(8), 16, {"conv2d_s8_1x1_wide"}),
        (Conv2d(8, (3, 3), (2, 2)), 16, {"conv2d_s8_wide"}),
        (Conv2d(8, (3, 3)), 3, {"conv2d_s8_wide", "conv2d_s8_first_wide"}),
        (Conv2d(8, (3, 3), dilation=(1, 2)), 3, {"conv2d_s8_wide"}),
        (Conv2d(8, (3, 3), groups=2), 4, {"conv2d_s8_wide"}),
    ],
)
def test_weights_of_16_bits_are_for_the_dsp_extension(conv: Conv2d, channels: int, wide: set[str]) -> None:
    def of(isa: Isa, scale: float) -> set[str]:
        call = _plain(conv, (9, 9, channels), scale)
        return {each.kernel for each in call.variants(isa) if each.kernel.endswith("_wide")}

    assert of(Isa.DSP, 0.01) == wide
    assert of(Isa.DSP, 0.7) == of(Isa.ANY, 0.01) == of(Isa.MVE, 0.01) == set()  # 0.7: sums are doubled


def _dense(depth: int, outputs: int) -> Case:
    return Case((1, depth, 1, 1), (outputs, depth, 1, 1), {"kernel_shape": [1, 1]})


@given(case=st.one_of(cases(), st.builds(_dense, st.integers(1, 40), st.integers(1, 11))), seed=seeds)
@bounded
def test_weights_of_four_bits_stay_packed(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in (case.x, case.w))
    w = (w % 16 - 8).astype(np.int8)
    graph = check_against_onnx(quantized_model("Conv", rng, x, w, case.attributes), {"x_q": x}, seed=seed)
    kernels = _variants(graph)
    if not any(it.startswith("dwconv") for it in kernels):
        assert any(it.endswith("_s4w") for it in kernels) == bool(w.any())


def test_packed_weights_have_their_sums_apart() -> None:
    """The sum of a fourth channel has 20 bits, that of a third one by weights + 8 has 24."""

    def offers(depth: int, fourth: int, third: int = 0) -> bool:
        weights = np.zeros((4, 1, 1, depth), np.int8)
        weights[0, 0, 0, 0], weights[2], weights[3] = 1, third, fourth
        call = _packed(weights, np.zeros(4, np.int32), x_scale=0.001)
        return "conv2d_s8_1x1_direct_s4w" in [it.kernel for it in call.variants(Isa.ANY)]

    assert offers(508, -8) and offers(508, 7) and not offers(512, -8) and not offers(508, 8)
    assert offers(4368, 0, 7) and not offers(4372, 0, 7)


@pytest.mark.parametrize(
    ("conv", "channels", "offered"),
    [
        (Conv2d(8, (3, 3)), 3, True),
        (Conv2d(8, (16, 4)), 1, True),
        (Conv2d(8, (17, 4)), 1, False),  # 16 columns have 272 values
        (Conv2d(8, (3, 3)), 5, False),
        (Conv2d(8, (3, 3), dilation=(1, 2)), 3, False),
        (Conv2d(8, (3, 3), groups=2), 4, False),
    ],
)
def test_few_channels_by_columns_are_for_vectors(conv: Conv2d, channels: int, offered: bool) -> None:
    call = _plain(conv, (20, 9, channels), scale=0.01)
    assert [it.kernel for it in call.variants(Isa.MVE)].count("conv2d_s8_first_mve") == offered


def test_two_channels_in_a_half_word_need_sums_of_24_bits() -> None:
    """An odd channel's sum is at most 127 * 128 * depth; a weight of -128 has no half word."""

    def offers(depth: int, weight: int, outputs: int = 2) -> bool:
        weights = np.full((outputs, 1, 1, depth), weight, np.int8)
        call = _packed(weights, np.zeros(outputs, np.int32), x_scale=0.001)
        return any(each.kernel == "conv2d_s8_1x1_dual" for each in call.variants(Isa.DSP))

    assert offers(496, 127)  # with the zero point in the bias
    assert not offers(520, 127)  # beyond 2^23
    assert offers(520, 127, outputs=1)  # an even channel alone
    assert not offers(496, -128)
    assert not offers(510, 1)  # no whole groups


@given(
    channels=st.integers(1, 9),
    outputs=st.integers(1, 11),
    size=st.tuples(st.integers(2, 5), st.integers(1, 5)),
    seed=seeds,
)
@bounded
def test_kernel_as_large_as_the_input(channels: int, outputs: int, size: tuple[int, int], seed: int) -> None:
    case = Case((1, channels, *size), (outputs, channels, *size), {"kernel_shape": list(size)})
    assert _kernels(_check_quantized(case, seed, np.int8)) == {"conv2d_s8_full"}
    assert _kernels(_check_float(case, seed)) == {"conv2d_f32_full"}


@given(batch=st.integers(1, 5), depth=st.integers(1, 40), outputs=st.integers(1, 11), seed=seeds)
@bounded
def test_gemm(batch: int, depth: int, outputs: int, seed: int) -> None:
    case = Case((batch, depth), (outputs, depth), {"transB": 1})
    kernel = "conv2d_s8_full" if batch == 1 else "conv2d_s8_1x1"
    assert _kernels(_check_quantized(case, seed, np.int8, op="Gemm")) == {kernel}


@given(
    channels=st.integers(80, 100),
    outputs=st.integers(1, 9),
    groups=st.sampled_from([1, 2]),
    stride=st.integers(1, 2),
    dilation=st.integers(1, 2),
    seed=seeds,
)
@bounded
def test_deep_windows(
    channels: int, outputs: int, groups: int, stride: int, dilation: int, seed: int
) -> None:
    attributes = {"kernel_shape": [2, 3], "strides": [stride, 1], "pads": [1, 1, 0, 1]}
    attributes |= {"dilations": [1, dilation], "group": groups}
    case = Case((1, channels * groups, 4, 5), (outputs * groups, channels, 2, 3), attributes)
    assert _kernels(_check_quantized(case, seed, np.int8)) == {"conv2d_s8_deep"}


def test_scales_beyond_the_fast_shift() -> None:
    """Channels from tiny to large scales still agree with the reference."""
    rng = np.random.default_rng(5)
    x = rng.integers(-128, 128, (1, 4, 5, 5)).astype(np.int8)
    w = rng.integers(-4, 5, (6, 4, 1, 1)).astype(np.int8)
    model = quantized_model("Conv", rng, x, w, {"kernel_shape": [1, 1]})
    for tensor in model.graph.initializer:
        if tensor.name == "y_s":
            tensor.CopyFrom(numpy_helper.from_array(np.float32(0.0001), "y_s"))
    check_against_onnx(model, {"x_q": x})


# Loop nests and packing, worked by hand.


def test_the_output_shape_follows_window_stride_dilation_and_pads() -> None:
    shape = (10, 13, 4)
    for conv, wanted in (
        (Conv2d(8), (10, 13, 8)),
        (Conv2d(8, (3, 3), pads=(1, 1, 1, 1)), (10, 13, 8)),
        (Conv2d(8, (3, 3), (2, 2), pads=(0, 1, 1, 1)), (5, 7, 8)),
        (Conv2d(8, (3, 2), dilation=(2, 3)), (6, 10, 8)),
        (Conv2d(8, (10, 13)), (1, 1, 8)),
        (Conv2d(8, (5, 1), (3, 4), groups=4), (2, 4, 8)),
    ):
        assert conv.loops((shape,)).output_shape() == wanted


@pytest.mark.parametrize(
    ("conv", "rows", "wanted"),
    [
        (Conv2d(1), Interval(3, 5), Interval(3, 5)),
        (Conv2d(1, stride=(2, 2)), Interval(1, 3), Interval(2, 5)),
        (Conv2d(1, (3, 3), pads=(1, 1, 1, 1)), Interval(0, 1), Interval(0, 2)),
        (Conv2d(1, (3, 3), pads=(1, 1, 1, 1)), Interval(4, 5), Interval(3, 6)),
        (Conv2d(1, (3, 3), pads=(1, 1, 1, 1)), Interval(9, 10), Interval(8, 10)),
        (Conv2d(1, (3, 3), (2, 2), pads=(0, 0, 1, 1)), Interval(2, 4), Interval(4, 9)),
        (Conv2d(1, (3, 3), dilation=(2, 2), pads=(2, 2, 2, 2)), Interval(1, 2), Interval(0, 4)),
        (Conv2d(1, (2, 2), pads=(3, 0, 0, 0)), Interval(0, 1), Interval(0, 0)),
        (Conv2d(1, (10, 10)), Interval(0, 1), Interval(0, 10)),
    ],
)
def test_rows_read(conv: Conv2d, rows: Interval, wanted: Interval) -> None:
    rows_found = conv.loops(((10, 10, 1),)).rows_read(0, rows, 10)
    assert rows_found == wanted or len(rows_found) == len(wanted) == 0


def test_macs_of_grouped_convolutions() -> None:
    assert Conv2d(8, (3, 3), pads=(1, 1, 1, 1)).loops(((6, 5, 4),)).macs() == 6 * 5 * 8 * 9 * 4
    assert Conv2d(8, (3, 3), pads=(1, 1, 1, 1), groups=2).loops(((6, 5, 4),)).macs() == 6 * 5 * 8 * 9 * 2
    assert Conv2d(4, (3, 3), pads=(1, 1, 1, 1), groups=4).loops(((6, 5, 4),)).macs() == 6 * 5 * 4 * 9


def test_a_group_reads_and_makes_its_own_channels() -> None:
    nest = Conv2d(6, groups=2).loops(((3, 3, 4),))
    axes = {axis.name: axis for axis in nest.axes}
    tile = {"g": Interval(1, 2)}
    assert nest.reads[0][2].reach(axes, tile) == Interval(2, 4)
    assert nest.write[2].reach(axes, tile) == Interval(3, 6)


@pytest.mark.parametrize(
    ("conv", "reason"),
    [
        (Conv2d(4, (7, 7)), "does not fit"),
        (Conv2d(4, groups=3), "groups"),
        (Conv2d(3, groups=2), "groups"),
        (Conv2d(4, pads=(-1, 0, 0, 0)), "negative pads"),
        (Conv2d(4, stride=(0, 1)), "at least 1"),
    ],
)
def test_what_does_not_fit_is_named(conv: Conv2d, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        conv.loops(((6, 6, 4),))


def _packed(weights: Array, bias: Array, x_scale: float = 0.1, y_scale: float = 0.1) -> KernelCall:
    conv = Conv2d(len(weights), weights.shape[1:3])
    shape = (4, 4, weights.shape[3])
    x = Tensor("x", shape, DType.INT8, Quantization(x_scale, 3))
    y = Tensor("y", conv.loops((shape,)).output_shape(), DType.INT8, Quantization(y_scale, -2))
    constants = {"weights": weights, "bias": bias, "weight_scale": np.full(len(weights), 0.5, np.float32)}
    return conv.kernel(Operator("conv", conv, ("x",), "y", constants), (x,), y)


def test_the_input_zero_point_is_folded_into_the_bias() -> None:
    weights = np.array([[1, 2], [-3, 4]], np.int8).reshape(2, 1, 1, 2)
    assert fold_zero_point("conv", weights, np.array([100, 200], np.int32), -7).tolist() == [121, 207]
    params = _packed(weights, np.array([100, 200], np.int32)).params
    assert np.asarray(params["packed_weights"])[:2].tolist() == [91, 197]
    assert (params["act.min"], params["act.max"], params["quant.zero_point"]) == (-128, 127, -2)


def test_sums_that_could_overflow_are_refused() -> None:
    weights = np.full((1, 2, 2, 3), 127, np.int8)
    with pytest.raises(ValueError, match="conv: the accumulator of channel 0"):
        _packed(weights, np.array([2**31 - 5000], np.int32))
    with pytest.raises(ValueError, match="folded zero point"):
        _packed(-weights, np.array([2**31 - 1], np.int32))
    with pytest.raises(ValueError, match="output scale is too small"):
        _packed(weights, np.array([0], np.int32), x_scale=100, y_scale=0.00001)


def test_constants_of_a_wrong_shape_are_refused() -> None:
    x = Tensor("x", (4, 4, 3), DType.FLOAT32)
    conv = Conv2d(2)
    y = Tensor("y", (4, 4, 2), DType.FLOAT32)
    constants = {"weights": np.zeros((2, 1, 1, 4), np.float32), "bias": np.zeros(2, np.float32)}
    with pytest.raises(ValueError, match="weights"):
        conv.kernel(Operator("conv", conv, ("x",), "y", constants), (x,), y)


@pytest.mark.parametrize(
    ("dtype", "channels", "patch_bytes"),
    [
        (DType.INT8, 3, 2 * 9 * 4 * 2),  # two groups: every tap of 3 values is filled up to 4, as int16
        (DType.FLOAT32, 3, 4 * 9 * 3 * 4),  # four windows
        (DType.FLOAT32, 9, 0),  # read where they are
    ],
)
def test_scratch_holds_offsets_and_windows(dtype: DType, channels: int, patch_bytes: int) -> None:
    conv = Conv2d(4, (3, 3), pads=(1, 1, 1, 1), groups=2)
    quantization = Quantization(0.1, 0) if dtype is DType.INT8 else None
    x = Tensor("x", (8, 8, 2 * channels), dtype, quantization)
    y = Tensor("y", (8, 8, 4), dtype, quantization)
    constants = {
        "weights": np.ones((4, 3, 3, channels), dtype.value),
        "bias": np.zeros(4, np.int32 if dtype is DType.INT8 else np.float32),
    }
    if dtype is DType.INT8:
        constants["weight_scale"] = np.ones(4, np.float32)
    call = conv.kernel(Operator("conv", conv, ("x",), "y", constants), (x,), y)
    assert call.scratch_bytes == 3 * 4 + patch_bytes
