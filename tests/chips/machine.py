"""A chip in Unicorn: core, memories, and the registers that its HAL uses, strictly by the vendor's facts.

An access to any other address, to an unknown register or of another width ends the run, and so does a write
that changes a bit which is in no field. Registers hold what is written; `wiring` lets status follow.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

import unicorn
from unicorn import arm_const

from mcudeploy.boards.board import Board
from mcudeploy.boards.facts import BoardRegion
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.images import flash_content
from tests.chips.facts import Chip, Register
from tests.chips.roms import boot

CPUS = {
    "cortex-m0plus": arm_const.UC_CPU_ARM_CORTEX_M0,
    "cortex-m3": arm_const.UC_CPU_ARM_CORTEX_M3,
    "cortex-m4": arm_const.UC_CPU_ARM_CORTEX_M4,
    "cortex-m7": arm_const.UC_CPU_ARM_CORTEX_M7,
    "cortex-m33": arm_const.UC_CPU_ARM_CORTEX_M33,
}
PAGE = 0x1000
CORE = 0xE0000000
"""The core's own registers: from here, 1 MiB."""
RETURN = 0x1FFFF000
"""Where handlers return to."""
DWT_CYCCNT, SYST_CSR, SYST_RVR, SYST_CVR = 0xE0001004, 0xE000E010, 0xE000E014, 0xE000E018
ICSR, VTOR, NVIC_ISER, NVIC_ICER = 0xE000ED04, 0xE000ED08, 0xE000E100, 0xE000E180
AIRCR, SYSTEM_RESET = 0xE000ED0C, 0x05FA0004
SYSTICK_EXCEPTION, FIRST_IRQ_EXCEPTION = 15, 16
CORE_REGISTERS = {
    *(0xE0001000, DWT_CYCCNT, 0xE0001FB0, 0xE000EDFC),  # DWT_CTRL, DWT_LAR, DEMCR
    *(SYST_CSR, SYST_RVR, SYST_CVR, ICSR, VTOR, AIRCR, 0xE000ED20, 0xE000ED88),  # SHPR3, CPACR
    *(0xE000ED14, 0xE000ED80, 0xE000ED84, 0xE000EF50, 0xE000EF60),  # CCR, CCSIDR, CSSELR, ICIALLU, DCISW
    *(0xE000ED94, 0xE000ED98, 0xE000ED9C, 0xE000EDA0),  # MPU: CTRL, RNR, RBAR, RASR
    *(base + 4 * word for base in (NVIC_ISER, NVIC_ICER) for word in range(8)),
}
"""Arm DDI 0403E and 0553: those that our firmware uses. QEMU itself has those of the FPU."""
CCSIDR = 0xF003E019 & ~0xFFFE000 | 127 << 13 | 3 << 3
"""A data cache of 16 KiB: 128 sets of 4 ways, lines of 32 bytes."""

Hook = Callable[["Machine", Register, int], int]
"""Told of an access to a register and its value; what it reads as, or holds from then on."""


class Machine:
    """One chip with a program in it. `received`: bytes from the host; `sent`: bytes to it. `kept`: addresses
    of registers that a reset leaves as they are; `resets`: how many the program has asked for. `shared`:
    memories in the pages of registers, by address. `haste`: instructions that pass with a look at the time.
    `flash_answers`: whether the program may run from flash and read it.
    """

    def __init__(self, firmware: Firmware, chip: Chip, wire: Callable[[Machine], None]) -> None:
        self.board: Board = firmware.board
        self.chip = chip
        self.values = {it.address: it.reset for it in chip.registers.values()}
        self.kept: set[int] = set()
        self.resets = 0
        self.shared: dict[int, bytearray] = {}
        self.flash_answers = True
        self.on_read: dict[int, Hook] = {}
        self.on_write: dict[int, Hook] = {}
        self.received: deque[int] = deque()
        self.sent = bytearray()
        self.instructions = 0
        self.haste = 0
        self.wraps = 0
        self.interrupts = 0
        self.uart_irq: Callable[[], bool] = lambda: False
        self.error: BaseException | None = None
        self._pending = False
        self._period_ends = math.inf
        self._content: list[Any] = []
        self._uc = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        self._uc.ctl_set_cpu_model(CPUS[self.board.core])
        self._map(firmware)
        wire(self)
        self._start()

    # --- what tests ask

    def field(self, register: str, field: str = "") -> int:
        """The value of a field of a register, or of all of it."""
        it = self.chip.registers[register]
        stored = self.values[it.address]
        return it.value(stored, field) if field else stored

    def set_field(self, register: str, field: str, value: int) -> None:
        """Set a field of a register, as the chip itself would."""
        it = self.chip.registers[register]
        mask = it.fields[field]
        self.values[it.address] = self.values[it.address] & ~mask | value * (mask & -mask)

    def memory(self, address: int, size: int) -> bytes:
        """Return the content of a memory."""
        return bytes(self._uc.mem_read(address, size))

    def register(self, name: str) -> int:
        """The value of a register of the core."""
        return int(self._uc.reg_read(getattr(arm_const, f"UC_ARM_REG_{name}")))

    def map_rom(self, words: dict[int, int]) -> None:
        """Map a page at address 0 with these words."""
        self._uc.mem_map(0, PAGE)
        for address, word in words.items():
            self._uc.mem_write(address, struct.pack("<I", word))

    def map_memory(self, region: BoardRegion) -> None:
        """Map a memory, whose content is not zero of itself."""
        self._uc.mem_map(region.origin, -(-region.bytes // PAGE) * PAGE)
        self._uc.mem_write(region.origin, b"\xa5" * region.bytes)

    def map_twice(self, region: BoardRegion, other: int) -> None:
        """Map a memory that answers at two addresses."""
        content = (ctypes.c_uint8 * region.bytes).from_buffer(bytearray(b"\xa5" * region.bytes))
        self._content.append(content)
        for origin in (region.origin, other):
            self._uc.mem_map_ptr(origin, region.bytes, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE, content)

    def run(self) -> None:
        """Run until the program sleeps and nothing is to be done, or has sent something."""
        while not self.sent:
            exception = self._due()
            if exception is not None and self._open():
                self._enter(exception)
            self._poke()
            asleep = self._slice()
            if asleep and self._due() is None:
                return

    # --- the core

    def _slice(self) -> bool:
        """Run on; whether the core sleeps now."""
        at = self._uc.reg_read(arm_const.UC_ARM_REG_PC)
        self._stopped = False
        try:
            self._uc.emu_start(at | 1, RETURN + 2)
        except unicorn.UcError as error:
            at = self._uc.reg_read(arm_const.UC_ARM_REG_PC)
            raise self.error or AssertionError(f"{error} at {at:#010x}") from error
        if self.error is not None:
            raise self.error
        if self.core[AIRCR] == SYSTEM_RESET:
            self._reset()
            return False
        if self._uc.reg_read(arm_const.UC_ARM_REG_PC) & ~1 == RETURN:
            self._leave()
            return False
        return not self._stopped

    def _block(self, uc: Any, address: int, size: int, _: Any) -> None:
        if not self.flash_answers and address in self.board.flash.addresses:
            self._refuse("runs from flash that does not answer")
        self.instructions += size >> 1  # halfwords: no instruction has less
        due = self._pending or self.instructions >= self._period_ends
        if address == RETURN or (due and self._open()):
            self._stopped = True
            uc.emu_stop()

    def _read_flash(self, uc: Any, access: int, address: int, size: int, value: int, _: Any) -> None:
        if not self.flash_answers:
            self._refuse(f"reads {address:#010x} of flash that does not answer")

    def _open(self) -> bool:
        """Whether the core takes exceptions: they are on, and none runs."""
        return not self._frames and not self._uc.reg_read(arm_const.UC_ARM_REG_PRIMASK)

    def _due(self) -> int | None:
        """The exception that waits for the core."""
        if self.instructions >= self._period_ends:
            return SYSTICK_EXCEPTION
        irq = self.board.uart.irq if self.board.uart else -1
        return FIRST_IRQ_EXCEPTION + irq if irq in self.enabled and self.uart_irq() else None

    def _enter(self, exception: int) -> None:
        """Stacks a frame and goes on in the handler that the vector table names."""
        if exception == SYSTICK_EXCEPTION:
            self.wraps += 1
            self._set_period()
        self.interrupts += 1
        uc = self._uc
        names = ("R0", "R1", "R2", "R3", "R12", "LR", "PC", "XPSR")
        frame = [uc.reg_read(getattr(arm_const, f"UC_ARM_REG_{name}")) for name in names]
        top = uc.reg_read(arm_const.UC_ARM_REG_SP)
        self._frames.append((top, frame))
        uc.reg_write(arm_const.UC_ARM_REG_SP, (top - 32) & ~7)
        uc.mem_write((top - 32) & ~7, struct.pack("<8I", *frame))
        uc.reg_write(arm_const.UC_ARM_REG_LR, RETURN | 1)
        (handler,) = struct.unpack("<I", uc.mem_read(self.core[VTOR] + 4 * exception, 4))
        assert handler & 1, f"no handler of exception {exception}"
        uc.reg_write(arm_const.UC_ARM_REG_PC, handler)

    def _leave(self) -> None:
        top, frame = self._frames.pop()
        names = ("R0", "R1", "R2", "R3", "R12", "LR", "XPSR")
        for name, value in zip(names, [*frame[:6], frame[7]], strict=True):
            self._uc.reg_write(getattr(arm_const, f"UC_ARM_REG_{name}"), value)
        self._uc.reg_write(arm_const.UC_ARM_REG_SP, top)
        self._uc.reg_write(arm_const.UC_ARM_REG_PC, frame[6] | 1)

    def _set_period(self) -> None:
        """When SysTick asks for its interrupt next."""
        on = self.core[SYST_CSR] & 3 == 3
        self._period_ends = (self.wraps + 1) * (self.core[SYST_RVR] + 1) if on else math.inf

    def _read_core(self, _: Any, offset: int, size: int, __: Any) -> int:
        address = CORE + offset
        if size != 4 or address not in self.core:
            return self._refuse(f"reads {size} bytes of the core at {address:#010x}")
        if address in (DWT_CYCCNT, SYST_CVR):
            self.instructions += self.haste
        if address == DWT_CYCCNT:
            return self.instructions & 0xFFFFFFFF
        if address == SYST_CVR:
            return self.core[SYST_RVR] - self.instructions % (self.core[SYST_RVR] + 1)
        if address == ICSR:
            return int(self.instructions >= self._period_ends) << 26
        return self.core[address]

    def _write_core(self, _: Any, offset: int, size: int, value: int, __: Any) -> None:
        address = CORE + offset
        if size != 4 or address not in self.core:
            self._refuse(f"writes {size} bytes of the core at {address:#010x}")
            return
        self.core[address] = value
        if address == AIRCR:
            self._uc.emu_stop()
        self._set_period()
        for base in (NVIC_ISER, NVIC_ICER):
            if base <= address < base + 32:
                irqs = {(address - base) * 8 + bit for bit in range(32) if value >> bit & 1}
                self.enabled = self.enabled | irqs if base == NVIC_ISER else self.enabled - irqs
        self._poke()

    # --- the chip's registers

    def read(self, base: int, offset: int, size: int) -> int:
        """Return the value that the program reads in the page at `base`."""
        for start, content in self.shared.items():
            if 0 <= (place := base + offset - start) < len(content):
                return int.from_bytes(content[place : place + size], "little")
        register = self.chip.by_address.get(base + offset)
        if register is None or size != 4:
            return self._refuse(f"reads {size} bytes at {base + offset:#010x}")
        value = self.values[register.address]
        hook = self.on_read.get(register.address)
        result = value if hook is None else hook(self, register, value)
        self._poke()
        return result

    def write(self, base: int, offset: int, size: int, value: int) -> None:
        """A write of the program to the page at `base`."""
        for start, content in self.shared.items():
            if 0 <= (place := base + offset - start) < len(content):
                content[place : place + size] = value.to_bytes(size, "little")
                return
        register = self.chip.by_address.get(base + offset)
        if register is None or size != 4:
            self._refuse(f"writes {size} bytes at {base + offset:#010x}")
            return
        unknown = (value ^ self.values[register.address]) & ~register.known_bits
        if unknown:
            self._refuse(f"changes bits {unknown:#x} of {register.name}, which are in no field")
            return
        hook = self.on_write.get(register.address)
        self.values[register.address] = value if hook is None else hook(self, register, value)
        self._poke()

    def _poke(self) -> None:
        """Looks for exceptions before the next block."""
        self._pending = self._due() is not None

    def _refuse(self, what: str) -> int:
        at = self._uc.reg_read(arm_const.UC_ARM_REG_PC)
        self.error = self.error or AssertionError(f"the program {what}, near {at:#010x}")
        self._uc.emu_stop()
        return 0

    # --- start

    def _map(self, firmware: Firmware) -> None:
        board, uc = self.board, self._uc
        self._frames: list[tuple[int, list[int]]] = []
        self._stopped = False
        for region in (board.flash, *(it for it in board.memories if it.chip is None)):
            self.map_memory(region)
        uc.mem_map(RETURN, PAGE)
        uc.mem_write(RETURN, b"\x00\xbf" * 2)
        uc.mmio_map(CORE, 0x100000, self._read_core, None, self._write_core, None)
        for page in sorted({it & -PAGE for it in self.values}):
            uc.mmio_map(
                page,
                PAGE,
                lambda _, offset, size, base: self.read(base, offset, size),
                page,
                lambda _, offset, size, value, base: self.write(base, offset, size, value),
                page,
            )
        uc.mem_write(board.flash.origin, flash_content(firmware.elf, board.flash))  # what flashers write
        uc.hook_add(unicorn.UC_HOOK_BLOCK, self._block)
        if any(it.psram is not None and it.psram.select_pin is not None for it in board.memories):
            whole = board.flash.addresses
            uc.hook_add(unicorn.UC_HOOK_MEM_READ, self._read_flash, None, whole.lo, whole.hi - 1)

    def _reset(self) -> None:
        self.resets += 1
        resets = {it.address: it.reset for it in self.chip.registers.values() if it.address not in self.kept}
        self.values |= resets
        self._start()

    def _start(self) -> None:
        self.core = dict.fromkeys(CORE_REGISTERS, 0)
        self.core[0xE000ED80] = CCSIDR
        self.enabled = set()
        entry = boot(self.chip.name, self.board.flash.origin, self._uc)
        self.core[VTOR] = entry.vectors
        self._uc.reg_write(arm_const.UC_ARM_REG_SP, entry.stack)
        self._uc.reg_write(arm_const.UC_ARM_REG_PC, entry.start)


class MachineLine:
    """The host's end of the chip's serial line: the chip runs while the host waits for it."""

    bytes_per_second = float("inf")

    def __init__(self, machine: Machine) -> None:
        self.name = f"{machine.board.name} in Unicorn"
        self._machine = machine
        machine.run()  # up to its first sleep: a byte before that would be lost

    def write(self, data: bytes) -> None:
        """Put bytes on the line."""
        self._machine.received.extend(data)

    def read(self, timeout_s: float) -> bytes:
        """Return the bytes that the chip sends until it sleeps."""
        self._machine.run()
        data = bytes(self._machine.sent)
        self._machine.sent.clear()
        return data

    def close(self) -> None:
        """Nothing is held."""
