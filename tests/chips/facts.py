"""The vendors' register facts of one chip: those of <chip>.json, by the names that they have there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mcudeploy.boards.catalogue import load_board

FOLDER = Path(__file__).parent
CHIPS = tuple(sorted(it.stem for it in FOLDER.glob("*.json")))
CHIP_OF = {
    "esp32c3-usb": "esp32c3",
    "esp32c6-usb": "esp32c6",
    "nano33ble": "nrf52840",
    "pico-plus2-usb": "rp2350",
    "promicro-rp2350-usb": "rp2350",
    "rp2040-usb": "rp2040",
    "rp2350-usb": "rp2350",
    "stm32f407-disco": "stm32f405",
    "stm32f746-disco": "stm32f746",
    "stm32h743i-eval": "stm32h743",
    "stm32l476-disco": "stm32l476",
}
"""Boards that are not called like their chip."""
BOARDS = (*CHIPS, *CHIP_OF)
IN_UNICORN = tuple(it for it in BOARDS if load_board(it).core.startswith("cortex-"))
"""tests/independent runs the others."""


@dataclass(frozen=True)
class Register:
    """`fields`: masks by name. Where the facts name the bits of a field, NAME0 and so on, NAME is all."""

    name: str
    address: int
    reset: int
    fields: dict[str, int]

    @property
    def known_bits(self) -> int:
        """All bits that are in a field; any where the facts name none."""
        known = 0
        for mask in self.fields.values():
            known |= mask
        return known or 0xFFFFFFFF

    def value(self, stored: int, field: str) -> int:
        """The value of a field."""
        mask = self.fields[field]
        return (stored & mask) // (mask & -mask)


def _fields(bits: dict[str, list[int]]) -> dict[str, int]:
    """Masks by the name of the field."""
    masks = {name: ((1 << width) - 1) << low for name, (low, width) in bits.items()}
    for name, mask in list(masks.items()):
        numbered = re.fullmatch(r"(\D+)(\d+)", name)
        if numbered and bits[name][1] == 1:
            masks[numbered[1]] = masks.get(numbered[1], 0) | mask
    return masks


def _elements(registers: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Registers by name; those of an array, whose first one has a 0 as its last digit, one by one."""
    for name, it in registers.items():
        for index in range(it.get("count", 1)):
            offset = it["offset"] + it.get("step", 4) * index
            yield re.sub(r"0(?=\D*$)", str(index), name), it | {"offset": offset}


class Chip:
    """The chip of a board: registers by `PERIPHERAL.REGISTER` and by address, interrupts by name. Of an array
    of registers, which has a `count` and perhaps a `step`, `later` are those after the first.
    """

    def __init__(self, board: str) -> None:
        self.name = CHIP_OF.get(board, board)
        facts = json.loads((FOLDER / f"{self.name}.json").read_text(encoding="utf-8"))
        self.interrupts: dict[str, int] = facts["interrupts"]
        self.bases: dict[str, int] = {name: it["base"] for name, it in facts["peripherals"].items()}
        self.registers = {
            f"{peripheral}.{name}": Register(
                f"{peripheral}.{name}", its["base"] + it["offset"], it["reset"], _fields(it["fields"])
            )
            for peripheral, its in facts["peripherals"].items()
            for name, it in _elements(its["registers"])
        }
        self.later = set(self.registers) - {
            f"{peripheral}.{name}"
            for peripheral, its in facts["peripherals"].items()
            for name in its["registers"]
        }

    @cached_property
    def by_address(self) -> dict[int, Register]:
        return {it.address: it for it in self.registers.values()}

    def named(self, macro: str) -> list[Register]:
        """The registers that a macro like RCC_CR or GPIO_MODER names: one, or one of each of a kind."""
        return [
            register
            for register in self.registers.values()
            for peripheral, _, name in [register.name.partition(".")]
            for kind in {peripheral, *KINDS.get(peripheral, ())}
            if f"{kind}_{name}" == macro
        ]


KINDS = {
    **{f"GPIO{letter}": ("GPIO",) for letter in "ABCDEFGHI"},
    **{f"USART{number}": ("USART",) for number in range(1, 7)},
    **{f"LPUART{number}": ("LPUART",) for number in range(1, 9)},
    "P1": ("P0",),
    "UART0": ("UART",),
    "PLL_SYS": ("PLL",),
    "PLL_USB": ("PLL",),
}
"""A driver's name of a peripheral that the chip has several times."""
