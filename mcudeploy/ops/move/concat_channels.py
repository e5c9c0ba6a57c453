"""Concatenation of some channels of each input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import Counts, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import (
    ELEMENTWISE,
    counts_of_rows,
    is_int8,
    merged,
    reduced_axis,
    spatial_axes,
)
from mcudeploy.ops.move.concat import requantization_tables
from mcudeploy.ops.move.take import MOST, Positions


@dataclass(frozen=True, slots=True)
class ConcatChannels(PlainOperator):
    """Channels `channels[i]` of input i, ascending, side by side; int8, with separate quantisations.

    The result equals these channels of a Concat.
    """

    kind: ClassVar[str] = "ConcatChannels"
    takes_rows: ClassVar[bool] = True
    named: ClassVar[str] = "concat"

    channels: tuple[Positions, ...]

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A pixel declares to read all channels of its place.

        Raises ValueError for missing channels, or images of several sizes.
        """
        if len({shape[:2] for shape in inputs}) != 1 or len(inputs) != len(self.channels):
            raise ValueError(f"it takes {len(self.channels)} images of one size, found {inputs}")
        for (_, _, size), taken in zip(inputs, self.channels, strict=True):
            ascends = taken and list(taken) == sorted(set(taken))
            if not ascends or taken[0] < 0 or taken[-1] >= min(size, MOST + 1):
                raise ValueError(f"channels {taken} of {size} do not ascend, or are outside")
        rows, cols, _ = inputs[0]
        axes = [reduced_axis(f"any_{place}", shape[2]) for place, shape in enumerate(inputs)]
        row, col, _ = ELEMENTWISE
        reads = tuple((row, col, Index.of(**{axis.name: 1})) for axis in axes)
        out = spatial_axes((rows, cols, sum(map(len, self.channels))))
        return LoopNest((*out, *axes), reads, ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `concat_channels`. Raises ValueError for other types than int8."""
        if not all(map(is_int8, (*inputs, output))):
            raise ValueError("parts of channels are concatenated as int8 only")
        tables, table_of_input = requantization_tables(inputs, output)
        table_count = 0 if tables is None else tables.size // 256
        pixels, out_channels = output.shape[1:]
        params: Params = {
            "tables": tables,
            "table_of_input": table_of_input,
            "channels": np.concatenate([np.array(taken, np.uint16) for taken in self.channels]),
            "taken": np.array([len(taken) for taken in self.channels], np.uint16),
            "in_channels": np.array([tensor.shape[2] for tensor in inputs], np.uint16),
            "inputs": len(inputs),
            "pixels": pixels,
            "out_channels": out_channels,
            "table_count": table_count,
        }
        tables_by_input = [table_count] * len(inputs) if table_of_input is None else table_of_input.tolist()
        parts = (
            _counts(taken, pixels, number < table_count)
            for taken, number in zip(self.channels, tables_by_input, strict=True)
        )
        row: Counts = {"rows": 1, "inputs": len(inputs)} | merged(*parts)
        return KernelCall("concat_channels", params, counts=counts_of_rows(row))


def _counts(channels: Positions, pixels: int, by_table: bool) -> Counts:
    count = len(channels)
    if by_table or channels[-1] - channels[0] > count - 1:
        name = "mapped" if by_table else "picked"
        return {f"{name}_fours": pixels * (count // 4), f"{name}_rest": pixels * (count % 4), name: pixels}
    return {"copied_words": pixels * (count // 4), "copied_rest": pixels * (count % 4), "copied": pixels}
