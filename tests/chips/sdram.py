"""An SDRAM at the FMC of an STM32, which is not there before it was started as its data sheet asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.chips.facts import Register
from tests.chips.machine import Machine

CLOCK_ENABLE, PRECHARGE_ALL, AUTO_REFRESH, LOAD_MODE = 1, 2, 3, 4
FMC_FUNCTION = 12
MOST_HZ = 100_000_000
"""Of the clock that an FMC gives an SDRAM (ST DS10916 and DS12110, SDRAM waveforms and timings)."""
_COMMON = {
    **{f"A{number}": f"PF{number}" for number in range(6)},
    **{f"A{number}": f"PF{number + 6}" for number in range(6, 10)},
    "A10": "PG0",
    "A11": "PG1",
    "BA0": "PG4",
    "BA1": "PG5",
    "D0": "PD14",
    "D1": "PD15",
    "D2": "PD0",
    "D3": "PD1",
    **{f"D{number}": f"PE{number + 3}" for number in range(4, 13)},
    "D13": "PD8",
    "D14": "PD9",
    "D15": "PD10",
    "NBL0": "PE0",
    "NBL1": "PE1",
    "SDCLK": "PG8",
    "SDNRAS": "PF11",
    "SDNCAS": "PG15",
    "SDNWE": "PH5",
}


@dataclass(frozen=True)
class Chip:
    """A memory by its data sheet: bank of the FMC, geometry, times in ns, and the pins of its signals."""

    bank: int
    width: int
    column_bits: int
    fmc_hz: int
    power_up_us: int
    pins: Mapping[str, str]
    row_bits: int = 12
    ras_ns: int = 42
    rc_ns: int = 60
    rp_ns: int = 18
    rcd_ns: int = 18
    xsr_ns: int = 70
    refresh_ns: int = 64_000_000 // 4096
    """All rows, 4,096, in 64 ms."""


CHIPS = {
    # Micron MT48LC4M32B2B5-6A, 16 of its 32 data pins; ST UM1907
    "stm32f746-disco": Chip(1, 16, 8, 216_000_000, 100, _COMMON | {"SDCKE0": "PC3", "SDNE0": "PH3"}),
    # ISSI IS42S32800G-6; ST stm32h743i_eval_sdram.c
    "stm32h743i-eval": Chip(
        *(2, 32, 9, 240_000_000, 100),
        {
            **_COMMON,
            **{f"D{number}": f"PH{number - 8}" for number in range(16, 24)},
            **{f"D{number}": f"PI{number - 24}" for number in range(24, 28)},
            "D28": "PI6",
            "D29": "PI7",
            "D30": "PI9",
            "D31": "PI10",
            "NBL2": "PI4",
            "NBL3": "PI5",
            "SDCKE1": "PH7",
            "SDNE1": "PH6",
        },
    ),
}


class Sdram:
    """The memory of a board, from its first command on."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._chip = CHIPS[machine.board.name]
        (self._memory,) = (it for it in machine.board.memories if it.sdram is not None)
        self._commands: list[int] = []
        self._since = 0
        registers = machine.chip.registers
        machine.on_write[registers["FMC.SDCMR"].address] = self._command
        machine.on_write[registers["FMC.SDRTR"].address] = self._refresh

    def _us(self) -> float:
        """The time since the last command: no instruction takes less than a clock."""
        return (self._machine.instructions - self._since) * 1e6 / self._machine.board.clock_hz

    @property
    def _hz(self) -> float:
        return self._chip.fmc_hz / self._machine.field("FMC.SDCR1", "SDCLK")

    def _command(self, machine: Machine, register: Register, value: int) -> int:
        mode = register.value(value, "MODE")
        assert register.value(value, f"CTB{self._chip.bank}"), "a command for the other bank"
        assert not register.value(value, f"CTB{3 - self._chip.bank}"), "a command for a bank without memory"
        if not self._commands:
            assert mode == CLOCK_ENABLE, "a command for a memory without a clock"
            self._check_controller()
        else:
            least_us = self._chip.power_up_us if len(self._commands) == 1 else 16 * self._chip.rc_ns / 1000
            assert self._us() >= least_us, "a command that comes too soon"
            assert mode == self._commands[-1] + 1, "the order is: clock, precharge, refresh, mode"
        if mode == AUTO_REFRESH:
            assert register.value(value, "NRFS") + 1 >= 2, "too few refreshes"
        if mode == LOAD_MODE:
            self._check_mode(register.value(value, "MRD"))
        self._commands.append(mode)
        self._since = machine.instructions
        return value

    def _refresh(self, machine: Machine, register: Register, value: int) -> int:
        assert self._commands == [CLOCK_ENABLE, PRECHARGE_ALL, AUTO_REFRESH, LOAD_MODE], "not started yet"
        count = register.value(value, "COUNT")
        assert 41 <= count <= self._chip.refresh_ns * self._hz / 1e9 - 20, "rows are forgotten"
        assert not register.value(value, "REIE"), "nothing handles this interrupt"
        machine.map_memory(self._memory)
        return value

    def _check_mode(self, mode: int) -> None:
        assert mode & 7 == 0, "the FMC needs bursts of one word"
        assert mode >> 3 & 1 == 0 and mode >> 7 & 3 == 0 and mode >> 10 == 0, "reserved, or interleaved"
        assert mode >> 4 & 7 == self._field("CAS"), "the FMC and the memory expect other latencies"

    def _field(self, name: str, register: str = "SDCR") -> int:
        return self._machine.field(f"FMC.{register}{self._chip.bank}", name)

    def _check_controller(self) -> None:
        chip, machine = self._chip, self._machine
        assert machine.field("RCC.AHB3ENR", "FMCEN"), "the FMC has no clock"
        if "FMC.BCR1" in machine.chip.registers:
            assert machine.field("FMC.BCR1", "FMCEN"), "the FMC is off"
        assert machine.field("FMC.SDCR1", "SDCLK") in (2, 3) and self._hz <= MOST_HZ, "too fast for the FMC"
        assert self._field("CAS") == 3 or self._hz <= MOST_HZ, "too fast for this latency"
        geometry = [self._field(it) for it in ("NC", "NR", "MWID", "NB", "WP")]
        assert geometry == [chip.column_bits - 8, chip.row_bits - 11, chip.width // 16, 1, 0]
        assert 4 * chip.width // 8 << (chip.row_bits + chip.column_bits) == self._memory.bytes
        assert self._memory.origin == 0xB0000000 + (chip.bank << 28)
        self._check_times()
        for signal, pin in chip.pins.items():
            self._check_pin(signal, pin)

    def _check_times(self) -> None:
        """Of both banks: tRC and tRP are those of the first register."""
        chip = self._chip
        first = {it: self._machine.field("FMC.SDTR1", it) + 1 for it in ("TRC", "TRP")}
        own = {it: self._field(it, "SDTR") + 1 for it in ("TRAS", "TRCD", "TXSR", "TWR", "TMRD")}
        clocks = first | own
        for name, least in (
            *(("TRAS", chip.ras_ns), ("TRC", chip.rc_ns), ("TRP", chip.rp_ns), ("TRCD", chip.rcd_ns)),
            ("TXSR", chip.xsr_ns),
        ):
            assert clocks[name] * 1e9 / self._hz >= least, f"{name} is too short"
        assert clocks["TMRD"] >= 2 and clocks["TWR"] >= 2
        assert clocks["TWR"] >= clocks["TRAS"] - clocks["TRCD"], "RM0385, FMC_SDTR"
        assert clocks["TWR"] >= clocks["TRC"] - clocks["TRCD"] - clocks["TRP"], "RM0385, FMC_SDTR"

    def _check_pin(self, signal: str, pin: str) -> None:
        machine, number = self._machine, int(pin[2:])
        port = f"GPIO{pin[1]}"
        function = machine.field(f"{port}.AFR{'LH'[number // 8]}") >> 4 * (number % 8) & 15
        mode, speed = (machine.field(f"{port}.{it}") >> 2 * number & 3 for it in ("MODER", "OSPEEDR"))
        assert (mode, function, speed) == (2, FMC_FUNCTION, 3), f"{signal} is not at {pin}"
