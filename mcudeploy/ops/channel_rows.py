"""Fully connected layers whose output channels are made a few at a time, as rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, ClassVar

from mcudeploy.ops.common import reduced_axis
from mcudeploy.ops.conv import Conv2d, conv_kernel
from mcudeploy.ops.opdef import Axis, Index, KernelCall, LoopNest

if TYPE_CHECKING:
    from mcudeploy.graph import Operator, Shape, Tensor

_SCALARS = {
    "s8": ("shift", "input_zero_point", "output_zero_point", "low", "high"),
    "f32": ("low", "high"),
}


@dataclass(frozen=True, slots=True)
class Conv2dToRows:
    """A Conv2d from a vector to a vector, whose output is looked at as rows of a few channels.

    x (1, 1, C) -> y (rows, 1, channels); row r, channel k is output channel r * channels + k of the Conv2d.
    Constants (`weights` [rows * channels, 1, 1, C]) and bits are those of the Conv2d with a 1x1 kernel.
    """

    kind: ClassVar[str] = "Conv2dToRows"
    is_view: ClassVar[bool] = False
    accumulates: ClassVar[bool] = False

    rows: int
    channels: int
    low: float = -inf
    high: float = inf

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """One input (1, 1, C), which every row reads whole. Raises ValueError for an input of more pixels."""
        ((rows, cols, channels),) = inputs
        if (rows, cols) != (1, 1) or min(self.rows, self.channels) < 1:
            raise ValueError(f"({rows}, {cols}, {channels}) is no vector to make {self.rows} rows of")
        axes = Axis("row", self.rows), Axis("k", self.channels), reduced_axis("c", channels)
        read = Index.of(), Index.of(), Index.of(c=1)
        write = Index.of(row=1), Index.of(), Index.of(k=1)
        return LoopNest(axes, (read,), write, multiplies=True)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """conv2d_s8_to_rows or conv2d_f32_to_rows. Raises ValueError as Conv2d.kernel does."""
        (source,) = inputs
        channels = self.rows * self.channels
        vector = replace(output, shape=(1, 1, channels))
        whole = conv_kernel(Conv2d(channels, low=self.low, high=self.high), operator, source, vector).params
        suffix = "s8" if "multipliers" in whole else "f32"
        arrays = ("weights", "bias", "multipliers") if suffix == "s8" else ("weights", "bias")
        params = {name: whole[name] for name in arrays}
        params |= {"input_channels": source.shape[2], "row_channels": self.channels}
        params |= {name: whole[name] for name in _SCALARS[suffix]}
        return KernelCall(f"conv2d_{suffix}_to_rows", params)

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """None: the input is read for every row."""
        return ()
