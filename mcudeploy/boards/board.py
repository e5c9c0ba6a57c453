"""Boards: the facts of boards/<name>.toml, validated. The single source of addresses, sizes and flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from math import lcm
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from mcudeploy.boards.consistency import (
    check_chips,
    check_controllers,
    check_core,
    check_links,
    check_own_sources,
    check_registers,
    check_units,
)
from mcudeploy.boards.fact_types import (
    BoardName,
    Core,
    CpuFlag,
    Facts,
    HalSource,
    Hertz,
    Identifier,
    Line,
    Patience,
    UsbId,
)
from mcudeploy.boards.facts import (
    Alignment,
    ChainPort,
    ChipId,
    EmulatorFacts,
    Flash,
    Framework,
    Link,
    Memory,
    Npu,
    Registry,
    Timer,
    Timers,
    Uart,
    Unit,
)
from mcudeploy.boards.flashers import Flasher
from mcudeploy.boards.pioshipped import Radio
from mcudeploy.boards.platformio import is_pio
from mcudeploy.common.errors import ConfigError, UsageError
from mcudeploy.common.files import read_toml
from mcudeploy.ir.engine import FLASH
from mcudeploy.ir.isa import Isa

__all__ = [
    "Board",
    "Link",
    "Memory",
    "Timer",
    "Unit",
    "board_at",
    "read_board",
]

FIRMWARE_RAM_BYTES = 656
"""Bytes of RAM for the measurer beside arena and stack. On tested boards its .data and .bss take at most 640,
mostly for the buffers of the serial line; the others are for an application that feeds inputs.
"""
CODE_BYTES = 32 * 1024
"""Bytes of flash that code and tables seldom exceed."""
CORE_STACK_BYTES = 2048
"""The stack of each further core that runs a program, and the minimum for other units."""
MOST_LINKS = 4
"""The maximum number of links: hal/dma_soft.c has this number of engines."""
CACHE_LINES = {"cortex-m7": 32, "cortex-m55": 32, "cortex-m85": 32}
"""Bytes of a line of the data cache, by core, for boards whose units do not state it."""
_MOST_FILE_BYTES = 2**20
_UNFUSED_CORES = frozenset({"cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4"})
_DSP_CORES = frozenset({"cortex-m4", "cortex-m7", "cortex-m33"})


class Board(Facts):
    """One board. Sizes are bytes, addresses are those of the processor, rates are Hz.

    A board without `hal` is known by the facts of its `source` only: models are planned and libraries built
    for it, no firmware.
    """

    name: BoardName
    title: Line
    family: Identifier
    family_default: bool = False
    core: Core
    toolchain: Literal["arm-none-eabi", "riscv64-unknown-elf", "xtensa-esp32s3-elf", "platformio", "host"]
    cpu_flags: tuple[CpuFlag, ...]
    vectors: bool = False
    """The core has the M-profile Vector Extension (Helium) or RISC-V's vectors (Zve32x), and `cpu_flags`
    allow it.
    """
    clock_hz: Hertz
    stack_bytes: Annotated[int, Field(ge=512, le=2**32)]
    usb_ids: tuple[UsbId, ...] = ()
    aliases: tuple[BoardName, ...] = ()
    """Other names that people type, such as those of boards with the same chip and pins."""
    radio: tuple[Radio, ...] = ()
    hal: tuple[HalSource, ...] = ()
    unit_hal: tuple[HalSource, ...] = ()
    """HAL sources of programs that use more than the first compute unit."""
    cores: Annotated[int, Field(ge=1, le=8)] = 1
    """The number of equal cores that can run one program together, in the memories that all reach."""
    core_hal: tuple[HalSource, ...] = ()
    """HAL sources of programs that several cores run."""
    source: str = ""
    flash: Flash
    memories: Annotated[tuple[Memory, ...], Field(alias="memory", min_length=1)]
    units: Annotated[tuple[Unit, ...], Field(alias="unit", min_length=1)] = (Unit(name="core"),)
    npu: Npu | None = None
    """A unit beside the core that runs command streams."""
    links: Annotated[tuple[Link, ...], Field(alias="link", max_length=MOST_LINKS)] = ()
    uart: Uart | None = None
    io_dma: tuple[Identifier, ...] = ()
    io_align: Alignment = 1
    ports: Annotated[tuple[ChainPort, ...], Field(alias="port", max_length=2)] = ()
    """The lines to the previous and the next board of a chain."""
    port_hal: tuple[HalSource, ...] = ()
    """HAL sources that the ports need."""
    timer: Timers = Timers()
    emulator: EmulatorFacts | None = None
    chip_id: ChipId | None = None
    flashers: Annotated[tuple[Flasher, ...], Field(alias="flasher")] = ()
    """Tools that write the board, the preferred one first."""
    registry: Registry | None = None
    framework: Framework | None = None
    """PlatformIO's framework, which has compiler, start-up code and linker script for the firmware."""
    patience: Patience = 1.0
    """Multiplies all time limits of the board, for a slow emulator."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [memory.name for memory in self.memories]
        if len(set(names)) != len(names) or "flash" in names:
            raise ValueError(f"memory names must differ from each other and from flash: {', '.join(names)}")
        for memory in (*self.memories, *self.memories_as_emulated()):
            if memory.origin % memory.alignment:
                raise ValueError(
                    f"{memory.name} at {memory.origin:#010x} is not aligned to {memory.alignment}"
                )
        stacks = [unit.stack for unit in self.units if unit.stack is not None]
        external = [] if self.flash.external is None else [self.flash.external]
        for memories in (self.memories, self.memories_as_emulated()):
            regions = (self.flash, *external, *memories, *stacks)
            ranges = sorted((it.addresses for it in regions), key=lambda it: it.lo)
            for lower, upper in pairwise(ranges):
                if upper.lo < lower.hi:
                    raise ValueError(f"memories overlap at {upper.lo:#010x}")
        check_units(self.units, set(names))
        check_controllers(self.io_dma, self.memories)
        check_chips(self.memories)
        check_links(self.links, [unit.name for unit in self.units], set(names))
        timers = (self.timer.emulated, self.timer.hardware)
        single = [it.source for it in (*timers, *self.links) if it is not None and it.source is not None]
        check_core(self.core, self.cpu_flags, vectors=self.vectors)
        if self.npu is not None and (not self.vectors or self.core.startswith("rv") or self.cores > 1):
            raise ValueError("an npu is beside one core with vectors of Arm (Helium)")
        check_registers(self.npu, {"flash": self.flash, **{it.name: it for it in self.memories}})
        check_own_sources({*self.hal, *self.unit_hal, *self.core_hal, *self.port_hal, *single})
        if self.stack_bytes >= self.ram_bytes:
            raise ValueError(f"a stack of {self.stack_bytes} B does not fit {names[0]}")
        if self.facts_only and not self.source:
            raise ValueError("a board without hal names the source of its facts")
        if (self.framework is None) == (self.toolchain == "platformio"):
            raise ValueError("toolchain platformio and framework come together")
        if not (self.is_host or self.facts_only or self.framework) and self.uart is None:
            raise ValueError("uart is missing")
        if self.core_hal and self.cores == 1:
            raise ValueError("core_hal is of programs that several cores run: cores is missing")
        if len(self.ports) == 1:
            raise ValueError("a board of a chain needs two ports: to the previous and to the next board")
        if self.cores > 1 and any(
            it.stack is not None and it.stack.bytes < CORE_STACK_BYTES for it in self.units
        ):
            raise ValueError(f"a core that runs a program needs a stack of {CORE_STACK_BYTES} B")
        if (self.emulator is None) != (self.timer.emulated is None):
            raise ValueError("emulator and timer.emulated come together")
        tools = [it.tool for it in self.flashers]
        if len(set(tools)) != len(tools):
            raise ValueError(f"a flasher is named twice: {', '.join(tools)}")
        if external and tools and not self.facts_only:
            raise ValueError("no firmware that a flasher writes starts an external flash")
        if not self.facts_only and bool(tools) != (self.timer.hardware is not None):
            raise ValueError("flasher and timer.hardware come together")
        return self

    def __repr__(self) -> str:
        """One line."""
        ram_bytes = sum(memory.bytes for memory in self.memories)
        return f"<board {self.name}: {self.title}; {ram_bytes:,} B of RAM, {self.flash_bytes:,} B of flash>"

    __str__ = __repr__

    @property
    def is_host(self) -> bool:
        """Whether programs for the board are processes of this computer."""
        return self.toolchain == "host"

    @property
    def isa(self) -> Isa:
        """The instructions that its kernels may be written for."""
        if self.npu is not None:
            return Isa(f"{Isa.MVE}+{self.npu.kind}-{self.npu.macs}")
        if self.vectors:
            return Isa.RVV if self.core.startswith("rv") else Isa.MVE
        lacks_dsp = any("+nodsp" in flag for flag in self.cpu_flags)
        return Isa.DSP if self.core in _DSP_CORES and not lacks_dsp else Isa.ANY

    @property
    def names_in_title(self) -> list[str]:
        """The names in the brackets of its title."""
        return [name for names in re.findall(r"\(([^)]*)\)", self.title) for name in names.split(", ")]

    @property
    def fuses_products(self) -> bool:
        """Whether float kernels fuse a product with a sum: not if floats are software, nor on Cortex-M4,
        where the fused instruction takes longer than two.
        """
        if self.core.startswith("rv"):
            return "f" in self.core.partition("-")[0]
        return self.core not in _UNFUSED_CORES and "-mfloat-abi=soft" not in self.cpu_flags

    @property
    def pairs_loads(self) -> bool:
        """Whether its core issues a load together with the multiplication before it."""
        return self.core == "cortex-m7"

    @property
    def facts_only(self) -> bool:
        """Whether the board has no firmware: no start-up code, no serial driver."""
        return not self.hal

    @property
    def has_ports(self) -> bool:
        """Whether the board can be one of a chain."""
        return bool(self.ports or self.port_hal)

    @property
    def emulated_only(self) -> bool:
        """Whether the board runs in the emulator but cannot be flashed."""
        return self.emulator is not None and not self.flashers

    def has_firmware(self, emulated: bool) -> bool:
        """Whether firmware can be built for the board's emulator, or for the hardware."""
        if self.facts_only:
            return False
        return self.emulator is not None if emulated else not self.emulated_only

    @property
    def ram_bytes(self) -> int:
        """Size of the memory that holds .data, .bss and the stack."""
        return self.memories[0].bytes

    @property
    def flash_bytes(self) -> int:
        """Size of the flash that holds the program, with the external one of its constants."""
        return self.flash.bytes + (self.flash.external.bytes if self.flash.external else 0)

    @property
    def flash_memory(self) -> Memory:
        """Flash as the memory from which transfers load constants."""
        cost, constants = self.flash.read_cost, self.flash.constants
        return Memory(
            name=FLASH, origin=constants.origin, bytes=constants.bytes, alignment=4,
            read_rate=1 / cost if cost else None,
        )  # fmt: skip

    @property
    def flash_room(self) -> int:
        """The most bytes of code and constants."""
        return min(self.flash_bytes, self.flash.limit or self.flash_bytes)

    @property
    def constants_room(self) -> int:
        """The bytes of constants that leave room for usual code."""
        return max(0, min(self.weights_room, self.flash_room - CODE_BYTES))

    @property
    def weights_room(self) -> int:
        """The most bytes of constants beside no code at all."""
        return min(self.flash_room, (self.flash.external or self.flash).bytes)

    def memories_as_emulated(self) -> tuple[Memory, ...]:
        """Return the memories, at their emulated origins if they have any."""
        return tuple(
            it if it.emulated_origin is None else it.model_copy(update={"origin": it.emulated_origin})
            for it in self.memories
        )

    @property
    def cache_line(self) -> int:
        """Bytes of a line of the data cache of the unit that runs the application; 1 if it has no cache."""
        first = self.units[0]
        stated = first.cached or "cache_line" in first.model_fields_set
        return first.cache_line if stated else CACHE_LINES.get(self.core, 1)

    def cache_line_of(self, memory: str) -> int:
        """Bytes of a line of the application's cache of a memory; 1 if the memory is not cached."""
        return 1 if self.units[0].cached and memory not in self.units[0].cached else self.cache_line

    @property
    def io_alignment(self) -> int:
        """The alignment of inputs, outputs and states in bytes, so that no two share a line of the cache."""
        return lcm(self.cache_line, self.io_align)

    @property
    def offset_unit(self) -> int:
        """The smallest alignment of all memories, in bytes: every offset in an arena is a multiple of it."""
        return min(memory.alignment for memory in self.memories)

    def free_bytes(self, memory: Memory) -> int:
        """Return the bytes of a memory without stack and data of the firmware, for arena and parameters."""
        reserved = self.stack_bytes + FIRMWARE_RAM_BYTES if memory.name == self.memories[0].name else 0
        return max(0, memory.bytes - reserved)

    def room(self, memory: Memory) -> int:
        """Return the maximum size in bytes of an arena in a memory: a whole number of cache lines."""
        free = self.free_bytes(memory)
        size = free if memory.arena_limit is None else min(free, memory.arena_limit)
        return size // self.io_alignment * self.io_alignment

    def reserving(self, parameter_bytes: int) -> Board:
        """Return the board whose first memory has room for parameters of this size beside the arena."""
        if not parameter_bytes:
            return self
        first = self.memories[0]
        left = max(0, min(self.room(first), self.free_bytes(first) - parameter_bytes))
        return self.limited({first.name: left})

    def with_more_stack(self, more_bytes: int) -> Board:
        """Return the board with these bytes more reserved for the stack."""
        return self.model_copy(update={"stack_bytes": self.stack_bytes + more_bytes}) if more_bytes else self

    def limited(self, limits: Mapping[str, int], flash_bytes: int | None = None) -> Board:
        """Return the board with limits for the arenas in some memories, and for its flash, in bytes.

        Raises UsageError for an unknown memory.
        """
        known = [memory.name for memory in self.memories]
        for name in limits:
            if name not in known:
                raise UsageError(f"{self.name} has no memory {name!r}; it has {', '.join(known)}")
        limited = {
            name: self.memory(name).model_copy(update={"arena_limit": size}) for name, size in limits.items()
        }
        memories = tuple(limited.get(memory.name, memory) for memory in self.memories)
        flash = self.flash.model_copy(update={"limit": flash_bytes or self.flash.limit})
        return self.model_copy(update={"memories": memories, "flash": flash})

    @property
    def io_memories(self) -> frozenset[str]:
        """Memories for graph inputs and outputs: those that all controllers of `io_dma` reach, or any
        controller if `io_dma` is empty. All memories, if none of these has room.
        """
        reached = self._reached
        return frozenset(it.name for it in (reached if any(map(self.room, reached)) else self.memories))

    @property
    def unreached(self) -> tuple[str, ...]:
        """Memories with room that the DMA controllers for inputs and outputs do not reach."""
        reached = self._reached
        return tuple(it.name for it in self.memories if it not in reached and self.room(it))

    @property
    def keeps_reach(self) -> bool:
        """Whether inputs and outputs stay out of the memories of `unreached`."""
        return not self.io_memories.issuperset(self.unreached)

    @property
    def unreached_text(self) -> str:
        """The memories of `unreached`, and what does not reach them."""
        missed = f"not all of {', '.join(self.io_dma)} reach" if self.io_dma else "no DMA reaches"
        return f"{', '.join(self.unreached)}, which {missed}"

    @property
    def _reached(self) -> list[Memory]:
        return [it for it in self.memories if it.dma is None or (it.dma and {*self.io_dma} <= {*it.dma})]

    def with_dma_everywhere(self) -> Board:
        """Return the board as if DMA engines reached all its memories: inputs and outputs may lie in any."""
        memories = tuple(it.model_copy(update={"dma": None}) for it in self.memories)
        return self.model_copy(update={"memories": memories})

    def shared_by_cores(self) -> Board:
        """Return the board with arenas only in memories that all of its units reach."""
        reached = set.intersection(*(set(self.reach(unit)) for unit in self.units))
        return self.limited({it.name: 0 for it in self.memories if it.name not in reached})

    def memory(self, name: str) -> Memory:
        """Return the memory of that name. Raises ConfigError if there is none."""
        for memory in self.memories:
            if memory.name == name:
                return memory
        known = ", ".join(memory.name for memory in self.memories)
        raise ConfigError(f"{self.name} has no memory {name!r}; it has {known}")

    def unit(self, name: str) -> Unit:
        """Return the compute unit of that name. Raises ConfigError if there is none."""
        for unit in self.units:
            if unit.name == name:
                return unit
        known = ", ".join(unit.name for unit in self.units)
        raise ConfigError(f"{self.name} has no compute unit {name!r}; it has {known}")

    def reach(self, unit: Unit) -> tuple[str, ...]:
        """Return the memories that a unit reaches, in the board's order."""
        return tuple(
            memory.name for memory in self.memories if memory.name in (unit.memories or {memory.name})
        )

    def instructions(self, ticks: int) -> int:
        """Return the executed instructions in a number of ticks of the emulated timer.

        The number is exact, since a tick is shorter than an instruction.
        """
        if self.emulator is None or self.timer.emulated is None:
            raise ConfigError(f"{self.name} is not emulated: its ticks are not instructions")
        return round(ticks * 10**9 / (self.timer.emulated.hz << self.emulator.icount_shift))


def read_board(path: Path) -> Board:
    """Return the board of one TOML file. ConfigError names every wrong key."""
    return board_at(read_toml(path, _MOST_FILE_BYTES), path)


def board_at(facts: dict[str, object], path: Path) -> Board:
    """Return the board of a TOML file's table. `path` is the file; the paths of its sources start there."""
    board = board_of(facts, f"{path} is not a board file", {"folder": path.parent})
    if is_pio(board.name):
        raise ConfigError(f"{path}: {board.name} is the name of a board of PlatformIO: choose another one")
    return board


def board_of(facts: object, fault: str, context: Mapping[str, Path] | None = None) -> Board:
    """Return the board of these facts. Raises ConfigError, which begins with `fault`, for wrong ones."""
    try:
        return Board.model_validate(facts, context=dict(context) if context else None)
    except ValidationError as error:
        lines = (
            f"  {'.'.join(map(str, it['loc'])) or 'board'}: {it['msg'].removeprefix('Value error, ')}"
            for it in error.errors()
        )
        raise ConfigError(f"{fault}:\n" + "\n".join(lines)) from error
