"""Fully connected layers that compute a few output channels at a time, as rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import Axis, Index, KernelCall, LoopNest, PlainOperator, RoundingErrors
from mcudeploy.ops.common import reduced_axis
from mcudeploy.ops.conv.conv_constants import Results, bias_error
from mcudeploy.ops.conv.conv_kernels import to_rows_kernel


@dataclass(frozen=True, slots=True)
class Conv2dToRows(PlainOperator):
    """A Conv2d from a vector to a vector, whose output is viewed as rows of a few channels.

    x (1, 1, C) -> y (rows, 1, channels); row r, channel k is output channel r * channels + k of the Conv2d.
    Constants (`weights` [rows * channels, 1, 1, C]) and bits equal those of the Conv2d with a 1x1 kernel.
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
