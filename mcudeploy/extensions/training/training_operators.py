"""Operators of a training step: convolutions whose weights are tensors, gradients, and updates in place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.training.training_counts import (
    WIDENED,
    input_gradient_counts,
    packed_gradient_counts,
    widened_gradient_counts,
)
from mcudeploy.extensions.training.training_forward_counts import forward_counts, gathered_counts
from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import Access, Axis, Index, KernelCall, LoopNest, Params, PlainOperator, TableIndex
from mcudeploy.ops.common import (
    ELEMENTWISE,
    OFFSET_BYTES,
    is_int8,
    reduced_axis,
    require_same_dtype,
    spatial_axes,
    within,
)
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_constants import FOUR, without
from mcudeploy.ops.conv.conv_kernels import MOST_GATHERED
from mcudeploy.ops.conv.packing import pack_fours, scaled_weights
from mcudeploy.ops.conv.windows import window_fields
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.requantize import STORED, dequantize_table, quantization_of

_BITS = 8
"""Bits of a byte of a mask."""
ONCE = "once"
"""The name of an axis of one value."""


@dataclass(frozen=True, slots=True)
class TrainedConv2d(PlainOperator):
    """A float32 Conv2d of x (H, W, C) by weights (1, 1, K * kh * kw * C / groups) and a bias (1, 1, K).

    `conv` is dense or depthwise, and has the clip. Dense weights are stored as [K, kh, kw, C], depthwise
    weights as [kh, kw, K].
    """

    kind: ClassVar[str] = "TrainedConv2d"
    named: ClassVar[str] = "conv"

    conv: Conv2d

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loops of the convolution. Raises ValueError for weights or a bias of another size."""
        x, weights, bias = inputs
        plain = self.conv.loops((x,))
        require_parameters(self.conv, x, weights)
        if bias != (1, 1, self.conv.out_channels):
            raise ValueError(f"a bias {bias} does not fit {self.conv.out_channels} channels")
        group_outputs = self.conv.out_channels // self.conv.groups
        channel = (Index(), Index(), Index.of(g=group_outputs, k=1))
        weight = (Index(), Index(), weight_index(self.conv, x[2]))
        return LoopNest(plain.axes, (*plain.reads, weight, channel), plain.write, multiplies=True)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """conv2d_f32_trained, with the variant conv2d_f32_trained_gathered, or dwconv2d_f32_trained."""
        require_floats(*inputs, output)
        fields = window_fields(self.conv.windowing, inputs[0], output)
        fields |= multiplier_field(self.conv, inputs[0].shape)
        if self.conv.groups == 1:
            fields["rows_join"] = int(
                self.conv.windowing.is_plain and self.conv.kernel_shape == self.conv.stride == (1, 1)
            )
        bounds: Params = {"min": self.conv.low, "max": self.conv.high}
        kernel, act = f"{kernel_family(self.conv)}_trained", within("act", bounds)
        scratch = self.conv.kernel_shape[0] * OFFSET_BYTES
        call = KernelCall(kernel, fields | act, scratch, counts=forward_counts(fields))
        patch = prod(self.conv.kernel_shape) * inputs[0].shape[2]
        if self.conv.groups > 1 or self.conv.kernel_shape == (1, 1) or patch > MOST_GATHERED:
            return call
        fields = without(fields, "rows_join") | {"patch_values": patch}
        scratch += FOUR * patch * output.dtype.size_bytes
        counts = gathered_counts(fields)
        other = KernelCall("conv2d_f32_trained_gathered", fields | act, scratch, counts=counts)
        return replace(call, others=(other,))


@dataclass(frozen=True, slots=True)
class Conv2dInputGradient(PlainOperator):
    """The gradient of the input (H, W, C) of `conv` from the gradient (OH, OW, K) of its output, float32.

    The weights are a second input in the stored order of TrainedConv2d, or constants["weights"] in that
    order. Grouped weights that are not depthwise are constants, in the order of dense weights. Dense
    constants may be int8, with constants["weight_scale"] float32 [K].
    """

    kind: ClassVar[str] = "Conv2dInputGradient"
    named: ClassVar[str] = "input_gradient"

    conv: Conv2d
    input_shape: tuple[int, int, int]

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """An input row reads the output rows whose windows reach it. Raises ValueError for other shapes."""
        gradient, *weights = inputs
        if self.conv.loops((self.input_shape,)).output_shape() != gradient:
            raise ValueError(f"a gradient {gradient} is not of the output for {self.input_shape}")
        rows, cols, channels = self.input_shape
        # with a stride, an input value lies under only some of a window's taps
        taps = tuple(
            -(-size // step) for size, step in zip(self.conv.kernel_shape, self.conv.stride, strict=True)
        )
        outputs = self.conv.out_channels // self.conv.groups
        axes = (
            *spatial_axes(self.input_shape),
            reduced_axis("k", outputs),
            reduced_axis("r", taps[0]),
            reduced_axis("s", taps[1]),
        )
        of_channel = (
            Index.of(k=1) if self.conv.groups == 1 else _of_group(channels, outputs, self.conv.groups)
        )
        reads: list[Access] = [
            (
                reaching(self.conv, 0, "row", rows, gradient[0]),
                reaching(self.conv, 1, "col", cols, gradient[1]),
                of_channel,
            )
        ]
        for shape in weights:
            require_parameters(self.conv, self.input_shape, shape)
            reads.append((Index(), Index(), weight_index(self.conv, channels, ("ch", "ch"))))
        return LoopNest(axes, tuple(reads), ELEMENTWISE, multiplies=True)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """The kernel of dense, depthwise or grouped weights; for dense constants conv2d_f32_packed_gradient,
        which reads the same packed array as the forward kernel.
        """
        require_floats(*inputs, output)
        fields = window_fields(self.conv.windowing, output, inputs[0]) | {"output_rows": inputs[0].shape[0]}
        weights = operator.constants.get("weights")
        if self.conv.groups != 1:
            arrays: Params = {"weights": weights}
            depthwise = self.conv.groups == self.input_shape[2]
            fields |= multiplier_field(self.conv, output.shape) if depthwise else {"groups": self.conv.groups}
            kernel = f"{'dwconv2d' if depthwise else 'grouped_conv2d'}_f32_input_gradient"
            return KernelCall(kernel, arrays | fields, counts=input_gradient_counts(fields))
        if weights is None:
            counts = input_gradient_counts(fields)
            return KernelCall("conv2d_f32_input_gradient", fields, counts=counts)
        by_channel = np.asarray(weights).reshape(self.conv.out_channels, -1)
        if "weight_scale" not in operator.constants:
            return self._packed(by_channel.astype(np.float32), fields)
        integers = by_channel.astype(np.int8)
        scale = np.asarray(operator.constants["weight_scale"], np.float32)
        stored: Params = {"weights": pack_fours(integers, 1), "scale": pack_fours(scale, 1)}
        scratch = 4 * output.dtype.size_bytes * min(output.shape[2], WIDENED)
        counts = widened_gradient_counts(fields)
        other = KernelCall("conv2d_f32_packed_gradient_s8w", stored | fields, scratch, counts=counts)
        return replace(self._packed(scaled_weights(integers, scale), fields), others=(other,))

    @staticmethod
    def _packed(by_channel: NDArray[np.float32], fields: Params) -> KernelCall:
        arrays, counts = {"weights": pack_fours(by_channel, 1)}, packed_gradient_counts(fields)
        return KernelCall("conv2d_f32_packed_gradient", arrays | fields, counts=counts)


@dataclass(frozen=True, slots=True)
class ClipGradient(PlainOperator):
    """The first input where the second, a clipped tensor of the same shape, is between the bounds; else 0."""

    kind: ClassVar[str] = "ClipGradient"
    named: ClassVar[str] = "clip_gradient"

    low: float = -inf
    high: float = inf

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each element reads the elements at its place. Raises ValueError for unequal shapes."""
        gradient, clipped = inputs
        if gradient != clipped:
            raise ValueError(f"a gradient {gradient} is not of {clipped}")
        return LoopNest(spatial_axes(gradient), (ELEMENTWISE, ELEMENTWISE), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """clip_f32_gradient or clip_s8_gradient, by the type of the clipped tensor."""
        gradient, clipped = inputs
        require_floats(gradient, output)
        size: Params = {"row_elements": output.shape[1] * output.shape[2]}
        kernel = "clip_s8_gradient" if is_int8(clipped) else "clip_f32_gradient"
        return KernelCall(kernel, size | _bounds(self, clipped))

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """Return the inputs of the output's type."""
        return (0,) if is_int8(inputs[1]) else (0, 1)


@dataclass(frozen=True, slots=True)
class ClipMask(PlainOperator):
    """A bit for each element of a clipped tensor (H, W, C): 1 between the bounds.

    The result is int8 (H, 1, (W * C + 7) / 8), with eight bits in a byte.
    """

    kind: ClassVar[str] = "ClipMask"
    named: ClassVar[str] = "clip_mask"

    low: float = -inf
    high: float = inf

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each row reads the same row of the input."""
        ((rows, cols, channels),) = inputs
        axes = (
            Axis("row", rows),
            Axis("byte", mask_bytes((rows, cols, channels))),
            reduced_axis("bit", _BITS),
            reduced_axis(ONCE, 1),
        )
        _, every_col, every_channel = _every((rows, cols, channels))
        read: Access = (Index.of(row=1), every_col, every_channel)
        return LoopNest(axes, (read,), (Index.of(row=1), Index(), Index.of(byte=1)))

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """clip_mask_f32 or clip_mask_s8. Raises ValueError for a result of another type than int8."""
        (clipped,) = inputs
        if output.dtype != "int8":
            raise ValueError("bits are stored as int8")
        size: Params = {"row_elements": clipped.shape[1] * clipped.shape[2]}
        kernel = "clip_mask_s8" if is_int8(clipped) else "clip_mask_f32"
        return KernelCall(kernel, size | _bounds(self, clipped))


@dataclass(frozen=True, slots=True)
class MaskedGradient(PlainOperator):
    """The first input, a gradient (H, W, C), where the second, the ClipMask of its tensor, is 1; else 0."""

    kind: ClassVar[str] = "MaskedGradient"
    named: ClassVar[str] = "clip_gradient"
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each element reads the element at its place, and a bit of its row."""
        gradient, mask = inputs
        if mask != (gradient[0], 1, mask_bytes(gradient)):
            raise ValueError(f"a mask {mask} is not of {gradient}")
        _, _, every_byte = _every(mask)
        read: Access = (Index.of(row=1), Index(), every_byte)
        axes = (*spatial_axes(gradient), reduced_axis(ONCE, 1))
        return LoopNest(axes, (ELEMENTWISE, read), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `masked_gradient_f32`. Raises ValueError for a mask of another type than int8."""
        require_floats(inputs[0], output)
        if inputs[1].dtype != "int8":
            raise ValueError("bits are stored as int8")
        return KernelCall("masked_gradient_f32", {"row_elements": output.shape[1] * output.shape[2]})


def _bounds(op: ClipGradient | ClipMask, clipped: Tensor) -> Params:
    """The kernel's parameters: bounds of floats, or the first and the last int8 value between the bounds."""
    if not is_int8(clipped):
        require_floats(clipped)
        return within("act", {"min": op.low, "max": op.high})
    reals = dequantize_table(quantization_of(clipped))
    inside = STORED[(reals > np.float32(op.low)) & (reals < np.float32(op.high))]
    first, last = (int(inside[0]), int(inside[-1])) if inside.size else (1, 0)
    return {"first": first, "last": last}


def mask_bytes(shape: Shape) -> int:
    """The bytes of a row of a ClipMask."""
    return -(-shape[1] * shape[2] // _BITS)


def parameter_axes(conv: Conv2d) -> tuple[int, ...]:
    """The axes of ONNX weights [K, C/groups, kh, kw] in the order in which TrainedConv2d stores them."""
    return (0, 2, 3, 1) if conv.groups == 1 else (2, 3, 0, 1)


def require_parameters(conv: Conv2d, x: Shape, weights: Shape) -> None:
    """Raise ValueError unless `conv` is dense or depthwise, and weights have the shape of TrainedConv2d."""
    if conv.groups not in (1, x[2]):
        raise ValueError(f"{conv.groups} groups of {x[2]} channels: training takes 1 or all")
    kernel_rows, kernel_cols = conv.kernel_shape
    count = conv.out_channels * kernel_rows * kernel_cols * x[2] // conv.groups
    if weights != (1, 1, count):
        raise ValueError(f"weights {weights} are not the {count} values of the convolution")


def weight_index(conv: Conv2d, channels: int, axes: tuple[str, str] = ("c", "g")) -> Index:
    """The place of a weight in the stored vector; `axes`: names of the axes of input channels and of groups.
    """
    kernel_rows, kernel_cols = conv.kernel_shape
    channel, group = axes
    if conv.groups == 1:
        line = kernel_cols * channels
        return Index.of(k=kernel_rows * line, r=line, s=channels, **{channel: 1})
    outputs = conv.out_channels
    return Index.of(r=kernel_cols * outputs, s=outputs, k=1, **{group: outputs // conv.groups})


def reaching(
    op: Conv2d | MaxPool | AveragePool, dimension: int, axis: str, size: int, outputs: int
) -> TableIndex:
    """For each of `size` input positions, the output positions whose windows reach it; any one if none does.
    """
    stride, pad = op.stride[dimension], op.pads[dimension]
    reach = op.dilation[dimension] * (op.kernel_shape[dimension] - 1)
    first = [min(max(-(-(at + pad - reach) // stride), 0), outputs - 1) for at in range(size)]
    end = [min((at + pad) // stride + 1, outputs) for at in range(size)]
    return TableIndex(axis, tuple(first), tuple(max(lo + 1, hi) for lo, hi in zip(first, end, strict=True)))


def _of_group(channels: int, outputs: int, groups: int) -> TableIndex:
    """The output channels of the group of each input channel, `outputs` for each group."""
    first = tuple(at * groups // channels * outputs for at in range(channels))
    return TableIndex("ch", first, tuple(lo + outputs for lo in first))


def _every(shape: Shape) -> Access:
    """The access that reads all elements of a tensor, along the axis ONCE."""
    rows, cols, channels = (TableIndex(ONCE, (0,), (size,)) for size in shape)
    return rows, cols, channels


def multiplier_field(conv: Conv2d, x: Shape) -> Params:
    """The parameter that only depthwise kernels have: output channels for each input channel."""
    return {} if conv.groups == 1 else {"multiplier": conv.out_channels // x[2]}


def kernel_family(conv: Conv2d) -> str:
    """The prefix of the names of the kernels of a convolution."""
    return "conv2d_f32" if conv.groups == 1 else "dwconv2d_f32"


def require_floats(*tensors: Tensor) -> None:
    """Raise ValueError unless all tensors are float32."""
    require_same_dtype(*tensors)
    if tensors[0].dtype != "float32":
        raise ValueError("training computes in float32")
