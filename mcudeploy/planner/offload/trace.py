"""An access trace: steps with their durations, the items that each of them touches, and the link between a
fast memory and a slow one. What `residency` decides is decided from this alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Item:
    """Bytes that are somewhere from their first access to their last: a block of a tensor, or a whole one.

    `given`: it is valid in the slow memory before the first step, as an input or a weight is. `loaded`: it is
    valid in the fast memory before the first step, and takes room there from then on; where it is given too,
    only if that is wanted. `kept`: after
    the last step it must be valid in either memory. `fixed`: it is in the fast memory from its first access
    (a given one: from the start) to its last (a kept one: to the end), without a gap.
    """

    name: str
    size_bytes: int
    given: bool = False
    kept: bool = False
    fixed: bool = False
    loaded: bool = False


@dataclass(frozen=True, slots=True)
class ItemAccess:
    """A step reads an item, or writes it whole; one that does both has two.

    A step may also read or write the slow memory directly: the core then waits for `direct_bytes`. Accesses
    of a step with the same `operand` are direct all together or not at all. None: it cannot be.
    """

    item: int
    writes: bool
    operand: int = 0
    direct_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A step takes `cycles` with all that it touches in the fast memory, of which it needs `work_bytes` more
    while it runs. `origin` is its place in the trace before steps were repeated. One that is not `repeatable`
    runs once.
    """

    name: str
    cycles: float
    accesses: tuple[ItemAccess, ...]
    work_bytes: int = 0
    repeatable: bool = True
    origin: int = -1


@dataclass(frozen=True, slots=True)
class Trace:
    """Steps in the order in which they run, and the items that they touch."""

    items: tuple[Item, ...]
    steps: tuple[TraceStep, ...]


@dataclass(frozen=True, slots=True)
class MemoryLink:
    """Between the two memories: bytes per cycle from the slow one and to it (0: no transfers at all), and the
    cycles that each transfer takes beside. Transfers are served one at a time, in the order in which they
    are issued. An `overlapped` engine works while the core computes; else the core itself copies.
    """

    read_rate: float
    write_rate: float
    latency: float = 0.0
    overlapped: bool = True

    def cycles(self, size_bytes: int, direction: Direction) -> float:
        """What a transfer takes."""
        return self.latency + size_bytes / (self.write_rate if direction == "out" else self.read_rate)


Direction = Literal["in", "out"]
"""Into the fast memory, or out of it."""


@dataclass(frozen=True, slots=True)
class ItemStay:
    """Steps [lo, hi) for which an item has bytes in one of the memories, those in flight included."""

    fast: bool
    lo: int
    hi: int


@dataclass(frozen=True, slots=True)
class ItemTransfer:
    """A transfer of an item, issued before step `start`; the core waits for its end before step `end`.

    Its target is taken from `start` on and may be used from `end` on; its source stays as it is until then.
    Without an engine of its own, `end` is `start`.
    """

    item: int
    direction: Direction
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Residency:
    """Where items are at any time: by item its stays, and the passages in the order in which they are issued.

    `trace` has the repeated steps. An operand is read in the fast memory where all its items are there and
    valid, and written there where all have bytes there; else directly. Before a step, first the passages that
    end there and began before are waited for, then those that start there are issued in order, and each that
    ends there too is waited for at once. `cycles`: of all steps, waits, copies of the core and direct
    accesses. `exposed_cycles` are those that steps would not take with everything in the fast memory,
    `repeated_cycles` those of repeated steps. `peak_bytes`: of the fast memory. `method`: what found it.
    """

    trace: Trace
    stays: tuple[tuple[ItemStay, ...], ...]
    passages: tuple[ItemTransfer, ...]
    cycles: float
    exposed_cycles: float
    repeated_cycles: float
    peak_bytes: int
    method: str = ""
