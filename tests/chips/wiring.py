"""How a chip's registers depend on each other: status that follows what enables it, and the UART."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.chips import rp2
from tests.chips.facts import Register
from tests.chips.machine import Machine
from tests.chips.psram import SELECT_PINS, FlexSpi2, Qmi
from tests.chips.sdram import CHIPS, Sdram
from tests.chips.usb import UsbHost

FOLLOWING = {
    "nrf52840": {
        "CLOCK.TASKS_HFCLKSTART:TASKS_HFCLKSTART": "CLOCK.EVENTS_HFCLKSTARTED:EVENTS_HFCLKSTARTED",
    },
    "teensy41": {
        "CCM_ANALOG.PLL_ARM:ENABLE": "CCM_ANALOG.PLL_ARM:LOCK",
        "CCM_ANALOG.PLL_SYS:ENABLE": "CCM_ANALOG.PLL_SYS:LOCK",
        "DCDC.REG3:TRG": "DCDC.REG0:STS_DC_OK",
    },
    "stm32f100": {"RCC.CR:PLLON": "RCC.CR:PLLRDY", "RCC.CFGR:SW": "RCC.CFGR:SWS"},
    "stm32f405": {"RCC.CR:PLLON": "RCC.CR:PLLRDY", "RCC.CFGR:SW": "RCC.CFGR:SWS"},
    "stm32f411": {"RCC.CR:PLLON": "RCC.CR:PLLRDY", "RCC.CFGR:SW": "RCC.CFGR:SWS"},
    "stm32l476": {
        "RCC.CR:HSION": "RCC.CR:HSIRDY",
        "RCC.CR:PLLON": "RCC.CR:PLLRDY",
        "RCC.CFGR:SW": "RCC.CFGR:SWS",
    },
    "stm32g071": {
        "RCC.CR:HSION": "RCC.CR:HSIRDY",
        "RCC.CR:PLLON": "RCC.CR:PLLRDY",
        "RCC.CFGR:SW": "RCC.CFGR:SWS",
    },
    "stm32f746": {
        "RCC.CR:PLLON": "RCC.CR:PLLRDY",
        "RCC.CFGR:SW": "RCC.CFGR:SWS",
        "PWR.CR1:ODEN": "PWR.CSR1:ODRDY",
        "PWR.CR1:ODSWEN": "PWR.CSR1:ODSWRDY",
    },
    "stm32h743": {
        "RCC.CR:PLL1ON": "RCC.CR:PLL1RDY",
        "RCC.CFGR:SW": "RCC.CFGR:SWS",
        "PWR.CR3:LDOEN": "PWR.CSR1:ACTVOSRDY",
        "PWR.D3CR:VOS": "PWR.D3CR:VOSRDY",
    },
}
"""Fields by chip: the second one takes the value of the first, if that is written."""


@dataclass(frozen=True)
class Uart:
    """A UART by the names of its registers and fields. `status` says by the field `waits` that a byte waits,
    by `takes` that the transmitter is free, or that they do not where it is `inverted`. `enables` must all be
    set in `control` before it works; `interrupt` is a field of another register or of that.
    """

    status: str
    waits: str
    takes: str
    receive: str
    send: str
    control: str
    enables: tuple[str, ...]
    interrupt: str
    inverted: bool = False


USART_V1 = Uart("SR", "RXNE", "TXE", "DR", "DR", "CR1", ("UE", "TE", "RE"), "CR1:RXNEIE")
USART_V2 = Uart("ISR", "RXNE", "TXE", "RDR", "TDR", "CR1", ("UE", "TE", "RE"), "CR1:RXNEIE")
LPUART = Uart("STAT", "RDRF", "TDRE", "DATA", "DATA", "CTRL", ("TE", "RE"), "CTRL:RIE")
PL011 = Uart(
    *("UARTFR", "RXFE", "TXFF", "UARTDR", "UARTDR", "UARTCR", ("UARTEN", "TXE", "RXE"), "UARTIMSC:RXIM"),
    inverted=True,
)
UARTS = {
    "rp2040": ("UART0", PL011),
    "rp2350": ("UART0", PL011),
    "teensy41": ("LPUART6", LPUART),
    "stm32f100": ("USART1", USART_V1),
    "stm32f405": ("USART1", USART_V1),
    "stm32f407-disco": ("USART2", USART_V1),
    "stm32f411": ("USART2", USART_V1),
    "stm32g071": ("USART2", USART_V2),
    "stm32l476": ("USART2", USART_V2),
    "stm32l476-disco": ("USART2", USART_V2),
    "stm32f746": ("USART3", USART_V2),
    "stm32f746-disco": ("USART1", USART_V2),
    "stm32h743": ("USART3", USART_V2),
    "stm32h743i-eval": ("USART1", USART_V2),
}


def wire(machine: Machine) -> None:
    """Connects what the board has."""
    board = machine.board.name
    _follow(machine, FOLLOWING.get(machine.chip.name, {}))
    if machine.chip.name.startswith("rp2"):
        rp2.connect(machine)
    if board in SELECT_PINS:
        Qmi(machine)
    if board in CHIPS:
        Sdram(machine)
    if board == "teensy41":
        FlexSpi2(machine)
        machine.on_write[machine.chip.registers["IOMUXC_GPR.GPR16"].address] = _divide_flexram
    if machine.chip.name == "nrf52840":
        _connect_events(machine)
        _connect_uicr(machine)
    elif board.endswith("-usb"):
        UsbHost(machine)
    else:
        _connect(machine, *UARTS[board])


def _follow(machine: Machine, pairs: dict[str, str]) -> None:
    by_register: dict[str, list[tuple[str, str]]] = {}
    for cause, effect in pairs.items():
        register, _, field = cause.partition(":")
        by_register.setdefault(register, []).append((field, effect))
    for name, followers in by_register.items():
        machine.on_write[machine.chip.registers[name].address] = _follower(name, followers)


def _follower(name: str, followers: list[tuple[str, str]]) -> Callable[[Machine, Register, int], int]:
    def hook(machine: Machine, register: Register, value: int) -> int:
        machine.values[register.address] = value
        for field, effect in followers:
            target, _, its_field = effect.partition(":")
            machine.set_field(
                target, its_field, machine.field(name, field) & _most(machine, target, its_field)
            )
        return machine.values[register.address]

    return hook


def _most(machine: Machine, register: str, field: str) -> int:
    mask = machine.chip.registers[register].fields[field]
    return mask // (mask & -mask)


def _divide_flexram(machine: Machine, register: Register, value: int) -> int:
    """Until now the memory of the stack was not there: nothing has been written to it."""
    top = machine.board.memories[0].addresses.hi
    assert machine.memory(top - 64, 64) == b"\xa5" * 64
    banks = machine.field("IOMUXC_GPR.GPR17", "FLEXRAM_BANK_CFG")
    kinds = [banks >> 2 * bank & 3 for bank in range(16)]
    assert kinds.count(2) * 0x8000 == machine.board.memories[0].bytes and kinds.count(3) == 4
    return value


def _connect_events(machine: Machine) -> None:
    """The UART of nRF52: events that the program clears, set again while there is cause."""
    registers = machine.chip.registers
    started = {name: registers[f"UART0.TASKS_START{name}"].address for name in ("RX", "TX")}

    def on(way: str) -> bool:
        return machine.field("UART0.ENABLE", "ENABLE") == 4 and machine.values[started[way]] == 1

    def ready(machine: Machine, register: Register, value: int) -> int:
        return int(on("RX") and bool(machine.received))

    def receive(machine: Machine, register: Register, value: int) -> int:
        return machine.received.popleft() if machine.received else value

    def send(machine: Machine, register: Register, value: int) -> int:
        assert on("TX"), "a byte for a UART that is off"
        machine.sent.append(value)
        machine.set_field("UART0.EVENTS_TXDRDY", "EVENTS_TXDRDY", 1)
        return value

    machine.on_read[registers["UART0.EVENTS_RXDRDY"].address] = ready
    machine.on_read[registers["UART0.RXD"].address] = receive
    machine.on_write[registers["UART0.TXD"].address] = send
    machine.uart_irq = lambda: bool(
        on("RX") and machine.received and machine.field("UART0.INTENSET", "RXDRDY")
    )


def _connect_uicr(machine: Machine) -> None:
    """Flash: it is written while NVMC allows, bits only turn to 0, and no reset changes it."""
    protection = machine.chip.registers["UICR.APPROTECT"].address

    def write(machine: Machine, register: Register, value: int) -> int:
        assert machine.field("NVMC.CONFIG", "WEN") == 1, "a write of UICR that NVMC does not allow"
        return machine.values[protection] & value

    machine.kept.add(protection)
    machine.on_write[protection] = write


def _connect(machine: Machine, peripheral: str, uart: Uart) -> None:
    registers = machine.chip.registers

    def on() -> bool:
        return all(machine.field(f"{peripheral}.{uart.control}", field) for field in uart.enables)

    def status(machine: Machine, register: Register, value: int) -> int:
        both = register.fields[uart.waits] | register.fields[uart.takes]
        said = 0
        if on():
            said = register.fields[uart.takes] | (register.fields[uart.waits] if machine.received else 0)
        return value & ~both | (both ^ said if uart.inverted else said)

    def receive(machine: Machine, register: Register, value: int) -> int:
        return machine.received.popleft() if machine.received else value

    def send(machine: Machine, register: Register, value: int) -> int:
        assert on(), "a byte for a UART that is off"
        machine.sent.append(value & 0xFF)
        return machine.values[register.address]

    machine.on_read[registers[f"{peripheral}.{uart.status}"].address] = status
    machine.on_read[registers[f"{peripheral}.{uart.receive}"].address] = receive
    machine.on_write[registers[f"{peripheral}.{uart.send}"].address] = send
    enable, _, interrupt = uart.interrupt.partition(":")
    machine.uart_irq = lambda: bool(
        on() and machine.received and machine.field(f"{peripheral}.{enable}", interrupt)
    )
