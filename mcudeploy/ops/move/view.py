"""Reshape: the same elements in the same order under another shape, at no run-time cost."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import Axis, Index, KernelCall, LoopNest, PlainOperator, RowsPart
from mcudeploy.ops.common import WIDE_INTEGERS


@dataclass(frozen=True, slots=True)
class Reshape(PlainOperator):
    """(rows, cols, channels) -> `shape`, in row-major order. A view: output and input share memory.

    If the number of rows stays, row i reads row i. Otherwise every output row needs the whole input, because
    a view has its input's memory as one piece.
    """

    kind: ClassVar[str] = "Reshape"
    moves: ClassVar[bool] = True
    takes_rows: ClassVar[bool] = True
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS
    is_view: ClassVar[bool] = True

    shape: Shape

    def on_rows(self, part: RowsPart) -> Reshape:
        """The same view of these rows."""
        return Reshape((len(part.rows), *self.shape[1:]))

    def why_whole(self, inputs: tuple[Shape, ...], rows: int) -> str | None:
        """Rows can be computed separately if their number stays."""
        return "it moves elements from row to row" if inputs[0][0] != rows else None

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Whole rows, or the whole input. Raises ValueError if the numbers of elements differ."""
        (source,) = inputs
        if prod(source) != prod(self.shape):
            raise ValueError(f"cannot view {source} as {self.shape}: the numbers of elements differ")
        rows, cols, channels = (Axis(name, size) for name, size in zip("hwc", self.shape, strict=True))
        write = (Index.of(h=1), Index.of(w=1), Index.of(c=1))
        if source[0] == self.shape[0]:
            inner = (Axis("r", source[1]), Axis("s", source[2]))
            return LoopNest(
                (rows, cols, channels, *inner), ((write[0], Index.of(r=1), Index.of(s=1)),), write
            )
        whole = tuple(Axis(name, size) for name, size in zip("qrs", source, strict=True))
        reads = ((Index.of(q=1), Index.of(r=1), Index.of(s=1)),)
        return LoopNest((rows, cols, channels, *whole), reads, write)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Raise ValueError: a view has no kernel."""
        raise ValueError(f"{operator.name} is a view: it has no kernel")

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """The output is the input's memory."""
        return (0,)
