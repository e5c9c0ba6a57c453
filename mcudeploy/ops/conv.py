"""Convolutions: general, pointwise, depthwise, and the matrix products that are convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy import graph
from mcudeploy.ops import requantize
from mcudeploy.ops.opdef import Axis, AxisKind, ConstantArray, Index, KernelCall, LoopNest, ParamValue

if TYPE_CHECKING:
    from mcudeploy.graph import Operator, Shape, Tensor

_OFFSET_BYTES = 4
"""One uint32_t row offset of the kernels' scratch."""
_SUM_BYTES = 4
"""One int32_t or float sum of a convolution that is taken by rows."""
_TAP_BYTES = 8
"""One entry of the depthwise kernel's list of taps."""
_PATCHES = 2
"""Output pixels whose input patches a general convolution gathers at a time."""


def window_positions(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]) -> int:
    """How many times a window fits along a padded dimension. Raises ValueError where it never does."""
    free = size + pads[0] + pads[1] - dilation * (kernel - 1) - 1
    if free < 0:
        raise ValueError(
            f"a window of {kernel} (dilation {dilation}) does not fit {size} plus pads {pads[0]}, {pads[1]}"
        )
    return free // stride + 1


@dataclass(frozen=True, slots=True)
class Conv2d:
    """y[oh, ow, Kg*g + k] = clip(bias + sum over r, s, c of x[..., Cg*g + c] * w[Kg*g + k, r, s, c]).

    x (H, W, C) -> y (OH, OW, K). Pairs are (rows, cols); pads are (top, left, bottom, right).
    Constants: `weights` int8 or float32 [K, kh, kw, C/groups]; `bias` int32 (scale sx * sw[k]) or float32
    [K]; for int8 also `weight_scale` float32 [K], the weights' zero point being 0.
    A matrix product with constant weights is a 1x1 convolution over (B, 1, K), or one with kernel (H, W)
    behind a flatten of (H, W, C). `low` and `high` are the fused clip in real values.
    """

    kind: ClassVar[str] = "Conv2d"
    is_view: ClassVar[bool] = False
    accumulates: ClassVar[bool] = False

    out_channels: int
    kernel_shape: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    low: float = -inf
    high: float = inf

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """One input (H, W, C). Raises ValueError where groups or window do not fit it."""
        ((rows, cols, channels),) = inputs
        if min(*self.kernel_shape, *self.stride, *self.dilation, self.groups, self.out_channels) < 1:
            raise ValueError("kernel, stride, dilation, groups and channels must be at least 1")
        if min(self.pads) < 0:
            raise ValueError(f"negative pads {self.pads} are not supported")
        if channels % self.groups or self.out_channels % self.groups:
            raise ValueError(
                f"{channels} input and {self.out_channels} output channels do not divide "
                f"into {self.groups} groups"
            )
        top, left, bottom, right = self.pads
        group_inputs, group_outputs = channels // self.groups, self.out_channels // self.groups
        axes = (
            Axis("oh", self._positions(0, rows, (top, bottom))),
            Axis("ow", self._positions(1, cols, (left, right))),
            Axis("g", self.groups),
            Axis("k", group_outputs),
            Axis("r", self.kernel_shape[0], AxisKind.REDUCED),
            Axis("s", self.kernel_shape[1], AxisKind.REDUCED),
            Axis("c", group_inputs, AxisKind.REDUCED),
        )
        read = (
            Index.of(oh=self.stride[0], r=self.dilation[0], offset=-top),
            Index.of(ow=self.stride[1], s=self.dilation[1], offset=-left),
            Index.of(g=group_inputs, c=1),
        )
        write = (Index.of(oh=1), Index.of(ow=1), Index.of(g=group_outputs, k=1))
        return LoopNest(axes, (read,), write, multiplies=True)

    def _positions(self, dimension: int, size: int, pads: tuple[int, int]) -> int:
        return window_positions(
            size, self.kernel_shape[dimension], self.stride[dimension], self.dilation[dimension], pads
        )

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Chooses among the general, pointwise, whole-window and depthwise kernels.

        Raises ValueError for constants of a wrong shape, or int8 sums that could overflow an int32.
        """
        return conv_kernel(self, operator, inputs[0], output)

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """None: pixels of an input row are read again after the output's first ones are written."""
        return ()

    def by_rows(self, source: Shape) -> Conv2dByRows | None:
        """The same sums of an input (H, W, C), taken in by blocks of rows.

        None unless the kernel is as large as the input, dense and of one group, and there are rows to cut.
        """
        if source[0] == 1 or self.kernel_shape != source[:2] or not _is_plain(self):
            return None
        return Conv2dByRows(self.out_channels, self.kernel_shape, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Conv2dByRows:
    """A Conv2d whose kernel is as large as its input; each step adds the products of a block of rows.

    x (H, W, C) -> y (1, 1, K), kernel_shape (H, W); constants and bits as for the Conv2d without pads.
    """

    kind: ClassVar[str] = "Conv2dByRows"
    is_view: ClassVar[bool] = False
    accumulates: ClassVar[bool] = True

    out_channels: int
    kernel_shape: tuple[int, int]
    low: float = -inf
    high: float = inf

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """One input (H, W, C), whose rows are the reduced axis "r". Raises ValueError for another H or W."""
        ((rows, cols, channels),) = inputs
        if self.kernel_shape != (rows, cols) or self.out_channels < 1:
            raise ValueError(
                f"{self.out_channels} channels of kernel {self.kernel_shape} do not take ({rows}, {cols})"
            )
        axes = (
            Axis("k", self.out_channels),
            Axis("r", rows, AxisKind.REDUCED),
            Axis("s", cols, AxisKind.REDUCED),
            Axis("c", channels, AxisKind.REDUCED),
        )
        read = Index.of(r=1), Index.of(s=1), Index.of(c=1)
        write = Index.of(), Index.of(), Index.of(k=1)
        return LoopNest(axes, (read,), write, multiplies=True)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """conv2d_s8_by_rows or conv2d_f32_by_rows. Raises ValueError as Conv2d.kernel does."""
        (source,) = inputs
        _, cols, channels = source.shape
        _check_constants(operator, (self.out_channels, *self.kernel_shape, channels))
        arrays, numbers, suffix = _numbers(self, operator, source, output)
        fields: dict[str, ParamValue] = {
            "row_values": cols * channels,
            "output_channels": self.out_channels,
        }
        state = self.out_channels * _SUM_BYTES
        return KernelCall(f"conv2d_{suffix}_by_rows", arrays | fields | numbers, state_bytes=state)

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """None: the output is written when all of the input has been read."""
        return ()


def conv_kernel(conv: Conv2d, operator: Operator, source: Tensor, output: Tensor) -> KernelCall:
    """The C kernel of one convolution with its constants packed; see Conv2d.kernel."""
    weights = operator.constants["weights"]
    channels = source.shape[2]
    _check_constants(operator, (conv.out_channels, *conv.kernel_shape, channels // conv.groups))
    arrays, numbers, suffix = _numbers(conv, operator, source, output)
    if _is_depthwise(conv, channels):
        arrays["weights"] = _by_tap(weights)
        fields = _window_fields(conv, source, output) | {"multiplier": conv.out_channels // channels}
        scratch = conv.kernel_shape[0] * _OFFSET_BYTES
        if suffix == "s8":
            scratch += conv.kernel_shape[0] * conv.kernel_shape[1] * _TAP_BYTES
        return KernelCall(f"dwconv2d_{suffix}", arrays | fields | numbers, scratch)
    if conv.kernel_shape == (1, 1) and conv.pads == (0, 0, 0, 0) and conv.groups == 1:
        fields = {
            "input_channels": channels,
            "output_cols": output.shape[1],
            "output_channels": conv.out_channels,
            "stride_rows": conv.stride[0],
            "stride_cols": conv.stride[1],
        }
        return KernelCall(f"conv2d_{suffix}_1x1", arrays | fields | numbers)
    if conv.kernel_shape == source.shape[:2] and output.shape[:2] == (1, 1) and _is_plain(conv):
        fields = {
            "input_rows": source.shape[0],
            "row_values": source.shape[1] * channels,
            "output_channels": conv.out_channels,
        }
        scratch = source.shape[0] * _OFFSET_BYTES
        return KernelCall(f"conv2d_{suffix}_full", arrays | fields | numbers, scratch)
    group_inputs = channels // conv.groups
    patch = conv.kernel_shape[0] * conv.kernel_shape[1] * group_inputs
    fields = _window_fields(conv, source, output) | {
        "groups": conv.groups,
        "group_inputs": group_inputs,
        "group_outputs": conv.out_channels // conv.groups,
        "patch_values": patch,
    }
    scratch = conv.kernel_shape[0] * _OFFSET_BYTES + _PATCHES * patch * source.dtype.size_bytes
    return KernelCall(f"conv2d_{suffix}", arrays | fields | numbers, scratch)


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


def _is_plain(conv: Conv2d) -> bool:
    return conv.pads == (0, 0, 0, 0) and conv.dilation == (1, 1) and conv.groups == 1


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
    conv: Conv2d | Conv2dByRows, operator: Operator, source: Tensor, output: Tensor
) -> tuple[dict[str, ParamValue], dict[str, ParamValue], str]:
    """Pointer parameters, arithmetic parameters and the name's dtype part."""
    if source.dtype is not output.dtype:
        raise ValueError(f"{operator.name}: a convolution from {source.dtype} to {output.dtype}")
    if source.dtype is graph.DType.FLOAT32:
        low, high = requantize.float_bounds(conv.low, conv.high)
        constants = operator.constants
        floats: dict[str, ParamValue] = {
            "weights": np.ascontiguousarray(constants["weights"], np.float32),
            "bias": np.ascontiguousarray(constants["bias"], np.float32),
        }
        return floats, {"low": low, "high": high}, "f32"
    read, made = requantize.quantization_of(source), requantize.quantization_of(output)
    weights = np.ascontiguousarray(operator.constants["weights"], np.int8)
    bias = fold_zero_point(operator.name, weights, operator.constants["bias"], read.zero_point)
    scales = operator.constants["weight_scale"].astype(np.float64) * read.scale / made.scale
    requantize.check_accumulator(operator.name, _largest_sums(weights, bias), scales)
    multipliers, shift = requantize.quantize_scale(scales)
    low_q, high_q = requantize.clamp_bounds(made, conv.low, conv.high)
    arrays: dict[str, ParamValue] = {"weights": weights, "bias": bias, "multipliers": multipliers}
    scalars: dict[str, ParamValue] = {
        "shift": shift,
        "input_zero_point": read.zero_point,
        "output_zero_point": made.zero_point,
        "low": low_q,
        "high": high_q,
    }
    return arrays, scalars, "s8"


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
