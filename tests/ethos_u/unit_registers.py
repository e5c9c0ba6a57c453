"""The registers of an Ethos-U in Unicorn; the functional model runs its streams."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from vela_streams import Array, Regions

MEMORY = 0x2000_0000
"""The address at which the core has the memory."""
RUNNING, INTERRUPT, RESETTING, BAD_COMMAND, END_REACHED = 1, 2, 8, 16, 32


@dataclass
class Unit:
    """Registers of a unit; it finishes after `patience` reads of its status."""

    model: ctypes.CDLL
    memory: Array
    config: int = 7
    patience: int = 3
    faults: int = 0
    resets: bool = True
    registers: dict[int, int] = field(default_factory=dict)
    writes: list[tuple[int, int]] = field(default_factory=list)
    left: int | None = None

    def read(self, _uc: Any, offset: int, _size: int, _data: Any) -> int:
        if offset == 0x28:
            return self.config
        if offset == 0x24:
            return self.registers.get(0xC, 0)
        if offset != 0x04:
            return self.registers.get(offset, 0)
        if not self.resets:
            return RESETTING
        if self.left is None:
            return self.registers.get(0x04, 0)
        self.left -= 1
        if self.left >= 0:
            return RUNNING
        self.left = None
        self.registers[0x04] = INTERRUPT | self.faults | self._run()
        return self.registers[0x04]

    def write(self, _uc: Any, offset: int, _size: int, value: int, _data: Any) -> None:
        self.writes.append((offset, value))
        self.registers[offset] = value
        if offset == 0x08 and value & 1:
            self.left = self.patience
        if offset == 0x08 and value & 2:
            self.registers[0x04] = self.registers.get(0x04, 0) & ~INTERRUPT
        if offset == 0x0C:
            self.registers[0x04], self.left = 0, None

    def _run(self) -> int:
        regions, at = Regions(), self.memory.ctypes.data - MEMORY
        for number in range(8):
            if base := self.registers[0x80 + 8 * number]:
                by_writing_port = self.registers[0x3C] >> 2 * number & 3 < 2
                regions.give(number, self.memory[base - MEMORY :], writable=by_writing_port)
        words, size = at + self.registers[0x10], self.registers[0x20]
        code = self.model.mcud_npu_run(ctypes.c_void_p(words), size // 4, ctypes.byref(regions))
        return BAD_COMMAND if code else END_REACHED
