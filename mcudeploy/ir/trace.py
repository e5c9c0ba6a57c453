"""An access trace: steps with durations, the items that they access, and the link between two memories.

From these alone, the search for offloads decides a residency.
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

    - `given`: before the first step, the item is valid in the slow memory, such as an input or a weight.
    - `loaded`: before the first step, the item is valid in the fast memory, and takes room there from then
      on. If it is given too, the search may choose this.
    - `kept`: after the last step, the item must be valid in one of the memories.
    - `fixed`: the item is in the fast memory without a gap, from its first access to its last. A given item
      is there from the start, a kept one to the end.
    - `home`: the item is given and kept, and must be valid in the slow memory after the last step, which does
      not write it.
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

    The step may access the item in the slow memory directly unless `direct_bytes` is None; then the core
    waits for this number of bytes. Accesses of a step with the same `operand` are all direct, or none is.
    """

    item: int
    writes: bool
    operand: int = 0
    direct_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A step that takes `cycles` if all its items are in the fast memory.

    It needs `work_bytes` there while it runs. `origin`: its place in the trace before steps were repeated. A
    step that is not `repeatable` runs once.
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

    `read_rate`, `write_rate`: bytes per cycle from and to the slow memory; 0 if transfers are impossible.
    `latency`: cycles of each transfer in addition. Transfers run one at a time, in the order of issue.
    `overlapped`: whether an engine copies while the core computes; otherwise the core copies.
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
    """A transfer of an item that is issued before step `start`; before step `end`, the core waits for it.

    The target is reserved from `start` on, and valid from `end` on; the source stays valid until then. If the
    core copies, `end` is `start`.
    """

    item: int
    direction: Direction
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Residency:
    """The memories of items over time: residences without offsets, and transfers in the order of issue.

    A residence begins with a write or with the start of a transfer. `trace` includes the repeated steps. An
    operand is read in the fast memory if all its items are valid there, and written there if all have room
    there; else directly. Before a step, the core first waits for the earlier transfers whose `end` is this
    step. Then the core issues, in order, the transfers that start at this step. If a transfer also ends at
    this step, the core waits for it before it issues the next one.

    `cycles`: all steps, waits, copies by the core and direct accesses. `exposed_cycles`: those of them that
    would be absent with everything in the fast memory. `repeated_cycles`: those of repeated steps.
    `peak_bytes`: of the fast memory. `method`: the name of the search that found the residency.
    """

    trace: Trace
    residences: Residences
    transfers: tuple[ItemTransfer, ...]
    cycles: float
    exposed_cycles: float
    repeated_cycles: float
    peak_bytes: int
    method: str = ""
