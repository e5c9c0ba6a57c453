"""The largest or smallest elements along an axis, or their indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Axis, Counts, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import (
    AXIS_NAMES,
    ELEMENTS,
    ELEMENTWISE,
    reduced_axis,
    require_same_values,
    spatial_axes,
)


@dataclass(frozen=True, slots=True)
class TopK(PlainOperator):
    """The `count` largest (or smallest) elements along dimension `axis`, in order.

    Among equal elements the first comes first, or the last if `last_first`. The result contains the elements,
    or their int32 indices. NaN is the largest. With `first_stays` a NaN comes first if it is the first
    element along the axis, and else last.
    """

    kind: ClassVar[str] = "TopK"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT32})

    axis: int
    count: int
    result: Literal["values", "indices"]
    largest: bool = True
    last_first: bool = False
    first_stays: bool = False

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Every element of the output needs the whole axis. Raises ValueError if it has fewer elements."""
        (shape,) = inputs
        if not 1 <= self.count <= shape[self.axis]:
            raise ValueError(f"{self.count} of {shape[self.axis]} elements cannot be chosen")
        rows, cols, channels = (self.count if axis == self.axis else size for axis, size in enumerate(shape))
        axes: tuple[Axis, ...] = (
            *spatial_axes((rows, cols, channels)),
            reduced_axis("any", shape[self.axis]),
        )
        row, col, ch = (
            Index.of(any=1) if axis == self.axis else Index.of(**{name: 1})
            for axis, name in enumerate(AXIS_NAMES)
        )
        return LoopNest(axes, ((row, col, ch),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `top_k`. Raises ValueError for indices that are not int32."""
        (source,) = inputs
        if self.result == "values":
            require_same_values(source, output)
        elif output.dtype != "int32":
            raise ValueError(f"indices are int32, not {output.dtype}")
        _, cols, channels = source.shape
        by_rows, by_channels = self.axis == 0, self.axis == 2
        lines = (cols * channels, channels, cols)[self.axis]
        size = source.shape[self.axis]
        params: Params = {
            "size": size,
            "count": self.count,
            "by_rows": int(by_rows),
            "step": channels if self.axis == 1 else 1,
            "lines": lines,
            "line_step": channels if by_channels else 1,
            "out_line_step": self.count if by_channels else 1,
            "element": ELEMENTS.index(source.dtype),
            "indices": int(self.result == "indices"),
            "smallest": int(not self.largest),
            "last_first": int(self.last_first),
            "first_stays": int(self.first_stays),
        }

        def counts(rows: Interval) -> Counts:
            steps = lines * (1 if by_rows else len(rows))
            passes = steps * (rows.hi if by_rows else self.count)
            return {"calls": 1, "lines": steps, "passes": passes, "compared": passes * size}

        return KernelCall("top_k", params, counts=counts)
