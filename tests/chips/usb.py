"""The USB controller of RP2040 and RP2350 as a device, and a host that enumerates it as Linux does.

The host moves a packet as soon as the controller has a buffer for it. It checks the numbers of the packets
(DATA0, DATA1), their lengths, and what the controller requires of the program.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field

from tests.chips.facts import Register
from tests.chips.machine import Machine

PACKET = 64
LENGTH, AVAILABLE, STALL, DATA1, FULL = 0x3FF, 1 << 10, 1 << 11, 1 << 13, 1 << 15
PACKETS = 0x100
"""Offset of the packets in the shared memory, after the registers."""
BULK = 0b101010
"""An endpoint that is on, with one buffer, an interrupt for each, and the type of bulk."""
TO_HOST, CLASS_INTERFACE, TO_ENDPOINT = 0x80, 0x21, 0x02
CLEAR_FEATURE, SET_FEATURE, SET_ADDRESS, GET_DESCRIPTOR, GET_CONFIGURATION, SET_CONFIGURATION = (
    1,
    3,
    5,
    6,
    8,
    9,
)
SET_LINE_CODING, GET_LINE_CODING, SET_CONTROL_LINE_STATE, SEND_BREAK = 0x20, 0x21, 0x22, 0x23
DEVICE, CONFIGURATION, STRING, QUALIFIER = 1, 2, 3, 6
ENGLISH = 0x409


@dataclass(frozen=True)
class Want:
    """A packet at an endpoint that the host waits for, or with "RESET" the end of a reset."""

    name: str
    data: bytes = b""


Script = Generator[Want, bytes | None, bytes | None]
"""It is sent the packet of an IN; None for a STALL, and it returns None for a request that was refused."""


@dataclass
class Device:
    """A device as the host sees it; `refused`: codes of requests."""

    address: int = 0
    descriptor: bytes = b""
    configuration: bytes = b""
    strings: list[str] = field(default_factory=list)
    coding: bytes = b""
    refused: list[int] = field(default_factory=list)


class UsbHost:
    """The controller, the cable and the host. `reads`: a program there has the port open."""

    def __init__(self, machine: Machine) -> None:
        self.device = Device()
        self.reads = True
        self._machine = machine
        self._base = self._at("USB_DPRAM.SETUP_PACKET_LOW")
        self._memory = bytearray(b"\xa5" * (0x1000 - PACKETS))
        self._configured = False
        self._numbers = {"EP0_IN": DATA1, "EP0_OUT": DATA1, "EP2_IN": 0, "EP2_OUT": 0}
        self._script: Script | None = None
        self._want: Want | None = None
        machine.shared[self._base + PACKETS] = self._memory
        machine.uart_irq = self._interrupts
        machine.on_read[self._at("USB.INTS")] = lambda _, __, ___: self._raised()
        machine.on_write |= {
            self._at("USB.SIE_STATUS"): _ones_clear,
            self._at("USB.BUFF_STATUS"): _ones_clear,
            self._at("USB.SIE_CTRL"): self._attach,
            **{self._place(name): self._handed_over for name in self._numbers},
        }

    def ask(self, script: Script) -> None:
        """Let the host do something more; `machine.run()` carries it out."""
        self._script = script
        self._advance(None)

    def touch(self) -> Script:
        """As `stty 1200` does: the rate, then the port is closed."""
        yield from self._request(CLASS_INTERFACE, SET_LINE_CODING, data=struct.pack("<IBBB", 1200, 0, 0, 8))
        return (yield from self._request(CLASS_INTERFACE, SET_CONTROL_LINE_STATE))

    # --- the controller

    def _at(self, name: str) -> int:
        return self._machine.chip.registers[name].address

    def _place(self, endpoint: str) -> int:
        return self._at(f"USB_DPRAM.{endpoint}_BUFFER_CONTROL")

    def _raised(self) -> int:
        machine, fields = self._machine, self._machine.chip.registers["USB.INTS"].fields
        causes = {
            "SETUP_REQ": machine.field("USB.SIE_STATUS", "SETUP_REC"),
            "BUS_RESET": machine.field("USB.SIE_STATUS", "BUS_RESET"),
            "BUFF_STATUS": machine.field("USB.BUFF_STATUS"),
        }
        return sum(fields[name] for name, cause in causes.items() if cause) & machine.field("USB.INTE")

    def _interrupts(self) -> bool:
        self._exchange()
        return bool(self._raised())

    def _attach(self, machine: Machine, register: Register, value: int) -> int:
        """The pull-up shows the device to the host: it must be able to answer by then."""
        assert machine.field("RESETS.RESET", "USBCTRL") == 0 and machine.field("USB.MAIN_CTRL") == 1
        assert machine.field("CLOCKS.CLK_USB_CTRL", "ENABLE") and machine.field("PLL_USB.CS", "LOCK")
        assert register.value(value, "EP0_INT_1BUF") and register.value(value, "PULLUP_EN")
        self.ask(self._enumerate())
        return value

    def _handed_over(self, machine: Machine, register: Register, value: int) -> int:
        """All else in the word is there before AVAILABLE."""
        if value & AVAILABLE:
            assert machine.values[register.address] == value & ~AVAILABLE, register.name
        machine.values[register.address] = value
        self._exchange()
        return machine.values[register.address]

    def _exchange(self) -> None:
        """Do all for which both sides are ready."""
        while self._want is not None and self._ready(self._want.name):
            self._advance(
                None if self._want.name == "RESET" else self._move(self._want.name, self._want.data)
            )
        if self._configured and self.reads and self._ready("EP2_IN"):
            self._machine.sent += self._move_data("EP2_IN", b"")
        received = self._machine.received
        if self._configured and received and self._ready("EP2_OUT"):
            self._move_data("EP2_OUT", bytes(received.popleft() for _ in range(min(PACKET, len(received)))))

    def _advance(self, packet: bytes | None) -> None:
        assert self._script is not None
        self._want = None
        with suppress(StopIteration):
            self._want = self._script.send(packet)

    def _ready(self, name: str) -> bool:
        if self._machine.field("USB.SIE_STATUS", "BUS_RESET"):
            return False
        if name == "RESET":
            return True
        if name.startswith("EP0") and self._machine.field("USB.SIE_STATUS", "SETUP_REC"):
            return False
        state = self._machine.values[self._place(name)]
        stalls = state & STALL and (
            not name.startswith("EP0") or self._machine.field("USB.EP_STALL_ARM", name)
        )
        return bool(state & AVAILABLE or stalls) and not self._machine.field("USB.BUFF_STATUS", name)

    def _move_data(self, name: str, data: bytes) -> bytes:
        assert self._machine.field(f"USB_DPRAM.{name}_CONTROL") >> 26 == BULK, name
        moved = self._move(name, data)
        assert moved is not None
        return moved

    def _move(self, name: str, data: bytes) -> bytes | None:
        """One transaction: return the bytes that were moved, None for a STALL."""
        machine, state = self._machine, self._machine.values[self._place(name)]
        if state & STALL:
            return None
        assert state & DATA1 == self._numbers[name], f"{name}: the number of the packet"
        self._numbers[name] ^= DATA1
        control = PACKETS if name.startswith("EP0") else machine.field(f"USB_DPRAM.{name}_CONTROL") & 0xFFC0
        start = control - PACKETS
        if name.endswith("IN"):
            assert state & FULL and state & LENGTH <= PACKET
            data = bytes(self._memory[start : start + (state & LENGTH)])
            left = state & ~(AVAILABLE | FULL)
        else:
            assert not state & FULL and state & LENGTH == PACKET
            self._memory[start : start + len(data)] = data
            left = state & ~(AVAILABLE | LENGTH) | FULL | len(data)
        machine.values[self._place(name)] = left
        machine.set_field("USB.BUFF_STATUS", name, 1)
        return data

    # --- the host

    def _request(
        self, kind: int, code: int, value: int = 0, index: int = 0, *, data: bytes = b"", length: int = 0
    ) -> Script:
        machine = self._machine
        packet = struct.pack("<BBHHH", kind, code, value, index, length or len(data))
        low, high = struct.unpack("<II", packet)
        machine.values |= {self._base: low, self._base + 4: high, self._at("USB.EP_STALL_ARM"): 0}
        machine.set_field("USB.SIE_STATUS", "SETUP_REC", 1)
        self._numbers |= {"EP0_IN": DATA1, "EP0_OUT": DATA1}
        answer: bytes | None = b""
        if kind & TO_HOST:
            answer = yield from self._take(length)
            self._numbers["EP0_OUT"] = DATA1
            if answer is not None:
                yield Want("EP0_OUT")
        else:
            if data:
                answer = yield Want("EP0_OUT", data)
            if answer is not None:
                answer = yield Want("EP0_IN")
                assert answer in (None, b""), "an acknowledgement has no bytes"
        if answer is None:
            self.device.refused.append(code)
        return answer

    def _take(self, length: int) -> Script:
        """Return the bytes of an answer: a short packet ends it, or the length that was asked for."""
        answer = b""
        while True:
            packet = yield Want("EP0_IN")
            if packet is None:
                return None
            answer += packet
            if len(packet) < PACKET or len(answer) == length:
                assert len(answer) <= length
                return answer

    def _get(self, kind: int, index: int, length: int) -> Generator[Want, bytes | None, bytes]:
        language = ENGLISH if kind == STRING and index else 0
        request = self._request(TO_HOST, GET_DESCRIPTOR, kind << 8 | index, language, length=length)
        return (yield from request) or b""

    def _reset(self) -> Script:
        self._configured = False
        self._machine.set_field("USB.SIE_STATUS", "BUS_RESET", 1)
        yield Want("RESET")
        assert self._machine.field("USB.ADDR_ENDP") == 0
        return b""

    def _enumerate(self) -> Script:
        device = self.device
        yield from self._reset()
        first = yield from self._get(DEVICE, 0, 64)
        yield from self._reset()
        yield from self._request(0, SET_ADDRESS, 7)
        device.descriptor = yield from self._get(DEVICE, 0, 18)
        assert first == device.descriptor
        device.address = self._machine.field("USB.ADDR_ENDP", "ADDRESS")
        yield from self._get(QUALIFIER, 0, 10)
        head = yield from self._get(CONFIGURATION, 0, 9)
        device.configuration = yield from self._get(CONFIGURATION, 0, int.from_bytes(head[2:4], "little"))
        for index in range(4):
            text = yield from self._get(STRING, index, 255)
            if text:
                assert (text[0], text[1]) == (len(text), STRING)
                device.strings.append(text[2:].decode("utf-16-le"))
        yield from self._request(0, SET_CONFIGURATION, 1)
        assert (yield from self._request(TO_HOST, GET_CONFIGURATION, length=1)) == b"\1"
        self._numbers |= {"EP2_IN": 0, "EP2_OUT": 0}
        self._configured = True
        yield from self._request(TO_ENDPOINT, CLEAR_FEATURE, index=0x82)
        yield from self._request(TO_ENDPOINT, SET_FEATURE, index=0x82)
        yield from self._request(CLASS_INTERFACE, SEND_BREAK)
        coding = struct.pack("<IBBB", 115200, 0, 0, 8)
        yield from self._request(CLASS_INTERFACE, SET_LINE_CODING, data=coding)
        device.coding = (
            yield from self._request(TO_HOST | CLASS_INTERFACE, GET_LINE_CODING, length=7)
        ) or b""
        return (yield from self._request(CLASS_INTERFACE, SET_CONTROL_LINE_STATE, 3))


def _ones_clear(machine: Machine, register: Register, value: int) -> int:
    return machine.values[register.address] & ~value
