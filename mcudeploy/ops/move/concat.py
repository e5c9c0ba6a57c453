"""Concatenation along any axis."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import (
    AXIS_NAMES,
    ELEMENTWISE,
    WIDE_INTEGERS,
    copied,
    counts_of_rows,
    is_int8,
    merged,
    require_same_dtype,
    spatial_axes,
)
from mcudeploy.ops.requantize import quantization_of, requantization_table


@dataclass(frozen=True, slots=True)
class Concat(PlainOperator):
    """Inputs in turn along `axis`; int8 inputs may have separate quantisations."""

    kind: ClassVar[str] = "Concat"
    moves: ClassVar[bool] = True
    takes_rows: ClassVar[bool] = True
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    axis: int

    def __post_init__(self) -> None:
        if self.axis not in (0, 1, 2):
            raise ValueError(f"the axis is 0, 1 or 2, not {self.axis}")

    def why_whole(self, inputs: tuple[Shape, ...], rows: int) -> str | None:
        """Rows are joined along axis 0."""
        return "it joins rows" if self.axis == 0 else None

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each input is read shifted by the sizes before it, and only inside it."""
        if not inputs:
            raise ValueError("nothing to concatenate")
        others = {tuple(size for axis, size in enumerate(shape) if axis != self.axis) for shape in inputs}
        if len(others) > 1:
            raise ValueError(f"shapes {', '.join(map(str, inputs))} differ in more than axis {self.axis}")
        ends = list(accumulate(shape[self.axis] for shape in inputs))
        sizes = list(inputs[0])
        sizes[self.axis] = ends[-1]
        rows, cols, channels = sizes
        reads = []
        for start in (0, *ends[:-1]):
            row, col, ch = (
                Index.of(-start if axis == self.axis else 0, **{name: 1})
                for axis, name in enumerate(AXIS_NAMES)
            )
            reads.append((row, col, ch))
        return LoopNest(spatial_axes((rows, cols, channels)), tuple(reads), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """concat_rows for axis 0, else concat."""
        require_same_dtype(*inputs, output)
        tables, table_of_input = requantization_tables(inputs, output)
        table_count = 0 if tables is None else tables.size // 256
        by_table = (
            [False] * len(inputs) if table_of_input is None else [at < table_count for at in table_of_input]
        )
        params: Params = {"tables": tables, "table_of_input": table_of_input}
        size = output.dtype.size_bytes
        if self.axis == 0:
            rows = np.array([tensor.shape[0] for tensor in inputs], np.uint32)
            params |= {"rows": rows, "row_bytes": output.row_bytes, "table_count": table_count}
            ends = np.cumsum(rows).tolist()
            return KernelCall("concat_rows", params, counts=_row_counts(output.row_bytes, ends, by_table))
        runs = output.shape[1] if self.axis == 2 else 1
        run_bytes = [tensor.row_bytes // runs for tensor in inputs]
        params |= {
            "run_bytes": np.array(run_bytes, np.uint32),
            "inputs": len(inputs),
            "runs": runs,
            "out_run_bytes": output.shape[2] * size if self.axis == 2 else output.row_bytes,
            "table_count": table_count,
        }
        each = (copied(run, runs, by_table=looks) for run, looks in zip(run_bytes, by_table, strict=True))
        row = {"rows": 1, "inputs": len(inputs)} | merged(*each)
        return KernelCall("concat", params, counts=counts_of_rows(row))


def _row_counts(row_bytes: int, ends: list[int], by_table: list[bool]) -> CountsOf:
    """Counts of copying rows, or of looking them up in a table; input i ends at row ends[i] of the output."""

    def counts(rows: Interval) -> Counts:
        inputs = [rows.clip(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        each = (
            copied(row_bytes, len(taken), by_table=looks)
            for taken, looks in zip(inputs, by_table, strict=True)
            if len(taken)
        )
        return {"calls": 1, "rows": len(rows)} | merged(*each)

    return counts


def requantization_tables(
    inputs: tuple[Tensor, ...], output: Tensor
) -> tuple[NDArray[np.int8] | None, NDArray[np.uint32] | None]:
    """Requantisation tables int8[n * 256], and the number of each input's table; n stands for no table.

    (None, None) if no input needs a table.
    """
    if not is_int8(output):
        return None, None
    target = quantization_of(output)
    sources = [quantization_of(tensor) for tensor in inputs]
    foreign = list(dict.fromkeys(source for source in sources if source != target))
    if not foreign:
        return None, None
    tables = np.concatenate([requantization_table(source, target) for source in foreign])
    chosen = [len(foreign) if source == target else foreign.index(source) for source in sources]
    return tables, np.array(chosen, np.uint32)
