"""Convolutions: general, pointwise, depthwise, and the matrix products that are convolutions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import (
    Axis,
    AxisKind,
    Index,
    KernelCall,
    LoopNest,
    PlainOperator,
    RoundingErrors,
    RowsPart,
)
from mcudeploy.ops.common import reduced_axis
from mcudeploy.ops.conv.conv_asymmetric import is_asymmetric
from mcudeploy.ops.conv.conv_constants import Results, bias_error
from mcudeploy.ops.conv.conv_kernels import by_rows_kernel, conv_kernel, to_rows_kernel
from mcudeploy.ops.conv.windows import Windowing, window_text
from mcudeploy.ops.requantize import Rounding


def window_positions(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]) -> int:
    """Number of times a window fits along a padded dimension. Raises ValueError if it never does."""
    free = size + pads[0] + pads[1] - dilation * (kernel - 1) - 1
    if free < 0:
        raise ValueError(
            f"a window of {kernel} (dilation {dilation}) does not fit {size} plus pads {pads[0]}, {pads[1]}"
        )
    return free // stride + 1


@dataclass(frozen=True, slots=True)
class Conv2d(PlainOperator):
    """y[oh, ow, Kg*g + k] = clip(bias + sum over r, s, c of x[..., Cg*g + c] * w[Kg*g + k, r, s, c]).

    x (H, W, C) -> y (OH, OW, K). Pairs are (rows, cols); pads are (top, left, bottom, right). Constants:
    `weights` int8 or float32 [K, kh, kw, C/groups]; `bias` [K], int32 of scale sx * sw[k] for an int8 input,
    else float32; with int8 weights `weight_scale` sw float32 [K], their zero point being 0. If the bias of
    the model is not a multiple of sx * sw[k], `bias_rounding` float32 [K] is its rounding error, in that
    unit. A float input may have int8 weights: they stand for float32 products of integer and scale. An
    int8 input may have int16 weights, of nine bits: uint8 minus a zero point.

    `rounding`: int8 results are rounded once, halves up, or twice, as by TFLite's reference kernels.

    A matrix product with constant weights is a 1x1 convolution over (B, 1, K), or, after a flatten of (H, W,
    C), one with kernel (H, W). `low` and `high` are the fused clip in real values.
    """

    kind: ClassVar[str] = "Conv2d"
    takes_rows: ClassVar[bool] = True
    named: ClassVar[str] = "conv"

    out_channels: int
    kernel_shape: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    low: float = -inf
    high: float = inf
    rounding: Rounding = "once"

    @property
    def windowing(self) -> Windowing:
        """Its channels and windows, without clip and rounding."""
        return Windowing(
            self.out_channels, self.kernel_shape, self.stride, self.dilation, self.pads, self.groups
        )

    def on_rows(self, part: RowsPart) -> Conv2d:
        """The convolution with the pads of these rows."""
        return replace(self, pads=(part.above, self.pads[1], part.below, self.pads[3]))

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """Its groups and windows."""
        groups = "depthwise" if self.windowing.is_depthwise(inputs[0][2]) else f"conv in {self.groups} groups"
        return f"{'conv' if self.groups == 1 else groups} {window_text(self.kernel_shape, self.stride)}"

    def rounding_error(
        self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor
    ) -> RoundingErrors:
        """The rounding error of the bias, and of sums that are rounded twice."""
        return bias_error(operator, inputs[0], output, sums=float(self.rounding == "tflite"))

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """One input (H, W, C). Raises ValueError if groups or window do not fit it."""
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
        """Select the general, pointwise, whole-window or depthwise kernel.

        Raises ValueError for constants of a wrong shape, or int8 sums that could overflow an int32.
        """
        results = Results(self.low, self.high, self.rounding)
        return conv_kernel(self.windowing, results, operator, inputs[0], output)

    def is_dense(self, operator: Operator, inputs: tuple[Tensor, ...]) -> bool:
        """Whether it maps a vector to a vector, with symmetric weights and results that are rounded once."""
        return (
            not is_asymmetric(operator)
            and self.rounding == "once"
            and (self.kernel_shape, self.pads, self.groups) == ((1, 1), (0, 0, 0, 0), 1)
            and inputs[0].shape[:2] == (1, 1)
        )

    def in_rows(self, operator: Operator, written: Shape | None, read: Shape | None) -> Operator:
        """The layer that writes rows of shape `written`; or whose window covers the rows of shape `read`."""
        if written is not None:
            return replace(operator, op=Conv2dToRows(written[0], written[2], self.low, self.high))
        if read is None:
            return operator
        constants = {**operator.constants, "weights": operator.constants["weights"].reshape(-1, *read)}
        return replace(operator, op=replace(self, kernel_shape=read[:2]), constants=constants)

    def by_rows(self, inputs: tuple[Shape, ...]) -> Conv2dByRows | None:
        """The operator with the same sums that reads its input (H, W, C) in blocks of rows.

        None unless the window is the whole input, without dilation and groups, the input has several rows,
        and results are rounded once.
        """
        source = inputs[0]
        if (
            self.rounding == "tflite"
            or source[0] == 1
            or self.kernel_shape != source[:2]
            or not self.windowing.is_plain
        ):
            return None
        return Conv2dByRows(self.out_channels, self.kernel_shape, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Conv2dByRows(PlainOperator):
    """A Conv2d whose kernel is as large as its input; each step adds the products of a block of rows.

    x (H, W, C) -> y (1, 1, K), kernel_shape (H, W). Constants and results equal those of the Conv2d without
    pads.
    """

    kind: ClassVar[str] = "Conv2dByRows"
    accumulates: ClassVar[bool] = True

    out_channels: int
    kernel_shape: tuple[int, int]
    low: float = -inf
    high: float = inf
    rounding: Rounding = "once"

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """Its windows."""
        return f"conv {window_text(self.kernel_shape, (1, 1))} by rows"

    def rounding_error(
        self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor
    ) -> RoundingErrors:
        """The rounding error of the bias."""
        return bias_error(operator, inputs[0], output)

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
        """conv2d_s8_by_rows or conv2d_f32_by_rows. Raises ValueError as Conv2d.kernel does, and for results
        whose two roundings are not multiplications; see conv_twice.
        """
        results = Results(self.low, self.high, self.rounding)
        return by_rows_kernel(self.out_channels, results, operator, inputs[0], output)


@dataclass(frozen=True, slots=True)
class Conv2dToRows(PlainOperator):
    """A Conv2d from a vector to a vector, whose output is viewed as rows of a few channels.

    x (1, 1, C) -> y (rows, 1, channels); row r, channel k is output channel r * channels + k of the Conv2d.
    Constants (`weights` [rows * channels, 1, 1, C]) and results equal those of the Conv2d with a 1x1 kernel.
    """

    kind: ClassVar[str] = "Conv2dToRows"

    rows: int
    channels: int
    low: float = -inf
    high: float = inf

    def rounding_error(
        self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor
    ) -> RoundingErrors:
        """The rounding error of the bias."""
        return bias_error(operator, inputs[0], output)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """One input (1, 1, C), which every row reads whole. Raises ValueError for an input of more pixels."""
        ((rows, cols, channels),) = inputs
        if (rows, cols) != (1, 1) or min(self.rows, self.channels) < 1:
            raise ValueError(f"({rows}, {cols}, {channels}) is not a vector; {self.rows} rows need one")
        axes = Axis("row", self.rows), Axis("k", self.channels), reduced_axis("c", channels)
        read = Index.of(), Index.of(), Index.of(c=1)
        write = Index.of(row=1), Index.of(), Index.of(k=1)
        return LoopNest(axes, (read,), write, multiplies=True)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """conv2d_s8_to_rows or conv2d_f32_to_rows. Raises ValueError as Conv2d.kernel does."""
        results = Results(self.low, self.high)
        return to_rows_kernel((self.rows, self.channels), results, operator, inputs[0], output)
