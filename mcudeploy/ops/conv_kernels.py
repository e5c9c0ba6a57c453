"""The C kernels of convolutions: which one, and its constants packed the way it wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy import graph
from mcudeploy.ops import conv_mve, requantize
from mcudeploy.ops.opdef import ConstantArray, KernelCall, ParamValue
from mcudeploy.ops.packing import GROUP, pack_blocks, pack_fours, pack_records, pack_taps, padded

if TYPE_CHECKING:
    from mcudeploy.graph import Operator, Tensor
    from mcudeploy.ops.channel_rows import Conv2dToRows
    from mcudeploy.ops.conv import Conv2d, Conv2dByRows

_OFFSET_BYTES = 4
"""One uint32_t row offset of the kernels' scratch."""
_SUM_BYTES = 4
"""One int32_t or float sum of a convolution that is taken by rows."""
_TAP_BYTES = 8
"""One tap in the lists of the depthwise kernels: two words, or a pointer."""
_MOST_EXPANDED_BYTES = 1280
"""What the expanded windows of two pixels may take: deep ones stand late in a network, where their scratch
would be the peak of a plan whose tensors are cut."""
_SHORT_RUN = 8
"""Float values that lie in one run in a row of a window, where gathering it first takes less time."""
_MOST_GATHERED = 64
"""Values of a float window that is gathered; four of them lie in scratch."""
_PIXELS = 3
"""Pixels that a pointwise convolution takes at a time."""
_EXPANDED_BYTES = 2
"""One int8 value in a block of pixels that is multiplied."""
_PAIR = 2
"""Output channels that a block of pixels is multiplied with at a time."""
_FOUR = 4
"""Output channels that a single pixel is multiplied with at a time; channels of a depthwise block."""


@dataclass(frozen=True, slots=True, eq=False)
class Constants:
    """The constants of a convolution, not packed yet; float32 ones have no multipliers."""

    weights: NDArray[Any]
    bias: NDArray[Any]
    multipliers: NDArray[np.int32] | None = None

    def arrays(self) -> dict[str, ParamValue]:
        """As they are."""
        arrays: dict[str, ParamValue] = {"weights": self.weights, "bias": self.bias}
        return arrays if self.multipliers is None else arrays | {"multipliers": self.multipliers}

    def packed(self, *, runs: int, block: int, groups: int = 1) -> dict[str, ParamValue]:
        """int8, in records of `block` output channels; see pack_blocks."""
        return self._records(pack_blocks(self.weights, groups, runs, block), groups, block)

    def packed_floats(self, groups: int = 1) -> dict[str, ParamValue]:
        """float32, in blocks of four channels; see pack_fours."""
        return {"weights": pack_fours(self.weights, groups), "bias": pack_fours(self.bias, groups)}

    def packed_taps(self) -> dict[str, ParamValue]:
        """int8, depthwise, in records of four channels; see pack_taps."""
        return self._records(pack_taps(self.weights.reshape(len(self.weights), -1)), 1, _FOUR)

    def _records(self, weights: NDArray[np.int32], groups: int, block: int) -> dict[str, ParamValue]:
        assert self.multipliers is not None
        return {"records": pack_records(self.bias, weights, self.multipliers, groups, block)}


def conv_kernel(conv: Conv2d, operator: Operator, source: Tensor, output: Tensor) -> KernelCall:
    """The C kernel of one convolution with its constants packed; see Conv2d.kernel."""
    channels = source.shape[2]
    _check_constants(operator, (conv.out_channels, *conv.kernel_shape, channels // conv.groups))
    if source.dtype is graph.DType.FLOAT32:
        return _float_kernel(conv, operator, source, output)
    constants, numbers = _numbers(conv, operator, source, output)
    if _is_depthwise(conv, channels):
        return _depthwise_kernel(conv, constants, numbers, source, output)
    if conv.kernel_shape == source.shape[:2] and output.shape[:2] == (1, 1) and is_plain(conv):
        fields = _full_fields(conv, source)
        arrays = constants.packed(runs=source.shape[0], block=_FOUR)
        vectors = conv_mve.full(constants, numbers, fields, source.shape[0])
        return KernelCall("conv2d_s8_full", arrays | fields | numbers, mve=vectors)
    if _is_pointwise(conv):
        fields = {
            "input_channels": channels,
            "output_cols": output.shape[1],
            "output_channels": conv.out_channels,
            "groups": -(-channels // GROUP),
            "stride_rows": conv.stride[0],
            "pixel_step": conv.stride[1] * channels,
        }
        scratch = padded(channels, GROUP) * _PIXELS * _EXPANDED_BYTES
        arrays = constants.packed(runs=1, block=_PAIR)
        vectors = conv_mve.pointwise(constants, numbers, fields)
        return KernelCall("conv2d_s8_1x1", arrays | fields | numbers, scratch, mve=vectors)
    return _general_kernel(conv, constants, numbers, source, output)


def _general_kernel(
    conv: Conv2d, constants: Constants, numbers: dict[str, ParamValue], source: Tensor, output: Tensor
) -> KernelCall:
    """conv2d_s8, or conv2d_s8_deep where that one's expanded windows would take too much of the arena."""
    kernel_rows, kernel_cols = conv.kernel_shape
    group_inputs = source.shape[2] // conv.groups
    offsets = kernel_rows * _OFFSET_BYTES
    fields = _window_fields(conv, source, output) | {
        "groups": conv.groups,
        "group_inputs": group_inputs,
        "group_outputs": conv.out_channels // conv.groups,
    }
    zero_point: dict[str, ParamValue] = {
        "left": numbers["left"],
        "input_zero_point": requantize.quantization_of(source).zero_point,
    }
    numbers = {name: value for name, value in numbers.items() if name != "left"}
    vectors = conv_mve.general(constants, numbers, fields | zero_point, conv.groups)
    in_one_run = _in_one_run(conv)
    row_runs, run_values = (1, kernel_cols * group_inputs) if in_one_run else (kernel_cols, group_inputs)
    patch_groups = kernel_rows * row_runs * -(-run_values // GROUP)
    odd_row = output.shape[1] % 2 == 1 and output.shape[1] > 1
    most_pixels = 3 if odd_row else 2
    if 2 * patch_groups * GROUP * _EXPANDED_BYTES > _MOST_EXPANDED_BYTES:
        patch_groups = -(-kernel_rows * kernel_cols * group_inputs // GROUP)
        arrays = constants.packed(runs=1, block=_FOUR, groups=conv.groups)
        fields |= {"patch_groups": patch_groups} | zero_point
        scratch = offsets + patch_groups * GROUP
        return KernelCall("conv2d_s8_deep", arrays | fields | numbers, scratch, mve=vectors)
    fields |= {"row_runs": row_runs, "run_values": run_values, "patch_groups": patch_groups}
    fields |= {"most_pixels": most_pixels} | zero_point
    arrays = constants.packed(runs=kernel_rows * row_runs, block=_PAIR, groups=conv.groups)
    scratch = offsets + most_pixels * patch_groups * GROUP * _EXPANDED_BYTES
    scratch += run_values if in_one_run and group_inputs % GROUP else 0
    return KernelCall("conv2d_s8", arrays | fields | numbers, scratch, mve=vectors)


def _depthwise_kernel(
    conv: Conv2d, constants: Constants, numbers: dict[str, ParamValue], source: Tensor, output: Tensor
) -> KernelCall:
    """dwconv2d_s8, or dwconv2d_s8_multiplied where an input channel has several output channels."""
    channels = source.shape[2]
    zero_point = requantize.quantization_of(source).zero_point
    taps = conv.kernel_shape[0] * conv.kernel_shape[1]
    scratch = conv.kernel_shape[0] * _OFFSET_BYTES + taps * _TAP_BYTES
    fields = _window_fields(conv, source, output)
    if conv.out_channels > channels:
        fields |= {
            "multiplier": conv.out_channels // channels,
            "left": numbers.pop("left"),
            "input_zero_point": zero_point,
        }
        arrays = constants.arrays() | {"weights": _by_tap(constants.weights)}
        return KernelCall("dwconv2d_s8_multiplied", arrays | fields | numbers, scratch)
    del fields["output_channels"]
    fields = {("channels" if name == "input_channels" else name): value for name, value in fields.items()}
    padding = np.full(channels, zero_point, np.int8)
    arrays = constants.packed_taps() | {"padding": padding}
    scratch += _OFFSET_BYTES
    vectors = conv_mve.depthwise(constants, numbers, fields, padding, scratch)
    return KernelCall("dwconv2d_s8", arrays | fields | numbers, scratch, mve=vectors)


def _float_kernel(conv: Conv2d, operator: Operator, source: Tensor, output: Tensor) -> KernelCall:
    """The float32 kernels."""
    channels = source.shape[2]
    constants, numbers = _numbers(conv, operator, source, output)
    if _is_depthwise(conv, channels):
        arrays = constants.arrays() | {"weights": _by_tap(constants.weights)}
        fields = _window_fields(conv, source, output) | {"multiplier": conv.out_channels // channels}
        scratch = conv.kernel_shape[0] * _OFFSET_BYTES
        return KernelCall("dwconv2d_f32", arrays | fields | numbers, scratch)
    if _is_pointwise(conv):
        fields = {
            "input_channels": channels,
            "output_cols": output.shape[1],
            "output_channels": conv.out_channels,
            "stride_rows": conv.stride[0],
            "pixel_step": conv.stride[1] * channels,
            "rows_join": int(conv.stride == (1, 1)),
        }
        return KernelCall("conv2d_f32_1x1", constants.packed_floats() | fields | numbers)
    if conv.kernel_shape == source.shape[:2] and output.shape[:2] == (1, 1) and is_plain(conv):
        fields = constants.packed_floats() | _full_fields(conv, source)
        return KernelCall("conv2d_f32_full", fields | numbers, source.shape[0] * _OFFSET_BYTES)
    group_inputs = channels // conv.groups
    fields = _window_fields(conv, source, output) | {
        "groups": conv.groups,
        "group_inputs": group_inputs,
        "group_outputs": conv.out_channels // conv.groups,
    }
    arrays = constants.packed_floats(conv.groups)
    offsets = conv.kernel_shape[0] * _OFFSET_BYTES
    one_run = _in_one_run(conv)
    run = group_inputs * (conv.kernel_shape[1] if one_run else 1)
    patch = conv.kernel_shape[0] * conv.kernel_shape[1] * group_inputs
    if run <= _SHORT_RUN and patch <= _MOST_GATHERED:
        fields |= {"patch_values": patch}
        scratch = offsets + _FOUR * patch * source.dtype.size_bytes
        return KernelCall("conv2d_f32_gathered", arrays | fields | numbers, scratch)
    return KernelCall("conv2d_f32", arrays | fields | {"one_run": int(one_run)} | numbers, offsets)


def by_rows_kernel(conv: Conv2dByRows, operator: Operator, source: Tensor, output: Tensor) -> KernelCall:
    """The same for one that takes in its input by rows; see Conv2dByRows.kernel."""
    rows, cols, channels = source.shape
    _check_constants(operator, (conv.out_channels, *conv.kernel_shape, channels))
    constants, numbers = _numbers(conv, operator, source, output)
    outputs = padded(conv.out_channels, _FOUR)
    fields: dict[str, ParamValue] = {"row_values": cols * channels, "output_channels": conv.out_channels}
    if source.dtype is graph.DType.FLOAT32:
        floats = constants.packed_floats() | fields | numbers
        return KernelCall("conv2d_f32_by_rows", floats, state_bytes=outputs * _SUM_BYTES)
    arrays = constants.packed(runs=rows, block=_FOUR)
    numbers = {"padded_outputs": outputs} | numbers
    vectors = conv_mve.by_rows(constants, numbers, fields, rows)
    state = outputs * _SUM_BYTES
    return KernelCall("conv2d_s8_by_rows", arrays | fields | numbers, state_bytes=state, mve=vectors)


def to_rows_kernel(conv: Conv2dToRows, operator: Operator, source: Tensor, output: Tensor) -> KernelCall:
    """The same for one whose output channels are rows; see Conv2dToRows.kernel."""
    channels = source.shape[2]
    _check_constants(operator, (conv.rows * conv.channels, 1, 1, channels))
    constants, numbers = _numbers(conv, operator, source, output)
    fields: dict[str, ParamValue] = {"input_channels": channels, "row_channels": conv.channels}
    if source.dtype is graph.DType.FLOAT32:
        return KernelCall("conv2d_f32_to_rows", constants.packed_floats(conv.rows) | fields | numbers)
    arrays = constants.packed(runs=1, block=_FOUR, groups=conv.rows)
    record_words = _FOUR * (2 + -(-channels // GROUP))
    fields["row_words"] = -(-conv.channels // _FOUR) * record_words
    return KernelCall("conv2d_s8_to_rows", arrays | fields | numbers)


def _check_constants(operator: Operator, needed: tuple[int, ...]) -> None:
    """Raises ValueError where the weights have another shape than `needed`, or the bias does not fit it."""
    weights, bias = operator.constants["weights"], operator.constants["bias"]
    if weights.shape != needed:
        raise ValueError(f"{operator.name}: weights {list(weights.shape)} instead of {list(needed)}")
    if bias.shape != needed[:1]:
        raise ValueError(f"{operator.name}: bias needs {needed[0]} values")


def _by_tap(weights: ConstantArray) -> ConstantArray:
    """[K, kh, kw, 1] -> [kh * kw, K]: the channels of one tap lie side by side."""
    by_tap = weights.reshape(len(weights), -1).T
    if weights.dtype == np.int8:
        return np.ascontiguousarray(by_tap, np.int8)
    return np.ascontiguousarray(by_tap, np.float32)


def _is_depthwise(conv: Conv2d, channels: int) -> bool:
    """One input channel per group; with a single channel in all, the general kernel is the better one."""
    return conv.groups == channels and channels > 1


def is_plain(conv: Conv2d) -> bool:
    """No padding, no dilation, one group."""
    return conv.pads == (0, 0, 0, 0) and conv.dilation == (1, 1) and conv.groups == 1


def _is_pointwise(conv: Conv2d) -> bool:
    return conv.kernel_shape == (1, 1) and conv.pads == (0, 0, 0, 0) and conv.groups == 1


def _in_one_run(conv: Conv2d) -> bool:
    """Whether the taps of a window's row lie one behind the other, for each group of channels."""
    return conv.kernel_shape[1] == 1 or (conv.groups == 1 and conv.dilation[1] == 1)


def _full_fields(conv: Conv2d, source: Tensor) -> dict[str, ParamValue]:
    return {
        "input_rows": source.shape[0],
        "row_values": source.shape[1] * source.shape[2],
        "output_channels": conv.out_channels,
    }


def _window_fields(conv: Conv2d, source: Tensor, output: Tensor) -> dict[str, ParamValue]:
    return {
        "input_rows": source.shape[0],
        "input_cols": source.shape[1],
        "input_channels": source.shape[2],
        "output_cols": output.shape[1],
        "output_channels": conv.out_channels,
        "kernel_rows": conv.kernel_shape[0],
        "kernel_cols": conv.kernel_shape[1],
        "stride_rows": conv.stride[0],
        "stride_cols": conv.stride[1],
        "dilation_rows": conv.dilation[0],
        "dilation_cols": conv.dilation[1],
        "pad_top": conv.pads[0],
        "pad_left": conv.pads[1],
    }


def _numbers(
    conv: Conv2d | Conv2dByRows | Conv2dToRows, operator: Operator, source: Tensor, output: Tensor
) -> tuple[Constants, dict[str, ParamValue]]:
    """The constant arrays and the arithmetic parameters."""
    if source.dtype is not output.dtype:
        raise ValueError(f"{operator.name}: a convolution from {source.dtype} to {output.dtype}")
    if source.dtype is graph.DType.FLOAT32:
        low, high = requantize.float_bounds(conv.low, conv.high)
        floats = Constants(
            np.ascontiguousarray(operator.constants["weights"], np.float32),
            np.ascontiguousarray(operator.constants["bias"], np.float32),
        )
        return floats, {"low": low, "high": high}
    read, made = requantize.quantization_of(source), requantize.quantization_of(output)
    weights = np.ascontiguousarray(operator.constants["weights"], np.int8)
    bias = fold_zero_point(operator.name, weights, operator.constants["bias"], read.zero_point)
    scales = operator.constants["weight_scale"].astype(np.float64) * read.scale / made.scale
    requantize.check_accumulator(operator.name, _largest_sums(weights, bias), scales)
    weights, bias, scales = requantize.settle_channels(weights, bias, scales)
    multipliers, left = requantize.quantize_sums(operator.name, scales, _largest_sums(weights, bias))
    low_q, high_q = requantize.clamp_bounds(made, conv.low, conv.high)
    scalars: dict[str, ParamValue] = {
        "left": left,
        "output_zero_point": made.zero_point,
        "low": low_q,
        "high": high_q,
    }
    return Constants(weights, bias, multipliers), scalars


def fold_zero_point(
    name: str, weights: NDArray[np.int8], bias: ConstantArray, zero_point: int
) -> NDArray[np.int32]:
    """bias[k] - zero_point * sum of weights[k]: with it, the raw input values can be multiplied.

    Raises ValueError where the result does not fit an int32.
    """
    sums = weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int64)
    folded = bias.astype(np.int64) - zero_point * sums
    if np.abs(folded).max(initial=0) > np.iinfo(np.int32).max:
        raise ValueError(f"{name}: the bias with the folded zero point does not fit an int32")
    return np.asarray(folded, np.int32)


def _largest_sums(weights: NDArray[np.int8], bias: NDArray[np.int32]) -> NDArray[np.int64]:
    """The largest absolute value any partial sum of a channel can take."""
    reach = np.abs(weights.reshape(len(weights), -1).astype(np.int64)).sum(axis=1) * 128
    return np.asarray(reach + np.abs(bias.astype(np.int64)), np.int64)
