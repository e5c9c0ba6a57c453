"""Regions of an image, divided into bins: the mean, or the largest, of interpolated samples in each bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Access, Counts, Index, KernelCall, LoopNest, Params, PlainOperator, TableIndex
from mcudeploy.ops.common import ELEMENTWISE, reduced_axis, require_same_dtype, spatial_axes


@dataclass(frozen=True, slots=True)
class RoiAlign(PlainOperator):
    """Image (H, W, C), regions (count, 1, 4) -> (count * bins[0], bins[1], C), float32; see roi_align_f32.h.

    If `count` is set, the regions are constants["regions"] instead of an input. `samples` along each side of
    a bin; 0: by the size of the region. `largest`: the largest sample of a bin, not the mean.
    """

    kind: ClassVar[str] = "RoiAlign"

    bins: tuple[int, int]
    samples: int = 0
    scale: float = 1.0
    half_pixel: bool = True
    largest: bool = False
    count: int | None = None

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A row of bins reads its region, and may read any part of the image."""
        image, *regions = inputs
        count = regions[0][0] if self.count is None else self.count
        if any(shape[1:] != (1, 4) for shape in regions) or min(*self.bins, count) < 1 or self.samples < 0:
            raise ValueError(f"regions are (count, 1, 4), found {regions}, in bins {self.bins}")
        rows, cols = self.bins
        axes = (
            *spatial_axes((count * rows, cols, image[2])),
            reduced_axis("any_row", image[0]),
            reduced_axis("any_col", image[1]),
            reduced_axis("corner", 4),
        )
        reads: list[Access] = [(Index.of(any_row=1), Index.of(any_col=1), Index.of(ch=1))]
        if self.count is None:
            region = tuple(row // rows for row in range(count * rows))
            of_row = TableIndex("row", region, tuple(at + 1 for at in region))
            reads.append((of_row, Index(), Index.of(corner=1)))
        return LoopNest(axes, tuple(reads), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `roi_align_f32`. Raises ValueError for other types."""
        require_same_dtype(*inputs, output)
        if output.dtype != "float32":
            raise ValueError(f"regions are of float32, not of {output.dtype}")
        regions = operator.constants.get("regions")
        if self.count is not None and (regions is None or regions.shape != (self.count, 4)):
            raise ValueError(f"the constant regions need the shape [{self.count}, 4]")
        rows, cols, channels = inputs[0].shape
        params: Params = {
            "regions": None if regions is None else np.ascontiguousarray(regions, np.float32).ravel(),
            "input_rows": rows,
            "input_cols": cols,
            "channels": channels,
            "bin_rows": self.bins[0],
            "bin_cols": self.bins[1],
            "samples": self.samples,
            "largest": int(self.largest),
            "shrunk": int(self.half_pixel),
            "scale": float(np.float32(self.scale)),
            "offset": 0.5 if self.half_pixel else 0.0,
        }
        height, width = (
            self.samples or max(size // bins, 1) for size, bins in zip((rows, cols), self.bins, strict=True)
        )

        def counts(block: Interval) -> Counts:
            """Return the counts, those that depend on regions as if each region were the whole image."""
            bins = len(block) * self.bins[1]
            samples = bins * height * width
            reduction = "largest" if self.largest else "summed"
            return {
                "calls": 1,
                "rows": len(block),
                "bins": bins,
                "outputs": bins * channels,
                "samples": samples,
                reduction: samples * channels,
            }

        return KernelCall("roi_align_f32", params, counts=counts)
