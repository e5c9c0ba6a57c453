"""Rows of updates written into rows of data, at run-time or constant indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Access, Counts, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import (
    ELEMENTS,
    ELEMENTWISE,
    filled,
    is_int8,
    merged,
    moved,
    reduced_axis,
    require_same_values,
    scaled,
    spatial_axes,
)
from mcudeploy.ops.requantize import quantization_of

ScatterReduction = Literal["none", "add", "mul", "max", "min"]
_REDUCTIONS: tuple[ScatterReduction, ...] = get_args(ScatterReduction)


@dataclass(frozen=True, slots=True)
class ScatterRows(PlainOperator):
    """Row indices[i] of the output is row i of the updates, or its reduction with the row there; the other
    rows are those of the data.

    Inputs: indices, int32 (1, 1, count), where negative ones count from the end and those outside are
    ignored; updates (count, ...); data (rows, ...). Indices may be constants["indices"] instead. If `rows` is
    set, the data are `rows` rows of zeros instead of an input. int8 supports the reduction none.
    """

    kind: ClassVar[str] = "ScatterRows"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT32})

    reduction: ScatterReduction = "none"
    rows: int | None = None
    constant_indices: bool = False

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A row of the output may read any index and update. Raises ValueError if shapes do not fit."""
        rest = list(inputs)
        reads: list[Access] = []
        if not self.constant_indices:
            vector = rest.pop(0)
            if vector != (1, 1, rest[0][0]):
                raise ValueError(f"the indices of {rest[0][0]} rows are a vector, found {vector}")
            reads.append((Index(), Index(), Index.of(update=1)))
        updates, *data = rest
        reads.append((Index.of(update=1), Index.of(col=1), Index.of(ch=1)))
        rows = self.rows
        if rows is None:
            ((rows, *row_shape),) = data
            if tuple(row_shape) != updates[1:]:
                raise ValueError(f"rows of updates {updates} are not like those of {data[0]}")
            reads.append(ELEMENTWISE)
        axes = (*spatial_axes((rows, updates[1], updates[2])), reduced_axis("update", updates[0]))
        return LoopNest(axes, tuple(reads), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `scatter_rows`. Raises ValueError for reductions of int8."""
        indices = operator.constants.get("indices")
        read = inputs[0 if self.constant_indices else 1 :]
        for tensor in read:
            require_same_values(tensor, output)
        if self.reduction != "none" and is_int8(output):
            raise ValueError(f"{self.reduction} of int8 updates is not supported")
        if self.constant_indices and (indices is None or indices.dtype != np.int32):
            raise ValueError("the indices must be int32")
        count, zeros = read[0].shape[0], self.rows is not None
        params: Params = {
            "indices": indices,
            "count": count,
            "rows": output.shape[0],
            "row_elements": output.shape[1] * output.shape[2],
            "element": ELEMENTS.index(output.dtype),
            "reduction": _REDUCTIONS.index(self.reduction),
            "filled": int(zeros),
            "fill": quantization_of(output).zero_point if is_int8(output) else 0,
        }
        elements = output.shape[1] * output.shape[2]

        def counts(rows: Interval) -> Counts:
            """Return the counts; updates with unknown indices are spread evenly over the rows."""
            writes = count * len(rows) / output.shape[0]
            if indices is not None:
                writes = float(((indices >= rows.lo) & (indices < rows.hi)).sum())
            reduced = 0.0 if self.reduction == "none" else writes * elements
            once = {"calls": 1, "rows": len(rows), "indices": count, "taken": writes, "reduced": reduced}
            initial = scaled(moved(output.row_bytes), len(rows))
            if zeros:
                initial = filled(elements, len(rows)) if is_int8(output) else {"set": len(rows) * elements}
            return merged(once, initial, {} if reduced else scaled(moved(output.row_bytes), writes))

        return KernelCall("scatter_rows", params, counts=counts)

    def indexed_rows(self, operator: Operator, inputs: tuple[Tensor, ...]) -> int | None:
        """The rows of the output."""
        return None if self.constant_indices else self.rows or inputs[-1].shape[0]

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """The data."""
        return () if self.rows is not None else (len(inputs) - 1,)
