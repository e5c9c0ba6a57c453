"""Half-open intervals: live ranges in steps, address ranges in bytes, rows of a tensor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """[lo, hi): all integers x with lo <= x < hi. Empty if lo == hi; ValueError if hi < lo."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        if self.hi < self.lo:
            raise ValueError(f"interval [{self.lo}, {self.hi}) ends before it begins")

    def __len__(self) -> int:
        return self.hi - self.lo

    def __contains__(self, value: int) -> bool:
        return self.lo <= value < self.hi

    def __str__(self) -> str:
        return f"[{self.lo}, {self.hi})"

    def overlaps(self, other: Interval) -> bool:
        """Return whether both have an integer in common."""
        return max(self.lo, other.lo) < min(self.hi, other.hi)

    def covers(self, other: Interval) -> bool:
        """Return whether every integer of `other` is in this interval."""
        return len(other) == 0 or (self.lo <= other.lo and other.hi <= self.hi)

    def clip(self, lo: int, hi: int) -> Interval:
        """Return the part inside [lo, hi); an empty interval at the nearer end if there is none."""
        start = min(max(self.lo, lo), hi)
        return Interval(start, max(start, min(self.hi, hi)))

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that covers both; an empty one adds nothing."""
        if len(self) == 0:
            return other
        if len(other) == 0:
            return self
        return Interval(min(self.lo, other.lo), max(self.hi, other.hi))
