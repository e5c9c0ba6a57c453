"""Taint analysis in the emulator: the branches, addresses and divisions of a run that depend on data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from pathlib import Path

import numpy as np

from mcudeploy.common.errors import ProtocolError
from mcudeploy.common.files import write_file
from mcudeploy.execution.cycles.plugin import load_arguments
from mcudeploy.extensions.bounds.control_flow import BranchRegion, ControlFlow, NoRegionError
from mcudeploy.extensions.bounds.effects import Effects, Location, MemoryAccess, locations
from mcudeploy.ir.interval import Interval

SOURCE = Path(__file__).with_name("data_flow.c")
_MOST_MOVED = 15
_RECORD = np.dtype(
    [
        *((name, "<u4") for name in ("address", "join", "other_join", "longest")),
        *((name, "<u4") for name in ("flags", "unused")),
        *((name, "<u8") for name in ("reads", "writes", "partial", "locations", "updates", "control")),
        *((name, "<u8") for name in ("region_writes", "region_slots")),
        ("stack_move", "<u4"),
        ("stack_difference", "<i4"),
        ("moved_count", "u1"),
        ("moved", "u1", _MOST_MOVED),
    ]
)
"""`effects` of data_flow.c."""


class _Flag(IntFlag):
    LOADS = 1
    STORES = 2
    CALLS = 4
    UNKNOWN = 8
    REGION = 16
    REGION_STORES = 32
    FRAME = 64
    DIVIDES = 128


class Finding(IntEnum):
    """A kind of dependence on data at an instruction; the numbers are those of data_flow.c."""

    BRANCH_WITHOUT_REGION = 0
    UNKNOWN_INSTRUCTION = 1
    JUMP_BY_DATA = 2
    LOAD_ADDRESS = 3
    STORE_ADDRESS = 4
    DIVISION = 5
    LEFT_REGION = 6


@dataclass(frozen=True, slots=True)
class RegionEntries:
    """How often the program entered the region of a branch, and the instructions executed inside."""

    times: int
    inside: int


@dataclass(frozen=True, slots=True)
class DataFlow:
    """Dependences on data in one window of execution. `findings`: occurrences by address and kind."""

    instructions: int
    entered: Mapping[int, RegionEntries] = field(default_factory=dict)
    findings: Mapping[tuple[int, Finding], int] = field(default_factory=dict)

    def found(self, kind: Finding) -> list[int]:
        """Return the addresses with findings of a kind, in ascending order."""
        return sorted(address for address, found in self.findings if found is kind)


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions of a program's branches by address, and the reasons why other branches have none."""

    known: Mapping[int, BranchRegion]
    reasons: Mapping[int, str]

    @classmethod
    def of(cls, flow: ControlFlow) -> Regions:
        """Return the regions of all branches of a program."""
        known: dict[int, BranchRegion] = {}
        reasons: dict[int, str] = {}
        for branch in flow.branches():
            try:
                known[branch] = flow.region(branch)
            except NoRegionError as error:
                reasons[branch] = str(error)
        return cls(known, reasons)

    def extra(self, flow: DataFlow) -> tuple[int, float]:
        """Return the most instructions that other data may add to a window, and the cycles of all regions."""
        instructions, cycles = 0, 0.0
        for branch, entered in flow.entered.items():
            region = self.known[branch]
            instructions += entered.times * region.longest - entered.inside
            cycles += entered.times * region.longest_cycles
        return instructions, cycles


@dataclass(frozen=True, slots=True)
class Memories:
    """Addresses of memory: `data` is tainted when a window opens, `constants` never is."""

    data: Sequence[Interval]
    constants: Interval


def data_flow_arguments(
    qemu: str, window: tuple[int, int], files: tuple[Path, Path], memories: Memories
) -> tuple[str, ...]:
    """Return QEMU's arguments with which a plugin follows data through each window.

    `window`: the first instruction of a window, and the one after it. `files`: the table of instructions to
    read, and the results to write.

    Raises BuildError if the plugin cannot be compiled.
    """
    table, out = files
    begin, end = window
    watched = [f"data={it.lo:#x}-{it.hi:#x}" for it in memories.data]
    watched.append(f"constants={memories.constants.lo:#x}-{memories.constants.hi:#x}")
    return load_arguments(
        SOURCE, qemu, out, (f"begin={begin:#x}", f"end={end:#x}", f"table={table}", *watched)
    )


def write_table(flow: ControlFlow, regions: Regions, path: Path) -> None:
    """Write the records of all instructions of a program for the plugin. Raises OSError."""
    rows = [
        _record(address, effects, regions.known.get(address), calls=flow.calls(address))
        for address, effects in sorted(flow.effects.items())
    ]
    write_file(path, np.array(rows, dtype=_RECORD).tobytes())


def _record(
    address: int, effects: Effects | None, region: BranchRegion | None, *, calls: bool
) -> tuple[object, ...]:
    if effects is None:
        return (address, 0, 0, 0, _Flag.UNKNOWN, *(0,) * 12, np.zeros(_MOST_MOVED, "u1"))
    flags = {
        _Flag.LOADS: effects.access is MemoryAccess.LOAD,
        _Flag.STORES: effects.access is MemoryAccess.STORE,
        _Flag.CALLS: calls,
        _Flag.FRAME: bool(effects.address & locations([Location.SP])) and effects.stack.slots is not None,
        _Flag.DIVIDES: effects.divides,
        _Flag.REGION: region is not None,
        _Flag.REGION_STORES: region is not None and region.stores,
    }
    moved = effects.moved if len(effects.moved) <= _MOST_MOVED else ()
    return (
        address,
        0 if region is None else region.join,
        0 if region is None else region.other_join,
        0 if region is None else region.longest,
        sum(flag for flag, is_set in flags.items() if is_set),
        0,
        effects.reads,
        effects.writes,
        effects.partial,
        effects.address,
        effects.updates,
        effects.control,
        0 if region is None else region.writes,
        0 if region is None else region.slots,
        effects.stack.kind,
        effects.stack.difference,
        len(moved),
        np.array([*moved, *[0] * (_MOST_MOVED - len(moved))], "u1"),
    )


def read_data_flow(path: Path) -> Iterator[DataFlow]:
    """Yield the windows that the plugin wrote, in the order of time. Raises ProtocolError for a cut file."""
    words: list[int] = np.fromfile(path, dtype=np.uint64).tolist()
    at = 0
    while at < len(words):
        entered, after = _rows(words, at + 1)
        findings, end = _rows(words, after)
        yield DataFlow(
            words[at],
            {address: RegionEntries(times, inside) for address, times, inside in entered},
            {(address, Finding(kind)): count for address, kind, count in findings},
        )
        at = end


def _rows(words: Sequence[int], at: int) -> tuple[list[tuple[int, int, int]], int]:
    """Return rows of three words, preceded by their number, and the position after them."""
    count = words[at] if at < len(words) else len(words)
    rows = words[at + 1 : at + 1 + 3 * count]
    if len(rows) != 3 * count:
        raise ProtocolError("the data flow of the emulator is incomplete: it was stopped early")
    return list(zip(rows[::3], rows[1::3], rows[2::3], strict=True)), at + 1 + 3 * count
