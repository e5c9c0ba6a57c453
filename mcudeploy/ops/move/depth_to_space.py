"""Depth to space: the channels of a pixel become a block of pixels, of which a part of the image is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import Index, KernelCall, LoopNest, PlainOperator, RowsPart, TableIndex
from mcudeploy.ops.common import (
    ELEMENTWISE,
    WIDE_INTEGERS,
    counts_of_rows,
    merged,
    moved,
    reduced_axis,
    require_same_values,
    scaled,
    spatial_axes,
)


@dataclass(frozen=True, slots=True)
class DepthToSpace(PlainOperator):
    """x (h, w, block[0] * block[1] * K) -> y (*size, K): `size` pixels of all blocks, from pixel `first` on.

    The channels of an input pixel are [groups][block[0]][block[1]][K / groups]. `block`, `first` and `size`
    are (rows, cols). One group is ONNX's mode DCR, and K groups are its mode CRD.
    """

    kind: ClassVar[str] = "DepthToSpace"
    moves: ClassVar[bool] = True
    takes_rows: ClassVar[bool] = True
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS
    named: ClassVar[str] = "depth_to_space"

    block: tuple[int, int]
    size: tuple[int, int]
    first: tuple[int, int] = (0, 0)
    groups: int = 1

    def channels(self, source: Shape) -> int:
        """The channels of the output."""
        return source[2] // (self.block[0] * self.block[1])

    def is_inside(self, source: Shape) -> bool:
        """Whether the blocks of an input of this shape have all pixels of the output."""
        axes = zip(source, self.block, self.size, self.first, strict=False)
        return all(first >= 0 and first + size <= blocks * block for blocks, block, size, first in axes)

    def positions(self, source: Shape) -> NDArray[np.int64]:
        """The flat position of every element of the output in an input of this shape."""
        row, col = (np.arange(size) + first for size, first in zip(self.size, self.first, strict=True))
        place = row[:, None] % self.block[0] * self.block[1] + col % self.block[1]
        run = self.channels(source) // self.groups
        group, in_group = np.divmod(np.arange(self.channels(source)), run)
        channel = (group * self.block[0] * self.block[1] + place[:, :, None]) * run + in_group
        pixel = row[:, None] // self.block[0] * source[1] + col // self.block[1]
        return np.asarray(pixel[:, :, None] * source[2] + channel, np.int64)

    def on_rows(self, part: RowsPart) -> DepthToSpace:
        """The operator that keeps all of these rows."""
        return replace(self, size=(len(part.rows), self.size[1]), first=(0, self.first[1]))

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A row or column reads that of its block. Raises ValueError if the blocks lack some pixels."""
        (shape,) = inputs
        pixels = self.block[0] * self.block[1]
        if shape[2] % (pixels * self.groups) or min(*self.block, *self.size, self.groups) < 1:
            raise ValueError(f"{shape[2]} channels are not {self.groups} groups of {pixels} pixels")
        if not self.is_inside(shape):
            raise ValueError(f"{self.size} pixels from {self.first} are not in {shape[:2]} blocks")
        row, col = (
            TableIndex(
                name,
                tuple((first + at) // block for at in range(size)),
                tuple((first + at) // block + 1 for at in range(size)),
            )
            for name, block, size, first in zip(
                ("row", "col"), self.block, self.size, self.first, strict=True
            )
        )
        axes_of_all = (*spatial_axes((*self.size, self.channels(shape))), reduced_axis("any_ch", shape[2]))
        return LoopNest(axes_of_all, ((row, col, Index.of(any_ch=1)),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `depth_to_space`, which copies the channels of a group together."""
        (source,) = inputs
        require_same_values(source, output)
        run = output.shape[2] // self.groups * output.dtype.size_bytes
        params = {
            "block_rows": self.block[0],
            "block_cols": self.block[1],
            "first_row": self.first[0],
            "first_col": self.first[1],
            "output_cols": self.size[1],
            "groups": self.groups,
            "run_bytes": run,
        }
        pixel = merged({"pixels": 1, "groups": self.groups}, moved(run, self.groups))
        row = merged({"rows": 1}, scaled(pixel, self.size[1]))
        return KernelCall("depth_to_space", params, counts=counts_of_rows(row))
