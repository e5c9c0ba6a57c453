"""Pixels of an image at computed positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import Axis, Index, KernelCall, LoopNest, PlainOperator
from mcudeploy.ops.common import (
    ELEMENTWISE,
    counts_of_rows,
    is_int8,
    reduced_axis,
    require_same_dtype,
    spatial_axes,
)

MODES = {"nearest": 1, "linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}
"""Neighbours along an axis, by ONNX's name of the mode."""
PADDINGS = ("zeros", "border", "reflection")


@dataclass(frozen=True, slots=True)
class GridSample(PlainOperator):
    """Image (H, W, C), positions (rows, cols, 2) -> (rows, cols, C): the image at position (x, y), float32.

    A pixel is the weighted sum of `taps` * `taps` neighbours of its position.
    """

    kind: ClassVar[str] = "GridSample"

    taps: int
    padding: str
    align_corners: bool

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Every row needs the whole image, and its own row of positions."""
        image, grid = inputs
        if grid[2] != 2 or self.padding not in PADDINGS or self.taps not in MODES.values():
            raise ValueError(f"positions {grid}, {self.taps} neighbours, padding {self.padding}: unsupported")
        axes: tuple[Axis, ...] = (
            *spatial_axes((*grid[:2], image[2])),
            reduced_axis("any_row", image[0]),
            reduced_axis("any_col", image[1]),
            reduced_axis("xy", 2),
        )
        anywhere = Index.of(any_row=1), Index.of(any_col=1), Index.of(ch=1)
        place = Index.of(row=1), Index.of(col=1), Index.of(xy=1)
        return LoopNest(axes, (anywhere, place), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `grid_sample_f32`."""
        require_same_dtype(*inputs, output)
        if is_int8(output):
            raise ValueError("positions and sampled pixels are float32 only")
        rows, cols, channels = inputs[0].shape
        pixels = output.shape[1]
        params = {
            "rows": rows,
            "cols": cols,
            "channels": channels,
            "output_cols": pixels,
            "taps": self.taps,
            "padding": PADDINGS.index(self.padding),
            "align_corners": int(self.align_corners),
        }

        row = {
            "rows": 1,
            f"pixels_{self.taps}": pixels,
            "taps": pixels * self.taps**2,
            "values": pixels * self.taps**2 * channels,
            "filled": pixels * channels,
        }
        return KernelCall("grid_sample_f32", params, counts=counts_of_rows(row))
