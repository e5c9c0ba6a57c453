"""A state that keeps the newest columns of the inputs of successive runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import Index, KernelCall, LoopNest, PlainOperator
from mcudeploy.ops.common import ELEMENTWISE, WIDE_INTEGERS, merged, moved, require_same_values, spatial_axes


@dataclass(frozen=True, slots=True)
class Queue(PlainOperator):
    """x (1, new, channels), state (1, length, channels), ... -> the state with x at its end.

    The columns are the positions along time; the `new` oldest leave. The result takes the memory of the
    state, and is the state of the next run. Further inputs are not read: they are results of operators that
    read the old state, and so run before it changes.
    """

    kind: ClassVar[str] = "Queue"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS
    overwritten: ClassVar[tuple[int, ...]] = (1,)
    """The state, whose next content is the output."""

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A column comes from the state, `new` columns further, or from x."""
        x, state, *others = inputs
        if x[0] != 1 or state[0] != 1 or x[2] != state[2] or not 0 < x[1] <= state[1]:
            raise ValueError(f"rows {x} do not fit into a queue {state}")
        row, channel = Index.of(row=1), Index.of(ch=1)
        reads = (
            (row, Index.of(x[1] - state[1], col=1), channel),
            (row, Index.of(x[1], col=1), channel),
            *((Index.of(), Index.of(), Index.of()) for _ in others),
        )
        return LoopNest(spatial_axes(state), reads, ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `queue`."""
        x, state, *_ = inputs
        for source in (x, state):
            require_same_values(source, output)
        newest, remaining = x.size_bytes, state.size_bytes - x.size_bytes
        runs = merged(
            moved(newest, 1 + remaining // newest), moved(remaining % newest, remaining % newest > 0)
        )
        counts = {"calls": 1} | runs
        return KernelCall("queue", {"kept": remaining, "newest": newest}, counts=lambda _: counts)
