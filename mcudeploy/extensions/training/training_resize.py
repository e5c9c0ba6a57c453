"""The operator of a training step that computes the gradient of a resize."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcudeploy.extensions.training.training_operators import require_floats
from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, Index, KernelCall, LoopNest, Params, PlainOperator, TableIndex
from mcudeploy.ops.common import ELEMENTWISE, spatial_axes
from mcudeploy.ops.image.resize import ResizeSamples

_MOST_ROWS = 2**16
"""Limit of the tables of uint16."""


@dataclass(frozen=True, slots=True)
class ResizeGradient(PlainOperator):
    """The gradient of the input (H, W, C) of a resize from that of its output, float32.

    Each value is the sum over the results that read it: gradient of the result times the value's share in it.
    `rows` and `cols` have the samples of the results.
    """

    kind: ClassVar[str] = "ResizeGradient"
    named: ClassVar[str] = "resize_gradient"

    rows: ResizeSamples
    cols: ResizeSamples
    input_shape: tuple[int, int, int]

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each input row reads the output rows that sample it. Raises ValueError for other shapes."""
        (gradient,) = inputs
        rows, cols, channels = self.input_shape
        if gradient != (len(self.rows.first), len(self.cols.first), channels):
            raise ValueError(f"a gradient {gradient} is not of the results of {self.input_shape}")
        if max(_ends(self.rows)) > rows or max(_ends(self.cols)) > cols or rows > _MOST_ROWS:
            raise ValueError(f"the samples reach beyond the input {self.input_shape}")
        axes = spatial_axes(self.input_shape)
        read = _reading(self.rows, "row", rows), _reading(self.cols, "col", cols), Index.of(ch=1)
        return LoopNest(axes, (read,), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `resize_f32_gradient`."""
        require_floats(*inputs, output)
        _, cols, channels = output.shape
        output_rows, output_cols = inputs[0].shape[:2]
        params: Params = {
            "rows": np.array(self.rows.first, np.uint16),
            "cols": np.array(self.cols.first, np.uint16),
            "row_fractions": np.array(self.rows.fraction, np.float32),
            "col_fractions": np.array(self.cols.fraction, np.float32),
            "output_rows": output_rows,
            "output_cols": output_cols,
            "input_cols": cols,
            "channels": channels,
        }
        ranges = list(zip(self.rows.first, _ends(self.rows), strict=True))
        runs = output_cols + int(np.count_nonzero(self.cols.fraction))

        def counts(rows: Interval) -> Counts:
            read = sum(max(0, min(end, rows.hi) - max(first, rows.lo)) for first, end in ranges)
            return {
                "calls": 1,
                "rows": len(rows),
                "row_values": len(rows) * cols * channels,
                "tests": len(rows) * output_rows,
                "tap_rows": read,
                "pixels": read * output_cols,
                "runs": read * runs,
                "values": read * runs * channels,
            }

        return KernelCall("resize_f32_gradient", params, counts=counts)


def _ends(samples: ResizeSamples) -> list[int]:
    """For each result, the end of the range of input positions that it reads."""
    return [low + 1 + (part > 0) for low, part in zip(samples.first, samples.fraction, strict=True)]


def _reading(samples: ResizeSamples, axis: str, size: int) -> TableIndex:
    """For each input position, the results that read it; the first result if none does."""
    first, end = [], []
    ranges = list(zip(samples.first, _ends(samples), strict=True))
    for at in range(size):
        results = [result for result, (low, high) in enumerate(ranges) if low <= at < high] or [0]
        first.append(results[0])
        end.append(results[-1] + 1)
    return TableIndex(axis, tuple(first), tuple(end))
