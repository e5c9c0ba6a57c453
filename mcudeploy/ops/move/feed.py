"""Input that the application delivers row by row while the model runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import KernelCall, LoopNest, PlainOperator, Symbol
from mcudeploy.ops.common import ELEMENTWISE, spatial_axes


@dataclass(frozen=True, slots=True)
class StreamedInput(PlainOperator):
    """Model input number `position`, of `shape`; it has no input, and the application writes its rows."""

    kind: ClassVar[str] = "Feed"

    position: int
    shape: Shape

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """No input; the output has the given shape."""
        return LoopNest(spatial_axes(self.shape), (), ELEMENTWISE)

    def in_rows(self, operator: Operator, written: Shape | None, read: Shape | None) -> Operator:
        """Return the operator with the written shape."""
        return operator if written is None else replace(operator, op=replace(self, shape=written))

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """feed, which requests rows from the application."""
        return KernelCall("feed", {"feed": Symbol("feed_rows"), "input": self.position})
