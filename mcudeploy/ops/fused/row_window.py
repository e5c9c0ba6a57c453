"""The rows of its input that an operator reads for each row of its output."""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Index, LoopNest


@dataclass(frozen=True, slots=True)
class RowWindow:
    """The rows of its input that an operator reads for its row r: [stride * r + lo, stride * r + hi)."""

    stride: int
    lo: int
    hi: int

    def after(self, inner: RowWindow) -> RowWindow:
        """Return the window of the chain of `inner` and this operator on the input of `inner`."""
        return RowWindow(
            self.stride * inner.stride,
            self.lo * inner.stride + inner.lo,
            (self.hi - 1) * inner.stride + inner.hi,
        )


def row_window(nest: LoopNest) -> RowWindow | None:
    """Return the window along the rows of an operator with one input.

    None if its output rows have no window of fixed size, or if they need all rows of its input.
    """
    if len(nest.reads) != 1:
        return None
    write, read = nest.write[0], nest.reads[0][0]
    if not isinstance(write, Index) or not isinstance(read, Index) or write.offset:
        return None
    steps = dict(read.steps)
    axes = {axis.name: axis for axis in nest.axes}
    if [step for _, step in write.steps] != [1]:
        return None
    ((along, _),) = write.steps
    if steps.get(along, 0) < 1:
        return None
    first = read.reach(axes, {along: Interval(0, 1)})
    return RowWindow(steps[along], first.lo, first.hi)
