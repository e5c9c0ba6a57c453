"""Positions of the largest elements of windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, KernelCall, LoopNest, PlainOperator
from mcudeploy.ops.common import ELEMENTS
from mcudeploy.ops.conv.windows import Windows
from mcudeploy.ops.pool.pool import MaxPool, window_fields


@dataclass(frozen=True, slots=True)
class MaxPoolIndices(PlainOperator):
    """The index of the first largest element in each window of `pool`.

    The index is the sum of its row, column and channel times `steps`.
    """

    kind: ClassVar[str] = "MaxPoolIndices"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT32})

    pool: MaxPool
    steps: tuple[int, int, int]

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of the pool."""
        return self.pool.loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `maxpool_indices`. Raises ValueError for a result that is not int32."""
        (source,) = inputs
        if output.dtype != "int32":
            raise ValueError(f"indices are int32, not {output.dtype}")
        fields = window_fields(self.pool, source)
        steps = dict(zip(("row_step", "col_step", "channel_step"), self.steps, strict=True))
        params = fields | steps | {"element": ELEMENTS.index(source.dtype)}
        windows = Windows(fields)
        taps, channels = int(windows.cols.sum()), source.shape[2]
        compared = "taps_of_floats" if source.dtype == "float32" else "taps_of_integers"

        def counts(rows: Interval) -> Counts:
            reading = int(windows.rows(rows).sum())
            return {
                "calls": 1,
                "rows": len(rows),
                "pixels": len(rows) * windows.outputs,
                "outputs": len(rows) * windows.outputs * channels,
                "lines": reading * windows.outputs * channels,
                compared: reading * taps * channels,
            }

        return KernelCall("maxpool_indices", params, counts=counts)
