"""The tables of board files: memories, links, compute units, the serial line and so on."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from mcudeploy.boards.fact_types import (
    EMULATOR_OPTIONS,
    WORD,
    Address,
    Baud,
    Clocks,
    Facts,
    HalSource,
    Hertz,
    Identifier,
    Line,
    Machine,
    Pin,
    Rate,
    Size,
    UsbId,
    spelled,
)
from mcudeploy.boards.memory_chips import Psram, Sdram
from mcudeploy.boards.platformio import PIO_ID
from mcudeploy.ir.interval import Interval


class BoardRegion(Facts):
    origin: Address
    bytes: Size

    @property
    def addresses(self) -> Interval:
        """The addresses that the region occupies."""
        return Interval(self.origin, self.origin + self.bytes)

    @model_validator(mode="after")
    def _within_32_bits(self) -> Self:
        if self.addresses.hi > 2**32:
            raise ValueError(f"{self.bytes:#x} bytes from {self.origin:#010x} end beyond 4 GiB")
        return self


class Flash(BoardRegion):
    """Flash of the program and its constants. The core waits for it as `read_rate` or `wait_states` say."""

    constants_origin: Address | None = None
    """The address of its first byte for reads of data; None if it is that of code."""
    read_rate: Rate | None = None
    """Of serial flash: bytes per clock."""
    wait_states: Annotated[float, Field(ge=0, le=1000)] | None = None
    """Clocks of the first unit that a read of `line_bytes` waits, at the clock of the board."""
    line_bytes: Literal[4, 8, 16, 32] | None = None
    cache_bytes: Annotated[int, Field(ge=0)] = 0
    """The cache of constants; a kernel with more constants than this reads them from flash each time."""
    limit: Annotated[int, Field(gt=0)] | None = None
    """The most bytes of code and constants; None: all."""
    external: BoardRegion | None = None
    """A second flash, mapped into memory, with all constants of models; the waits above are then its own."""

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        if self.external is not None and self.constants_origin is not None:
            raise ValueError("flash has constants_origin, or an external flash with the constants")
        if (self.wait_states is None) != (self.line_bytes is None):
            raise ValueError("wait_states and line_bytes of flash come together")
        if self.wait_states is not None and self.read_rate is not None:
            raise ValueError("flash has read_rate, or wait_states and line_bytes")
        return self

    @property
    def read_cost(self) -> float:
        """Cycles that the core waits for each byte that it reads."""
        if self.wait_states is not None and self.line_bytes is not None:
            return self.wait_states / self.line_bytes
        return 0.0 if self.read_rate is None else 1 / self.read_rate

    def stalls(self, read_bytes: float, constant_bytes: int) -> float:
        """Return the cycles that the core waits in a step of a kernel with constants of this size.

        Constants that fit the cache are read once: other kernels may replace them before the next step.
        """
        fits = self.cache_bytes > 0 and constant_bytes <= self.cache_bytes
        return self.read_cost * (min(read_bytes, constant_bytes) if fits else read_bytes)

    def waiting_as(self, other: Flash) -> Flash:
        """Return this flash with the waits of another one."""
        facts = ("read_rate", "wait_states", "line_bytes", "cache_bytes")
        return self.model_copy(update={name: getattr(other, name) for name in facts})

    @property
    def constants(self) -> BoardRegion:
        """The flash where the program reads its constants."""
        return self.external or BoardRegion(
            origin=self.origin if self.constants_origin is None else self.constants_origin, bytes=self.bytes
        )


Alignment = Literal[1, 2, 4, 8, 16, 32, 64]


def _controllers(value: object) -> object:
    """Replace `true` by None, which is all controllers, and `false` by no controller."""
    return (None if value else ()) if isinstance(value, bool) else value


Controllers = Annotated[tuple[Identifier, ...] | None, BeforeValidator(_controllers)]
"""Names of DMA controllers; None: all of the chip."""


class Memory(BoardRegion):
    """Memory for arenas; the first one of a board also contains .data, .bss and the stack.

    `read_rate` and `write_rate` are bytes per clock of the first unit; None: as fast as the core asks.
    `latency_cycles` come before the first byte of a transfer. `emulated_origin` is its address in an emulator
    that lacks the chip's own address.
    """

    name: Identifier
    alignment: Alignment
    read_rate: Rate | None = None
    write_rate: Rate | None = None
    latency_cycles: Clocks = 0.0
    emulated_origin: Address | None = None
    arena_limit: Annotated[int, Field(ge=0)] | None = None
    """The maximum size of an arena there, 0 for none; all free bytes if None."""
    started: bool = True
    """The board's firmware starts a memory that does not start by itself."""
    dma: Controllers = None
    """The controllers that reach it."""
    sdram: Sdram | None = None
    psram: Psram | None = None
    """The chip that the firmware starts: one of the two."""

    @property
    def chip(self) -> tuple[str, Sdram | Psram] | None:
        """The kind of the chip beside the microcontroller, and its facts."""
        if self.sdram is not None:
            return "sdram", self.sdram
        return None if self.psram is None else ("psram", self.psram)

    @model_validator(mode="after")
    def _as_large_as_its_chip(self) -> Self:
        if self.sdram is not None and self.sdram.bytes != self.bytes:
            raise ValueError(f"{self.name} has {self.bytes:#x} bytes, its sdram {self.sdram.bytes:#x}")
        if self.sdram is not None and self.origin not in (0xC0000000, 0xD0000000):
            raise ValueError(f"{self.name}: an FMC has SDRAM at 0xc0000000 and 0xd0000000 only")
        return self

    @property
    def is_fast(self) -> bool:
        """Whether the core never waits for this memory."""
        return self.read_rate is None and self.write_rate is None

    @property
    def read_cost(self) -> float:
        """Cycles that the core waits for each byte that it reads."""
        return 0.0 if self.read_rate is None else 1 / self.read_rate

    @property
    def write_cost(self) -> float:
        """Cycles that the core waits for each byte that it writes."""
        return 0.0 if self.write_rate is None else 1 / self.write_rate

    @property
    def cost(self) -> float:
        """The cost of access to a byte, relative to a memory without a rate, which costs 1: it ranks
        memories.
        """
        return 1 + (self.read_cost + self.write_cost) / 2


class Link(Facts):
    """An engine that copies between memories while the core computes: a DMA controller.

    It copies from each of `memories` to each other. A transfer takes `setup_cycles` before its first byte;
    `bytes_per_cycle` is the engine's limit beside those of the memories. If a descriptor covers at most
    `descriptor_bytes`, each further descriptor costs the set-up again. `source` is the HAL's driver, `base`
    and `irq` are the address of its registers and its interrupt. Without `source` the application has the
    driver.
    """

    engine: Identifier
    memories: Annotated[tuple[Identifier, ...], Field(min_length=2)]
    setup_cycles: Clocks
    bytes_per_cycle: Rate | None = None
    descriptor_bytes: Annotated[int, Field(gt=0, lt=2**31)] | None = None
    source: HalSource | None = None
    base: Address | None = None
    irq: Annotated[int, Field(ge=0, lt=240)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.memories)) != len(self.memories):
            raise ValueError(f"link {self.engine} names a memory twice: {', '.join(self.memories)}")
        if len({it is None for it in (self.source, self.base, self.irq)}) > 1:
            raise ValueError(f"link {self.engine}: source, base and irq come together")
        return self

    def cycles(self, size_bytes: int, origin: Memory, to: Memory) -> float:
        """Return the cycles of a transfer of `size_bytes` bytes."""
        pieces = -(-size_bytes // self.descriptor_bytes) if self.descriptor_bytes else 1
        own = 1 / self.bytes_per_cycle if self.bytes_per_cycle else 0.0
        fixed = max(1, pieces) * self.setup_cycles + origin.latency_cycles + to.latency_cycles
        return fixed + size_bytes * max(own, origin.read_cost, to.write_cost)


class StackRegion(BoardRegion):
    """The private stack of a compute unit: a region outside of the memories for arenas."""


class Unit(Facts):
    """A compute unit: it runs kernels. A board without any has one core that reaches all of its memories.

    `alignment` is in bytes, of every block that it reads or writes. `memories` are those that it reaches (all
    if empty), `cached` those that it sees through a data cache with lines of `cache_line` bytes. `prefers`
    are kinds of operators that it gets if units are assigned by rule.
    """

    name: Identifier
    kind: Literal["core", "accelerator"] = "core"
    alignment: Alignment = 1
    dtypes: tuple[Literal["int8", "int16", "int32", "float32"], ...] = ("int8", "int16", "int32", "float32")
    layout: Literal["channels-last"] = "channels-last"
    memories: tuple[Identifier, ...] = ()
    cached: tuple[Identifier, ...] = ()
    cache_line: Alignment = 32
    prefers: tuple[str, ...] = ()
    stack: StackRegion | None = None


class Npu(Facts):
    """A unit beside the core that runs command streams, `macs` multiply-accumulates a cycle.

    `base`: its registers; without them a functional model, in software, stands for the unit. `irq`: its
    interrupt. `clock_hz`: its clock, if that is not the core's. `secure`: whether it has the secure state.
    """

    kind: Literal["ethos-u55", "ethos-u65"]
    macs: Literal[64, 128, 256]
    base: Annotated[Address, Field(gt=0, multiple_of=4096)] | None = None
    irq: Annotated[int, Field(ge=0, lt=480)] | None = None
    clock_hz: Hertz | None = None
    secure: bool = True

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.kind == "ethos-u65" and self.macs != 256:
            raise ValueError("an ethos-u65 is planned with 256 macs: with 512 it has two cores")
        if self.base is None and self.irq is not None:
            raise ValueError("irq is of a unit of the chip: name its registers as base, or leave irq out")
        return self


class SerialLine(Facts):
    """A UART: its registers and its receiver's interrupt; `pins` tells the user where to connect it."""

    base: Address
    irq: Annotated[int, Field(ge=0, lt=240)]
    pins: Line = ""


class Uart(SerialLine):
    """The serial line to the host. `tx` and `rx`: its pins, for a HAL that takes them from the board.

    `usb_id`: the line is the chip's own USB device, with these ids. `touch_baud`: a host that opens and
    closes the line at this rate restarts the chip in its boot loader.
    """

    baud: Baud
    tx: Pin | None = None
    rx: Pin | None = None
    usb_id: UsbId | None = None
    touch_baud: Hertz | None = None


class ChainPort(SerialLine):
    """The serial line to another board. `send_irq`: the transmitter's interrupt, if it is separate;
    `most_baud`: the maximum rate of its clock.
    """

    most_baud: Baud | None = None
    send_irq: Annotated[int, Field(ge=0, lt=240)] | None = None


class Timer(Facts):
    """A free-running 32-bit counter: HAL source that reads it, base address, rate, and the counted unit."""

    source: HalSource
    base: Address
    hz: Hertz
    unit: Literal["ticks", "cycles"] = "ticks"


class Timers(Facts):
    """The counter under emulation and on hardware; None if the board has no such form."""

    emulated: Timer | None = None
    hardware: Timer | None = None


class EmulatorFacts(Facts):
    """QEMU's program and machine; one instruction takes 2^icount_shift ns of virtual time.

    `own_map_since`: first major version of QEMU whose machine has the chip's memory map; before it, memories
    are at `emulated_origin`.
    """

    qemu: Literal["qemu-system-arm", "qemu-system-riscv32"]
    machine: Machine
    args: tuple[str, ...] = ()
    icount_shift: Annotated[int, Field(ge=0, le=10)]
    own_map_since: Annotated[int, Field(ge=0)] = 0
    note: Line = ""

    @model_validator(mode="after")
    def _about_the_machine(self) -> Self:
        if not EMULATOR_OPTIONS.fullmatch(" ".join(self.args)):
            raise ValueError("args may have -bios none, -cpu, -global, -m and -smp, and no file")
        return self


class ChipId(Facts):
    """The word by which a probe recognises the chip: its address, and its lower 12 bits."""

    address: Address
    value: Annotated[int, Field(gt=0, lt=2**12)]


class Framework(Facts):
    """A framework of PlatformIO that replaces our start-up code and linker script.

    `board` and `platform` are PlatformIO's names. `version`: of the platform, empty if not installed.
    """

    name: Literal["arduino", "espidf", "zephyr"]
    platform: Annotated[str, spelled(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", WORD)]
    version: Annotated[
        str, Field(max_length=80), spelled(r"[A-Za-z0-9_.+-]*", "letters, digits and _ . + -")
    ] = ""
    board: Annotated[str, spelled(PIO_ID, "letters, digits and _ . -, the first of them no sign")]


class Registry(Facts):
    """Platform and board id in PlatformIO's registry, for people who build with its packages."""

    platform: Annotated[str, spelled(r"[A-Za-z0-9_.@/ -]+", "letters, digits, spaces and _ . @ / -")]
    board: Annotated[str, spelled(r"[A-Za-z0-9_.-]+", "letters, digits and _ . -")]
