"""Loads and stores of a run by memory, as the emulator counts them, and the cycles that slow memories add."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import BuildError, ConfigError
from mcudeploy.device.target import Target
from mcudeploy.execution.cycles.plugin import Counts
from mcudeploy.ir.engine import FLASH
from mcudeploy.ir.interval import Interval
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.disassembly import read_symbols
from mcudeploy.toolchain.emulator import emulated_board

STACK = "stack"
OTHER = "other"


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
        AddressRegion(FLASH, None, (board.flash.external or board.flash).addresses),
    )


@dataclass(frozen=True, slots=True)
class MemoryTraffic:
    """Bytes loaded and stored by region, and the cycles that the core waits for them."""

    loaded: Mapping[str, int]
    stored: Mapping[str, int]
    stall_cycles: Mapping[str, float]

    @classmethod
    def of(
        cls, counts: Counts, regions: tuple[AddressRegion, ...], board: Board, constant_bytes: int = 0
    ) -> MemoryTraffic:
        """Return the accesses of a step by a kernel with constants of this size; 0 for a move of blocks.

        Unknown addresses cause no wait.
        """
        names = (*(region.name for region in regions), OTHER)
        loaded = {name: counts.loaded[at] for at, name in enumerate(names)}
        stored = {name: counts.stored[at] for at, name in enumerate(names)}
        stalls = {}
        for region in regions:
            if region.memory is not None:
                memory = board.memory(region.memory)
                waits = loaded[region.name] * memory.read_cost + stored[region.name] * memory.write_cost
                stalls[region.name] = waits
        stalls[FLASH] = board.flash.stalls(loaded[FLASH], constant_bytes)
        return cls(loaded, stored, stalls)

    @classmethod
    def total(cls, each: Collection[MemoryTraffic]) -> MemoryTraffic:
        """Return the sums of several."""
        names = dict.fromkeys(name for it in each for name in it.loaded)
        waits = dict.fromkeys(name for it in each for name in it.stall_cycles)
        return cls(
            {name: sum(it.loaded[name] for it in each) for name in names},
            {name: sum(it.stored[name] for it in each) for name in names},
            {name: sum(it.stall_cycles[name] for it in each) for name in waits},
        )

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
    """Raise ConfigError for a target whose accesses no emulator counts."""
    if not target.emulated:
        way_out = ", or add --emulate." if target.board.emulator else "."
        raise ConfigError(
            f"--timing traffic is for emulated boards; {target.board.name} is not emulated here. "
            f"Leave --timing out{way_out}"
        )


def _symbols(elf: Path, *names: str) -> list[int]:
    values = {symbol.name: symbol.value for symbol in read_symbols(elf)}
    missing = [name for name in names if name not in values]
    if missing:
        raise BuildError(f"the firmware has no symbol {missing[0]}")
    return [values[name] for name in names]
