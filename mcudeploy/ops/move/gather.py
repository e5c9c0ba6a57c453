"""Rows selected by run-time indices: embeddings of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Axis, Counts, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import (
    ELEMENTWISE,
    is_int8,
    merged,
    moved,
    reduced_axis,
    require_same_values,
    spatial_axes,
)


@dataclass(frozen=True, slots=True)
class GatherRows(PlainOperator):
    """Row i of the output is row indices[i] of the table.

    The first input has the indices, int32 (1, 1, count): negative ones count from the end, and those outside
    are clamped. The table is the second input, or constants["table"] (rows, 1, `width`) if `width` is set.
    """

    kind: ClassVar[str] = "GatherRows"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT32})

    width: int | None = None

    def indexed_rows(self, operator: Operator, inputs: tuple[Tensor, ...]) -> int | None:
        """The rows of the table."""
        return len(operator.constants["table"]) if self.width is not None else inputs[1].shape[0]

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A row of the output reads one index, and any row of the table."""
        rows, cols, count = inputs[0]
        if (rows, cols) != (1, 1):
            raise ValueError(f"the indices are a vector, found {inputs[0]}")
        indices = Index(), Index(), Index.of(row=1)
        if self.width is not None:
            return LoopNest(spatial_axes((count, 1, self.width)), (indices,), ELEMENTWISE)
        table = inputs[1]
        axes: tuple[Axis, ...] = (*spatial_axes((count, *table[1:])), reduced_axis("any", table[0]))
        read = Index.of(any=1), Index.of(col=1), Index.of(ch=1)
        return LoopNest(axes, (indices, read), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `gather_rows`. Raises ValueError for indices that are not int32."""
        if inputs[0].dtype != "int32":
            raise ValueError(f"indices are int32, not {inputs[0].dtype}")
        table = operator.constants.get("table")
        if self.width is None:
            require_same_values(inputs[1], output)
        elif table is None or table.shape[1:] != (1, self.width) or table.dtype.name != output.dtype:
            raise ValueError(f"the table needs the shape [rows, 1, {self.width}] and {output.dtype}")
        elif output.dtype == "int32":
            raise ValueError("a constant table is int8 or float32")
        params: Params = {
            "bytes": table if is_int8(output) else None,
            "floats": None if is_int8(output) else table,
            "rows": inputs[1].shape[0] if table is None else table.shape[0],
            "row_bytes": output.row_bytes,
        }

        def counts(rows: Interval) -> Counts:
            return merged({"calls": 1, "rows": len(rows)}, moved(output.row_bytes, len(rows)))

        return KernelCall("gather_rows", params, counts=counts)
