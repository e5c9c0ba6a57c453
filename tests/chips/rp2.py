"""Clocks and resets of RP2040 and RP2350, and the serial flash at the SSI of the RP2040."""

from __future__ import annotations

from collections import deque

from tests.chips.facts import Register
from tests.chips.machine import Machine

WRITE_STATUS, READ_STATUS_1, WRITE_ENABLE, READ_STATUS_2, READ_QUAD = 0x01, 0x05, 0x06, 0x35, 0xEB


def connect(machine: Machine) -> None:
    """Let status follow what enables it."""
    registers = machine.chip.registers

    def at(name: str) -> int:
        return registers[name].address

    def selected(machine: Machine, register: Register, value: int) -> int:
        shown = at(register.name.replace("_CTRL", "_SELECTED"))
        machine.values[shown] = 1 << register.value(value, "SRC")
        return value

    def resets(machine: Machine, register: Register, value: int) -> int:
        machine.values[at("RESETS.RESET_DONE")] = ~value & register.known_bits
        return value

    def stable(machine: Machine, register: Register, value: int) -> int:
        enabled = (register.value(value, "ENABLE"), register.value(value, "FREQ_RANGE")) == (0xFAB, 0xAA0)
        machine.set_field("XOSC.STATUS", "STABLE", enabled)
        return value

    def locked(machine: Machine, register: Register, value: int) -> int:
        runs = not register.value(value, "PD") and not register.value(value, "VCOPD")
        pll = register.name.partition(".")[0]
        machine.set_field(f"{pll}.CS", "LOCK", runs and machine.values[at(f"{pll}.FBDIV_INT")] > 0)
        return value

    machine.on_write |= {
        at("CLOCKS.CLK_REF_CTRL"): selected,
        at("CLOCKS.CLK_SYS_CTRL"): selected,
        at("RESETS.RESET"): resets,
        at("XOSC.CTRL"): stable,
        at("PLL_SYS.PWR"): locked,
        at("PLL_USB.PWR"): locked,
    }
    if "XIP_SSI.DR0" in registers:
        SerialFlash(machine)


class SerialFlash:
    """A flash chip whose data pins two and three are not in use yet, and the SSI that reads it.

    A command ends where the program looks whether the SSI is done.
    """

    def __init__(self, machine: Machine) -> None:
        registers = machine.chip.registers
        self._machine = machine
        self._sent: list[int] = []
        self._replies: deque[int] = deque()
        self._status = [0, 0]
        self._busy = 0
        self._writable = self._addresses_only = False
        machine.on_write[registers["XIP_SSI.DR0"].address] = self._send
        machine.on_write[registers["XIP_SSI.SSIENR"].address] = self._enable
        machine.on_read[registers["XIP_SSI.DR0"].address] = self._receive
        machine.on_read[registers["XIP_SSI.SR"].address] = self._finish

    def _setting(self, field: str, register: str = "CTRLR0") -> int:
        return self._machine.field(f"XIP_SSI.{register}", field)

    def _enable(self, machine: Machine, register: Register, value: int) -> int:
        self._replies.clear()
        if value and self._setting("INST_L", "SPI_CTRLR0") == 0 and self._setting("TMOD") == 3:
            assert self._addresses_only, "reads without their command, of a flash that expects one"
        return value

    def _send(self, machine: Machine, register: Register, value: int) -> int:
        assert self._setting("SSI_EN", "SSIENR") and self._setting("SER", "SER"), "the SSI is off"
        self._sent.append(value)
        if self._setting("TMOD") == 0:
            assert (self._setting("SPI_FRF"), self._setting("DFS_32")) == (0, 7), "bytes, bit by bit"
            status = {READ_STATUS_1: self._status[0] | int(self._busy > 0), READ_STATUS_2: self._status[1]}
            self._replies.append(status.get(self._sent[0], 0) if len(self._sent) > 1 else 0xFF)
        return 0

    def _receive(self, machine: Machine, register: Register, value: int) -> int:
        return self._replies.popleft()

    def _finish(self, machine: Machine, register: Register, value: int) -> int:
        command, self._sent = self._sent, []
        self._busy = max(0, self._busy - 1)
        if command == [WRITE_ENABLE]:
            self._writable = True
        elif command[:1] == [WRITE_STATUS]:
            assert self._writable and len(command) == 3
            self._status, self._busy = command[1:], 3
        elif command[:1] == [READ_QUAD]:
            assert self._status[1] & 2 and not self._busy, "the data pins are not in use"
            assert (self._setting("SPI_FRF"), self._setting("DFS_32"), self._setting("TMOD")) == (2, 31, 3)
            assert (self._setting("INST_L", "SPI_CTRLR0"), self._setting("TRANS_TYPE", "SPI_CTRLR0")) == (
                2,
                1,
            )
            self._addresses_only = command[1] >> 4 == 0xA
        return register.fields["TFE"]
