"""Resize of int16 images, in fixed point as TFLite's reference kernels compute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcudeploy.extensions.int16.int16 import require_int16
from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import Index, KernelCall, LoopNest, Params, PlainOperator, TableIndex
from mcudeploy.ops.common import ELEMENTWISE, spatial_axes
from mcudeploy.ops.image.resize import nearest_counts

ONE = 2**10
"""The weight 1."""


@dataclass(frozen=True, slots=True)
class ResizeSamplesInt16:
    """The samples of one axis.

    Output i is ((ONE - weight[i]) * input[first[i]] + weight[i] * input[second[i]]) / ONE. A weight may be
    negative, at the start of an axis.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    weight: tuple[int, ...]

    @classmethod
    def of(cls, size: int, new_size: int, *, linear: bool, aligned: bool, halves: bool) -> ResizeSamplesInt16:
        """The samples of an axis of `size` values resized to `new_size`."""
        if not linear:
            ratio = np.float32(size) / np.float32(new_size)
            if aligned and new_size > 1:
                ratio = np.float32(size - 1) / np.float32(new_size - 1)
            offset = np.float32(0.5 if halves else 0.0)
            places = (np.arange(new_size, dtype=np.float32) + offset) * ratio
            nearest = np.floor(places + np.float32(0.5)) if aligned else np.floor(places)
            first = np.clip(nearest.astype(np.int64), 0, size - 1).tolist()
            return cls(tuple(first), tuple(first), (0,) * new_size)
        step = (ONE * size + new_size // 2) // new_size
        if aligned and new_size > 1:
            step = (ONE * (size - 1) + (new_size - 1) // 2) // (new_size - 1)
        scaled = np.arange(new_size, dtype=np.int64) * step
        if halves:
            scaled += step // 2 - ONE // 2
        towards_zero = np.where(scaled < 0, -(-scaled // ONE), scaled // ONE)
        lower = np.maximum(towards_zero, 0)
        above = scaled + ONE - 1
        upper = np.minimum(np.where(above < 0, -(-above // ONE), above // ONE), size - 1)
        return cls(tuple(lower.tolist()), tuple(upper.tolist()), tuple((scaled - ONE * lower).tolist()))

    def index(self, axis: str) -> TableIndex:
        """The index of the input in a loop nest whose `axis` counts the outputs."""
        low = tuple(map(min, self.first, self.second))
        high = tuple(max(pair) + 1 for pair in zip(self.first, self.second, strict=True))
        return TableIndex(axis, low, high)


@dataclass(frozen=True, slots=True)
class ResizeInt16(PlainOperator):
    """An int16 image of another size, by samples of rows and columns. Ties round away from zero."""

    kind: ClassVar[str] = "ResizeInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})

    rows: ResizeSamplesInt16
    cols: ResizeSamplesInt16
    linear: bool

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Rows and columns are read through tables."""
        (shape,) = inputs
        read = self.rows.index("row"), self.cols.index("col"), Index.of(ch=1)
        if max(read[0].hi) > shape[0] or max(read[1].hi) > shape[1]:
            raise ValueError(f"the tables reach beyond the input {shape}")
        axes = spatial_axes((len(self.rows.first), len(self.cols.first), shape[2]))
        return LoopNest(axes, (read,), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """resize_linear_s16 or resize_nearest."""
        (source,) = inputs
        require_int16(operator.name, source, output)
        if max(source.shape[:2]) > 2**16:
            raise ValueError(f"the tables hold positions below 65536, the input is {source.shape}")
        out_cols, channels = output.shape[1:]
        if not self.linear:
            params: Params = {
                "rows": np.array(self.rows.first, np.uint16),
                "cols": np.array(self.cols.first, np.uint16),
                "table": None,
                "out_cols": out_cols,
                "run_bytes": channels * output.dtype.size_bytes,
            }
            counts = nearest_counts(out_cols, channels * output.dtype.size_bytes, by_table=False)
            return KernelCall("resize_nearest", params, counts=counts)
        params = {
            "rows": _pairs(self.rows),
            "cols": _pairs(self.cols),
            "row_weights": np.array(self.rows.weight, np.int16),
            "col_weights": np.array(self.cols.weight, np.int16),
            "out_cols": out_cols,
            "channels": channels,
        }
        return KernelCall("resize_linear_s16", params)


def _pairs(samples: ResizeSamplesInt16) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
    return np.array([samples.first, samples.second], np.uint16).T.ravel()
