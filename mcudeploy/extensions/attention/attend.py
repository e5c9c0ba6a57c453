"""Attention of one query for each head, over the live rows of its keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import Axis, Counts, Index, KernelCall, LoopNest, ParamValue, PlainOperator
from mcudeploy.ops.common import merged, reduced_axis, require_same_dtype, scaled

_LINES, _COLUMNS = 4, 8
"""Rows of keys, and columns of values, that the kernel multiplies at a time."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit of the live rows: `offset + step * position`, within 0 and their number."""

    offset: int
    step: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Where rows of a tensor with one row lie, in elements: from row to row, and from head to head."""

    width: int
    pitch: int
    head: int

    def last(self, heads: int, count: int) -> int:
        """The number of elements up to the end of the last row."""
        return (heads - 1) * self.head + (count - 1) * self.pitch + self.width


@dataclass(frozen=True, slots=True)
class Attend(PlainOperator):
    """Position (1, 1, 1) int32, queries (1, 1, heads * keys.width), keys and values (1, 1, ...) -> (1, 1,
    heads * values.width): softmax(scale * query . keys) . values for each head.

    Only the `count` rows from `first` to before `end` count, which the position limits; if there is none, all
    count the same. `group` heads share keys and values.
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

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A multiply-accumulate for each row and each element of a query and of a result."""
        shared = -(-self.heads // self.group)
        shapes = [(1, 1, 1), (1, 1, self.heads * self.keys.width)]
        fit = list(inputs[:2]) == shapes and all(shape[:2] == (1, 1) for shape in inputs)
        for rows, shape in zip((self.keys, self.values), inputs[2:], strict=True):
            fit &= rows.last(shared, self.count) <= shape[2]
        if not fit:
            raise ValueError(f"a query of {self.heads} heads does not fit {inputs}")
        whole, depth = (Index(), Index(), Index()), self.heads * self.keys.width
        row = reduced_axis("row", self.count)
        scores = LoopNest((Axis("depth", depth), row), (), whole, multiplies=True)
        axes = (Axis("ch", self.heads * self.values.width), row)
        write = (Index(), Index(), Index.of(ch=1))
        return LoopNest(axes, (whole,) * 4, write, multiplies=True, inner=(scores,))

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `attend_f32`, whose time is that of all rows."""
        require_same_dtype(*inputs[1:], output)
        if output.dtype is not DType.FLOAT32:
            raise ValueError("attention over live rows is float32")
        params: dict[str, ParamValue] = {
            "heads": self.heads,
            "group": self.group,
            "depth": self.keys.width,
            "width": self.values.width,
            "count": self.count,
            "first": self.first.offset,
            "first_step": self.first.step,
            "end": self.end.offset,
            "end_step": self.end.step,
            "key_pitch": self.keys.pitch,
            "key_head": self.keys.head,
            "value_pitch": self.values.pitch,
            "value_head": self.values.head,
            "scale": self.scale,
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
        return KernelCall("attend_f32", params, 4 * self.count, counts=lambda _: counts)
