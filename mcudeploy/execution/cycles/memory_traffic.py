"""Loads and stores of a run by memory, as the emulator counts them, and the cycles that slow memories add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import BuildError, ConfigError
from mcudeploy.device.target import Target
from mcudeploy.execution.cycles.plugin import Counts
from mcudeploy.ir.interval import Interval
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.emulator import emulated_board

JsonObject = dict[str, Any]
UNIT = "instructions + stalls (model)"
STACK = "stack"
OTHER = "other"
SOURCE = (
    "loads and stores counted in the emulator, divided by the rates of the board file; instruction fetches "
    "are assumed to be in time, and an engine's transfers are not counted"
)


@dataclass(frozen=True, slots=True)
class AddressRegion:
    """A part of the address space; `memory`: the board's memory that contains it, None for flash."""

    name: str
    memory: str | None
    addresses: Interval


def regions_of(firmware: Firmware) -> tuple[AddressRegion, ...]:
    """Return the stack, which is in the first memory, the memories without it, and flash."""
    board = emulated_board(firmware.board) if firmware.emulated else firmware.board
    first = board.memories[0].name
    stack = _symbols(firmware.elf, "mcud_stack_limit", "mcud_stack_top")
    return (
        AddressRegion(STACK, first, Interval(*stack)),
        *(AddressRegion(it.name, it.name, it.addresses) for it in board.memories),
        AddressRegion("flash", None, board.flash.addresses),
    )


@dataclass(frozen=True, slots=True)
class MemoryTraffic:
    """Bytes loaded and stored by region, and the cycles that the core waits for them."""

    loaded: Mapping[str, int]
    stored: Mapping[str, int]
    stall_cycles: Mapping[str, float]

    @classmethod
    def of(cls, counts: Counts, regions: tuple[AddressRegion, ...], board: Board) -> MemoryTraffic:
        """Return the accesses of a stretch of execution. Flash and unknown addresses cause no wait."""
        names = (*(region.name for region in regions), OTHER)
        loaded = {name: counts.loaded[at] for at, name in enumerate(names)}
        stored = {name: counts.stored[at] for at, name in enumerate(names)}
        stalls = {}
        for region in regions:
            if region.memory is not None:
                memory = board.memory(region.memory)
                waits = loaded[region.name] * memory.read_cost + stored[region.name] * memory.write_cost
                stalls[region.name] = waits
        return cls(loaded, stored, stalls)

    @property
    def stalls(self) -> float:
        """All cycles that the core waits."""
        return sum(self.stall_cycles.values())

    @property
    def by_region(self) -> dict[str, int]:
        """Bytes accessed, by region, without unused regions."""
        both = {name: count + self.stored[name] for name, count in self.loaded.items()}
        return {name: count for name, count in both.items() if count}


def require_emulated(target: Target) -> None:
    """Raise ConfigError for a target whose accesses nobody counts."""
    if not target.emulated:
        way_out = ", or add --emulate." if target.board.emulator else "."
        raise ConfigError(
            f"--timing traffic is for emulated boards; {target.board.name} is none here. "
            f"Leave --timing out{way_out}"
        )


def traffic_report(
    operators: Mapping[str, Counts], firmware: Firmware, report: Mapping[str, Any], unit: str = UNIT
) -> JsonObject:
    """Return the keys of a report of `measure` or `run` that counted accesses replace or add.

    The stalls are added to latency and operators, as `unit` states.
    """
    regions, board = regions_of(firmware), firmware.board
    each = {name: MemoryTraffic.of(counts, regions, board) for name, counts in operators.items()}
    total = Counts()
    for counts in operators.values():
        total.add(counts)
    whole = MemoryTraffic.of(total, regions, board)
    spent = {it["name"]: it["ticks"] + each[it["name"]].stalls for it in report["operators"]}
    return {
        "latency": {"value": round(report["latency"]["value"] + whole.stalls), "unit": unit},
        "overhead_percent": None,
        "overhead_source": None,
        "operators": [
            {
                **operator,
                "ticks": round(spent[operator["name"]]),
                "stall_cycles": round(each[operator["name"]].stalls),
                "traffic_counted": each[operator["name"]].by_region,
                "share": spent[operator["name"]] / (sum(spent.values()) or 1),
            }
            for operator in report["operators"]
        ],
        "traffic_counted": {
            name: {"loaded": whole.loaded[name], "stored": whole.stored[name]} for name in whole.by_region
        },
        "stalls": {
            "cycles": round(whole.stalls),
            "by_memory": {name: round(waits) for name, waits in whole.stall_cycles.items() if waits},
            "percent": 100 * whole.stalls / (report["latency"]["value"] or 1),
            "source": SOURCE,
        },
    }


def _symbols(elf: Path, *names: str) -> list[int]:
    with elf.open("rb") as file:
        tables = [it for it in ELFFile(file).iter_sections() if isinstance(it, SymbolTableSection)]
        found = {symbol.name: symbol["st_value"] for table in tables for symbol in table.iter_symbols()}
    missing = [name for name in names if name not in found]
    if missing:
        raise BuildError(f"the firmware has no symbol {missing[0]}")
    return [found[name] for name in names]
