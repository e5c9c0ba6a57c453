"""Attention of one query for each head, over the live rows of its keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import Axis, Counts, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import merged, reduced_axis, require_same_dtype, scaled

_LINES, _COLUMNS = 4, 8
"""Rows of keys, and columns of values, that the kernel multiplies at a time."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of the live rows: offset + step * position, clipped to [0, count]."""

    offset: int
    step: int


@dataclass(frozen=True, slots=True)
class Rows:
    """The places of vectors in a flat tensor, in elements.

    A row of a head has `width` elements; `pitch` is the step from row to row, `head` that from head to head.
    """

    width: int
    pitch: int
    head: int

    def extent(self, heads: int, count: int) -> int:
        """The number of elements up to the end of the last row."""
        return (heads - 1) * self.head + (count - 1) * self.pitch + self.width


@dataclass(frozen=True, slots=True)
class Attend(PlainOperator):
    """Position (1, 1, 1) int32, queries (1, 1, heads * keys.width), keys and values (1, 1, ...), their scales
    if they are int8 -> (1, 1, heads * values.width): softmax(scale * query . keys) . values for each head.

    Of the `count` rows, those from `first` to before `end` are live; the position decides both bounds.
    Without live rows, all rows have the same weight. `group` heads share keys and values.
    """

    kind: ClassVar[str] = "Attend"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT32})

    heads: int
    group: int
    count: int
    scale: float
    keys: Rows
    values: Rows
    first: Bound
    end: Bound
    scales: tuple[Rows, ...] = ()
    """The places of the scales of int8 keys, then of int8 values; `head` is 0 if all heads share scales."""
    value_scale: float = 1.0
    """The scale of int8 values without scales by row; that of such keys is part of `scale`."""
    value_zero: int = 0
    """The zero point of these values."""

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A multiply-accumulate for each row and each element of a query and of a result."""
        shared = -(-self.heads // self.group)
        shapes = [(1, 1, 1), (1, 1, self.heads * self.keys.width)]
        fit = list(inputs[:2]) == shapes and all(shape[:2] == (1, 1) for shape in inputs)
        for rows, shape in zip((self.keys, self.values, *self.scales), inputs[2:], strict=True):
            fit &= rows.extent(shared, self.count) <= shape[2]
        if not fit:
            raise ValueError(f"a query of {self.heads} heads does not fit {inputs}")
        whole, depth = (Index(), Index(), Index()), self.heads * self.keys.width
        row = reduced_axis("row", self.count)
        scores = LoopNest((Axis("depth", depth), row), (), whole, multiplies=True)
        axes = (Axis("ch", self.heads * self.values.width), row)
        write = (Index(), Index(), Index.of(ch=1))
        return LoopNest(axes, (whole,) * len(inputs), write, multiplies=True, inner=(scores,))

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `attend_f32` or `attend_s8`; its cost assumes that all rows are live."""
        require_same_dtype(inputs[1], *inputs[4:], output)
        require_same_dtype(*inputs[2:4])
        in_int8 = inputs[2].dtype is DType.INT8
        if output.dtype is not DType.FLOAT32 or not (in_int8 or inputs[2].dtype is DType.FLOAT32):
            raise ValueError("attention is float32 over live rows that are float32 or int8")
        params: Params = {
            "of.heads": self.heads,
            "of.group": self.group,
            "of.depth": self.keys.width,
            "of.width": self.values.width,
            "of.key_pitch": self.keys.pitch,
            "of.key_head": self.keys.head,
            "of.value_pitch": self.values.pitch,
            "of.value_head": self.values.head,
            "of.scale": self.scale,
            "live.count": self.count,
            "live.first": self.first.offset,
            "live.first_step": self.first.step,
            "live.end": self.end.offset,
            "live.end_step": self.end.step,
        }
        blocks, single = divmod(self.count, _LINES)
        columns, alone = divmod(self.values.width, _COLUMNS)
        head: Counts = {
            "heads": 1,
            "fours": blocks,
            "four_values": blocks * self.keys.width,
            "single": single,
            "single_values": single * self.keys.width,
            "rows": self.count,
            "columns": columns,
            "column_rows": columns * self.count,
            "alone": alone,
            "alone_rows": alone * self.count,
            "results": self.values.width,
        }
        counts = merged({"calls": 1}, scaled(head, self.heads))
        if not in_int8:
            return KernelCall("attend_f32", params, 4 * self.count, counts=lambda _: counts)
        places = self.scales or (Rows(1, 0, 0),) * 2
        for name, scales in zip(("key_scales", "value_scales"), places, strict=True):
            params |= {f"{name}.pitch": scales.pitch, f"{name}.head": scales.head}
        params |= {
            "scaled": bool(self.scales),
            "value_scale": self.value_scale,
            "value_zero": float(self.value_zero),
        }
        return KernelCall("attend_s8", params, 4 * self.count, counts=lambda _: counts)
