"""The positions of a tensor's dimension that a part of one axis reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import AnyIndex, Axis, TableIndex


@dataclass(frozen=True, slots=True)
class Window:
    """Positions `stride * o + start + dilation * (0 .. kernel - 1)` for value o of the axis.

    `start` is the negative leading padding. Every other axis of the index (the taps of a window, the other
    axes of a transpose) is in `kernel` and `dilation`. With several such axes, `kernel` is the extent of all
    and `dilation` is 1.
    """

    stride: int = 1
    start: int = 0
    kernel: int = 1
    dilation: int = 1

    @property
    def extent(self) -> int:
        """The number of positions from the first to the last that one value of the axis needs, inclusive."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def overlap(self) -> int:
        """The number of positions that two neighbouring parts both need, away from the borders."""
        return max(0, self.extent - abs(self.stride))

    def needed(self, part: Interval) -> Interval:
        """Return `[lo * stride + start, (hi - 1) * stride + start + extent)` for part [lo, hi); unclipped."""
        if len(part) == 0:
            return Interval(0, 0)
        first, last = self.stride * part.lo, self.stride * (part.hi - 1)
        return Interval(self.start + min(first, last), self.start + max(first, last) + self.extent)

    def covers_all(self, values: int, positions: int) -> bool:
        """Return True if one of `values` values of the axis needs all `positions` of the dimension."""
        if self.extent < positions:
            return False
        every = Interval(0, positions)
        return any(self.needed(Interval(value, value + 1)).covers(every) for value in range(values))


@dataclass(frozen=True, slots=True)
class TableWindow:
    """Positions `lo[o]` to `hi[o] - 1` for value o of the axis (resize)."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]

    @property
    def overlap(self) -> int:
        """The maximum number of positions that two neighbouring parts both need, over all cuts."""
        return max((self._shared(cut) for cut in range(1, len(self.lo))), default=0)

    def _shared(self, cut: int) -> int:
        """Return the number of positions needed on both sides of a cut before value `cut`."""
        before, after = self.needed(Interval(0, cut)), self.needed(Interval(cut, len(self.lo)))
        return max(0, min(before.hi, after.hi) - max(before.lo, after.lo))

    def needed(self, part: Interval) -> Interval:
        """Return the hull of the table's entries over `part`."""
        if len(part) == 0:
            return Interval(0, 0)
        return Interval(min(self.lo[part.lo : part.hi]), max(self.hi[part.lo : part.hi]))

    def covers_all(self, values: int, positions: int) -> bool:
        """Return True if one value of the axis needs all `positions` of the dimension."""
        return any(lo <= 0 and positions <= hi for lo, hi in zip(self.lo, self.hi, strict=True))


AnyWindow = Window | TableWindow


def window_of(index: AnyIndex, name: str, axes: Mapping[str, Axis]) -> AnyWindow:
    """Return the window of axis `name` in `index`; the other axes of the index run through all values."""
    if isinstance(index, TableIndex):
        return TableWindow(index.lo, index.hi)
    others = [(step, axes[axis].size) for axis, step in index.steps if axis != name and axes[axis].size > 1]
    start = index.offset + sum(min(0, step * (size - 1)) for step, size in others)
    stride = sum(step for axis, step in index.steps if axis == name)
    if len(others) == 1:
        ((step, size),) = others
        return Window(stride, start, size, abs(step))
    return Window(stride, start, 1 + sum(abs(step) * (size - 1) for step, size in others))
