"""Selection of the C kernels of convolutions, and packing of their constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mcudeploy.ir import graph
from mcudeploy.ir.graph import Operator, Tensor
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall, Params
from mcudeploy.ops import requantize
from mcudeploy.ops.common import OFFSET_BYTES, SUM_BYTES
from mcudeploy.ops.conv import conv_counts, conv_counts_f32, conv_mve, conv_rvv, conv_s4w, conv_wide
from mcudeploy.ops.conv.conv_asymmetric import asymmetric_kernel, in_bytes, is_asymmetric
from mcudeploy.ops.conv.conv_constants import (
    FOUR,
    ConvConstants,
    Results,
    check_constants,
    numbers_of,
    without,
)
from mcudeploy.ops.conv.conv_twice import settled, twin
from mcudeploy.ops.conv.dwconv_kernels import depthwise_kernel
from mcudeploy.ops.conv.packing import EIGHT, GROUP, by_tap, pack_dual, padded
from mcudeploy.ops.conv.windows import Windowing, group_fields, window_fields
from mcudeploy.ops.conv.winograd import winograd

_MOST_DUAL_SUM = 1 << 23
"""Limit of the absolute sums of odd channels, if a half word holds the weights of two channels."""
_MOST_EXPANDED_BYTES = 1280
"""Limit in bytes of the expanded windows of two pixels, unless a search weighs time against memory."""
_SHORT_RUN = 8
"""Float values in a contiguous run of a window's row up to which gathering it first takes less time."""
MOST_GATHERED = 64
"""The most bytes of a gathered float window; scratch has four windows."""
_PIXELS = 3
"""Pixels that a pointwise convolution takes at a time."""
_EXPANDED_BYTES = 2
"""Bytes of one int8 value in a block of pixels that is multiplied."""
PAIR = 2
"""Output channels multiplied with a block of pixels at a time."""


def conv_kernel(
    conv: Windowing, results: Results, operator: Operator, source: Tensor, output: Tensor
) -> KernelCall:
    """The C kernel of one convolution with its constants packed; see Conv2d.kernel."""
    channels = source.shape[2]
    check_constants(operator, (conv.out_channels, *conv.kernel_shape, channels // conv.groups))
    if source.dtype is graph.DType.FLOAT32:
        return _float_kernel(conv, results, operator, source, output)
    constants, numbers = numbers_of(results, operator, source, output)
    if is_asymmetric(operator):
        return asymmetric_kernel(conv, constants, numbers, source, output)
    if results.rounding == "once":
        return _int8_kernel(conv, constants, numbers, source, output)
    factors = settled(constants, numbers, output)
    if factors is None:
        wide = replace(constants, weights=constants.weights.astype(np.int16))
        return asymmetric_kernel(conv, wide, numbers, source, output)
    return twin(_int8_kernel(conv, *factors, source, output), output)


def _int8_kernel(
    conv: Windowing, constants: ConvConstants, numbers: Params, source: Tensor, output: Tensor
) -> KernelCall:
    """The kernels with int8 weights."""
    channels = source.shape[2]
    if conv.is_depthwise(channels):
        return depthwise_kernel(conv, constants, numbers, source, output)
    if conv.kernel_shape == source.shape[:2] and output.shape[:2] == (1, 1) and conv.is_plain:
        fields = _full_fields(conv, source)
        arrays = constants.packed_fours(runs=source.shape[0])
        others = [
            conv_mve.full(constants, numbers, fields, source.shape[0]),
            conv_rvv.full(constants, numbers, fields),
        ]
        packed: tuple[KernelCall, ...] = ()
        if source.shape[0] == 1:  # a row is a pixel
            others.append(conv_mve.pointwise(constants, numbers, _pixel_fields(conv, source)))
            others.append(conv_rvv.pointwise(constants, numbers, _pixel_fields(conv, source)))
            others += _dual_kernel(constants, numbers, _pixel_fields(conv, source))
            packed = conv_s4w.direct(constants, numbers, _pixel_fields(conv, source))
        others += packed or conv_s4w.deep(constants, _deep_kernel(conv, constants, numbers, source, output))
        params, counts = arrays | fields | numbers, conv_counts.full(fields)
        return KernelCall("conv2d_s8_full", params, counts=counts, others=tuple(others))
    if conv.is_pointwise:
        fields = {
            "dims.input_channels": channels,
            "dims.output_cols": output.shape[1],
            "dims.output_channels": conv.out_channels,
            "groups": -(-channels // GROUP),
            "stride_rows": conv.stride[0],
            "pixel_step": conv.stride[1] * channels,
        }
        scratch = padded(channels, GROUP) * _PIXELS * _EXPANDED_BYTES
        arrays = constants.packed(runs=1, block=PAIR)
        vectors = [by.pointwise(constants, numbers, without(fields, "groups")) for by in (conv_mve, conv_rvv)]
        wide = conv_wide.pointwise(constants, numbers, fields)
        params = constants.packed_fours(runs=1) | without(fields, "groups") | numbers
        direct = KernelCall("conv2d_s8_1x1_direct", params, counts=conv_counts.direct(fields))
        dual = _dual_kernel(constants, numbers, without(fields, "groups"))
        packed = conv_s4w.pointwise(constants, numbers, fields)
        params, counts = arrays | fields | numbers, conv_counts.pointwise(fields)
        others = [direct, *vectors, *wide, *dual, *packed]
        return KernelCall("conv2d_s8_1x1", params, scratch, counts=counts, others=tuple(others))
    return _general_kernel(conv, constants, numbers, source, output)


def _general_kernel(
    conv: Windowing, constants: ConvConstants, numbers: Params, source: Tensor, output: Tensor
) -> KernelCall:
    """conv2d_s8 and conv2d_s8_deep, the latter first if the other's expanded windows are large."""
    kernel_rows, kernel_cols = conv.kernel_shape
    group_inputs = source.shape[2] // conv.groups
    offsets = kernel_rows * OFFSET_BYTES
    fields = window_fields(conv, source, output) | group_fields(conv, source)
    zero_point: Params = {"input_zero_point": requantize.quantization_of(source).zero_point}
    vectors = [
        call for by in (conv_mve, conv_rvv) for call in by.general(constants, numbers, fields | zero_point)
    ]
    one_run = conv.in_one_run
    row_runs, run_values = (1, kernel_cols * group_inputs) if one_run else (kernel_cols, group_inputs)
    patch_groups = kernel_rows * row_runs * -(-run_values // GROUP)
    expanded = constants.packed(runs=kernel_rows * row_runs, block=PAIR, groups=conv.groups)
    runs = {"row_runs": row_runs, "run_values": run_values, "patch_groups": patch_groups}
    tail = run_values if one_run and group_inputs % GROUP else 0

    def by(pixels: int) -> KernelCall:
        params = expanded | fields | runs | {"most_pixels": pixels} | zero_point | numbers
        scratch = offsets + pixels * patch_groups * GROUP * _EXPANDED_BYTES + tail
        return KernelCall("conv2d_s8", params, scratch, mode=str(pixels), counts=conv_counts.general(params))

    deep = _deep_kernel(conv, constants, numbers, source, output)
    odd_row = output.shape[1] % 2 == 1 and output.shape[1] > 1
    calls = [by(3), by(2)] if odd_row else [by(2), by(3)]
    is_large = 2 * patch_groups * GROUP * _EXPANDED_BYTES > _MOST_EXPANDED_BYTES
    first, *others = [deep, *calls] if is_large else [*calls, deep]
    wide = conv_wide.general(constants, calls[0]) + conv_wide.first(constants, numbers, fields | zero_point)
    by_tiles = winograd(conv, constants, numbers, source, output)
    packed = conv_s4w.general(constants, by(2)) + conv_s4w.deep(constants, deep)
    return replace(first, others=(*others, *vectors, *wide, *by_tiles, *packed))


def _deep_kernel(
    conv: Windowing, constants: ConvConstants, numbers: Params, source: Tensor, output: Tensor
) -> KernelCall:
    """conv2d_s8_deep."""
    window_groups = -(-conv.kernel_shape[0] * conv.kernel_shape[1] * source.shape[2] // conv.groups // GROUP)
    params = constants.packed_fours(runs=1, groups=conv.groups) | window_fields(conv, source, output)
    params |= group_fields(conv, source) | {"patch_groups": window_groups}
    params |= {"input_zero_point": requantize.quantization_of(source).zero_point} | numbers
    scratch = conv.kernel_shape[0] * OFFSET_BYTES + window_groups * GROUP
    return KernelCall("conv2d_s8_deep", params, scratch, counts=conv_counts.deep(params))


def _float_kernel(
    conv: Windowing, results: Results, operator: Operator, source: Tensor, output: Tensor
) -> KernelCall:
    """The float32 kernels."""
    channels = source.shape[2]
    constants, numbers = numbers_of(results, operator, source, output)
    if conv.is_depthwise(channels):
        return _float_depthwise(conv, constants, numbers, source, output)
    if conv.is_pointwise:
        pixels = {
            "dims.input_channels": channels,
            "dims.output_cols": output.shape[1],
            "dims.output_channels": conv.out_channels,
            "stride_rows": conv.stride[0],
            "pixel_step": conv.stride[1] * channels,
            "rows_join": int(conv.stride == (1, 1)),
        }
        call = KernelCall("conv2d_f32_1x1", pixels | numbers, counts=conv_counts_f32.pointwise(pixels))
        pointwise = _with_weights(call, constants)
        return _dense_kernel(constants, numbers, pointwise) if source.shape[:2] == (1, 1) else pointwise
    if conv.kernel_shape == source.shape[:2] and output.shape[:2] == (1, 1) and conv.is_plain:
        full = _full_fields(conv, source)
        scratch, counts = source.shape[0] * OFFSET_BYTES, conv_counts_f32.full(full)
        call = KernelCall("conv2d_f32_full", full | numbers, scratch, counts=counts)
        return _with_weights(call, constants)
    group_inputs = channels // conv.groups
    fields = window_fields(conv, source, output) | group_fields(conv, source)
    offsets = conv.kernel_shape[0] * OFFSET_BYTES
    one_run = conv.in_one_run
    general_fields = fields | {"one_run": int(one_run)}
    counts = conv_counts_f32.general(general_fields)
    general = KernelCall("conv2d_f32", general_fields | numbers, offsets, counts=counts)
    general = _with_weights(general, constants, conv.groups)
    run = group_inputs * (conv.kernel_shape[1] if one_run else 1)
    patch = conv.kernel_shape[0] * conv.kernel_shape[1] * group_inputs
    if run > _SHORT_RUN or patch > MOST_GATHERED:
        return general
    fields |= {"patch_values": patch}
    scratch = offsets + FOUR * patch * source.dtype.size_bytes
    params = constants.packed_floats(conv.groups) | fields | numbers
    counts = conv_counts_f32.patches(fields)
    return KernelCall("conv2d_f32_gathered", params, scratch, counts=counts, others=general.others)


def _dense_kernel(constants: ConvConstants, numbers: Params, pointwise: KernelCall) -> KernelCall:
    """dense_f32, of one pixel; weights of one channel are not in a block of four."""
    weights = constants.reals()
    fields = {"channels": len(weights), "depth": weights.size // len(weights)}
    arrays = constants.packed_floats()
    if len(weights) == 1:
        arrays = {"weights": weights.reshape(-1), "bias": constants.bias}
    counts = conv_counts_f32.dense(fields)
    return KernelCall("dense_f32", arrays | fields | numbers, counts=counts, others=pointwise.others)


def _float_depthwise(
    conv: Windowing, constants: ConvConstants, numbers: Params, source: Tensor, output: Tensor
) -> KernelCall:
    """The float32 kernels of depthwise convolutions."""
    multiplier = conv.out_channels // source.shape[2]
    fields = window_fields(conv, source, output) | {"multiplier": multiplier}
    scratch = conv.kernel_shape[0] * OFFSET_BYTES
    mode = "multiplied" if multiplier > 1 else ""  # the kernel has separate loops for it
    arrays: Params = {"weights": by_tap(constants.reals()), "bias": constants.bias}
    counts = conv_counts_f32.depthwise(fields, eights=multiplier == 1)
    call = KernelCall("dwconv2d_f32", arrays | fields | numbers, scratch, mode=mode, counts=counts)
    if constants.scale is None:
        return call
    arrays = {"weights": by_tap(constants.weights), "scale": constants.scale, "bias": constants.bias}
    counts = conv_counts_f32.depthwise(fields, eights=False)
    other = KernelCall("dwconv2d_f32_s8w", arrays | fields | numbers, scratch, counts=counts)
    return replace(call, others=(other,))


def _with_weights(call: KernelCall, constants: ConvConstants, groups: int = 1) -> KernelCall:
    """The call of a float kernel with its weights; its variant widens int8 weights at run time."""
    plain = replace(call, params=constants.packed_floats(groups) | dict(call.params))
    if constants.scale is None:
        return plain
    params = constants.packed_scaled(groups) | dict(call.params)
    return replace(plain, others=(replace(call, kernel=f"{call.kernel}_s8w", params=params),))


def by_rows_kernel(
    out_channels: int, results: Results, operator: Operator, source: Tensor, output: Tensor
) -> KernelCall:
    """The kernel that reads its input by rows; see Conv2dByRows.kernel."""
    rows, cols, channels = source.shape
    check_constants(operator, (out_channels, rows, cols, channels))
    constants, numbers = numbers_of(results, operator, source, output)
    fields: Params = {"row_values": cols * channels, "output_channels": out_channels}
    if source.dtype is graph.DType.FLOAT32:
        counts, state = conv_counts_f32.by_rows(fields, rows), padded(out_channels, FOUR) * SUM_BYTES
        call = KernelCall("conv2d_f32_by_rows", fields | numbers, state_bytes=state, counts=counts)
        return _with_weights(call, constants)
    counts = conv_counts.by_rows(fields, rows)
    if results.rounding == "tflite":
        factors = None if is_asymmetric(operator) else settled(constants, numbers, output)
        if factors is None:
            raise ValueError(f"{operator.name} has no kernel by rows that rounds twice")
        constants, numbers = factors
    if is_asymmetric(operator):
        constants, offsets = in_bytes(constants)
        params = constants.packed_fours(runs=rows) | {"offsets": offsets} | fields | numbers
        state, counts = (out_channels + 1) * SUM_BYTES, conv_counts.with_total(counts, fields)
        return KernelCall("conv2d_s8_by_rows", params, state_bytes=state, mode="asymmetric", counts=counts)
    vectors = tuple(by.by_rows(constants, numbers, fields, rows) for by in (conv_mve, conv_rvv))
    state = out_channels * SUM_BYTES
    params = constants.packed_fours(runs=rows) | {"offsets": None} | fields | numbers
    call = KernelCall("conv2d_s8_by_rows", params, state_bytes=state, counts=counts, others=vectors)
    return call if results.rounding == "once" else twin(call, output)


def to_rows_kernel(
    rows: tuple[int, int], results: Results, operator: Operator, source: Tensor, output: Tensor
) -> KernelCall:
    """The kernel whose output channels form `rows`, (number of rows, channels of a row); see Conv2dToRows."""
    channels, (count, row_channels) = source.shape[2], rows
    check_constants(operator, (count * row_channels, 1, 1, channels))
    constants, numbers = numbers_of(results, operator, source, output)
    fields: Params = {"input_channels": channels, "row_channels": row_channels}
    if source.dtype is graph.DType.FLOAT32:
        call = KernelCall("conv2d_f32_to_rows", fields | numbers, counts=conv_counts_f32.to_rows(fields))
        return _with_weights(call, constants, count)
    arrays = constants.packed_fours(runs=1, groups=count)
    fields["row_words"] = row_channels * (2 + -(-channels // GROUP))
    return KernelCall("conv2d_s8_to_rows", arrays | fields | numbers, counts=conv_counts.to_rows(fields))


def _full_fields(conv: Windowing, source: Tensor) -> Params:
    return {
        "input_rows": source.shape[0],
        "row_values": source.shape[1] * source.shape[2],
        "output_channels": conv.out_channels,
    }


def _pixel_fields(conv: Windowing, source: Tensor) -> Params:
    values = source.shape[1] * source.shape[2]
    return {
        "dims.input_channels": values,
        "dims.output_cols": 1,
        "dims.output_channels": conv.out_channels,
        "stride_rows": 1,
        "pixel_step": values,
    }


def _dual_kernel(constants: ConvConstants, numbers: Params, fields: dict[str, Any]) -> tuple[KernelCall, ...]:
    """conv2d_s8_1x1_dual, if it is exact for these constants; `fields` are those of conv2d_s8_1x1_direct.

    It is for cores with Arm's DSP extension; see firmware/arith/int8/mcud_dual_s8.h.
    """
    weights = constants.weights.reshape(len(constants.weights), -1)
    if numbers["quant.left_shift"] != 0 or fields["dims.input_channels"] % 4 or (weights == -128).any():
        return ()
    assert constants.multipliers is not None
    largest = requantize.largest_products(weights) + np.abs(constants.bias.astype(np.int64))
    if largest[1::2].max(initial=0) >= _MOST_DUAL_SUM:
        return ()
    arrays: Params = {"packed_weights": pack_dual(constants.bias, weights, constants.multipliers)}
    counts = conv_counts.dual(fields, EIGHT)
    return (KernelCall("conv2d_s8_1x1_dual", arrays | fields | numbers, isa=Isa.DSP, counts=counts),)
