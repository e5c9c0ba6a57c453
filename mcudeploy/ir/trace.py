"""An access trace: steps with durations, the items that each accesses, and the link between two memories.

The offload search decides a residency from this alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mcudeploy.ir.plan import Residences

FAST, SLOW = "fast", "slow"
"""The names of the two memories."""


@dataclass(frozen=True, slots=True)
class Item:
    """Bytes that exist from their first access to their last: a block of a tensor, or a whole tensor.

    `given`: it is valid in the slow memory before the first step, like an input or a weight. `loaded`: it is
    valid in the fast memory before the first step, and takes room there from then on; if it is also given,
    only on demand. `kept`: after the last step it must be valid in either memory. `fixed`: it is in the fast
    memory without a gap from its first access (if given: from the start) to its last (if kept: to the end).
    `home`: it is given and kept, and after the last step, which does not write it, it must be valid in the
    slow memory again.
    """

    name: str
    size_bytes: int
    given: bool = False
    kept: bool = False
    fixed: bool = False
    loaded: bool = False
    home: bool = False


@dataclass(frozen=True, slots=True)
class ItemAccess:
    """A read of an item by a step, or a write of the whole item; a step that does both has two accesses.

    A step may also access the slow memory directly: the core then waits for `direct_bytes`. Accesses of a
    step with the same `operand` are all direct, or none is. None: direct access is impossible.
    """

    item: int
    writes: bool
    operand: int = 0
    direct_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A step that takes `cycles` with all its items in the fast memory, plus `work_bytes` while it runs.

    `origin` is its place in the trace before steps were repeated. A step that is not `repeatable` runs once.
    """

    name: str
    cycles: float
    accesses: tuple[ItemAccess, ...]
    work_bytes: int = 0
    repeatable: bool = True
    origin: int = -1


@dataclass(frozen=True, slots=True)
class Trace:
    """Steps in execution order, and the items that they access."""

    items: tuple[Item, ...]
    steps: tuple[TraceStep, ...]


@dataclass(frozen=True, slots=True)
class MemoryLink:
    """The link between the two memories.

    It has bytes per cycle from and to the slow memory (0: no transfers at all), and a fixed number of cycles
    per transfer. Transfers are served one at a time, in the order of issue. An `overlapped` engine works
    while the core computes; otherwise the core copies.
    """

    read_rate: float
    write_rate: float
    latency: float = 0.0
    overlapped: bool = True

    def cycles(self, size_bytes: int, direction: Direction) -> float:
        """Return the cycles of a transfer."""
        return self.latency + size_bytes / (self.write_rate if direction == "out" else self.read_rate)


Direction = Literal["in", "out"]
"""The direction of a transfer: into the fast memory, or out of it."""


@dataclass(frozen=True, slots=True)
class ItemTransfer:
    """A transfer of an item, issued before step `start`; the core waits for its end before step `end`.

    Its target is reserved from `start` on and usable from `end` on; its source stays valid until then.
    Without a separate engine, `end` is `start`.
    """

    item: int
    direction: Direction
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Residency:
    """The memories of items over time: residences without offsets, and transfers in the order of issue.

    A residence includes the time in flight, and begins with a write or a transfer. `trace` includes the
    repeated steps. An operand is read in the fast memory if all its items are valid
    there, and written there if all have bytes there; else directly. Before a step, the core first waits for
    the transfers that end there and began before. Then those that start there are issued in order; the core
    waits at once for each that ends there too. `cycles` counts all steps, waits, copies by the core and
    direct accesses. `exposed_cycles` are those that steps would not take with everything in the fast memory,
    `repeated_cycles` those of repeated steps. `peak_bytes` is that of the fast memory. `method` names the
    origin.
    """

    trace: Trace
    residences: Residences
    transfers: tuple[ItemTransfer, ...]
    cycles: float
    exposed_cycles: float
    repeated_cycles: float
    peak_bytes: int
    method: str = ""
