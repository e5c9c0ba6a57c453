"""The serial port over USB of RP2040 and RP2350: its descriptors, refusals, touch, and no host at all."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.device.frame import Frame, Receiver, encode
from mcudeploy.device.requests import REPLY, Request
from mcudeploy.toolchain import Firmware
from tests.chips import rp2
from tests.chips.facts import Chip
from tests.chips.machine import Machine
from tests.chips.programs import built, deployed
from tests.chips.usb import GET_DESCRIPTOR, PACKET, SEND_BREAK, SET_FEATURE, UsbHost
from tests.networks.small import small_model

BOARDS = ("rp2040-usb", "rp2350-usb")
FIND = {"rp2040-usb": (0x14, 0x00000040), "rp2350-usb": (0x14, 0x00810000)}
"""The word of the boot ROM with the table of functions, and on RP2350 with the function that finds them."""
COMPARES = {"rp2040-usb": 0x42914A02, "rp2350-usb": 0x42904A02}
"""ldr r2, =CODE; then cmp r1, r2 or cmp r0, r2"""
CODES = {"rp2040-usb": 0x4255, "rp2350-usb": 0x4252}
"""UB, reset to USB boot; RB, reboot"""
ARGUMENTS = {"rp2040-usb": {"R0": 0, "R1": 0}, "rp2350-usb": {"R0": 0x102, "R1": 10, "R2": 0, "R3": 0}}
"""No pin shows activity, no interface is left out; or: to the boot loader, without return, after 10 ms."""


@pytest.fixture(scope="module", params=BOARDS)
def firmware(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    folder = tmp_path_factory.mktemp(request.param)
    return built(deployed(request.param, small_model(folder / "small.onnx"))[0], folder)


def started(firmware: Firmware) -> tuple[Machine, UsbHost]:
    """A chip that has been enumerated, and its host."""
    hosts = []

    def wire(machine: Machine) -> None:
        rp2.connect(machine)
        hosts.append(UsbHost(machine))

    machine = Machine(firmware, Chip(firmware.board.name), wire)
    machine.run()
    return machine, hosts[0]


def descriptors(configuration: bytes) -> Iterator[bytes]:
    while configuration:
        yield configuration[: configuration[0]]
        configuration = configuration[configuration[0] :]


def test_the_host_finds_a_serial_port(firmware: Firmware) -> None:
    device = started(firmware)[1].device
    uart = load_board(firmware.board.name).uart
    assert uart is not None and uart.usb_id is not None
    vendor, product = struct.unpack("<HH", device.descriptor[8:12])
    assert f"{vendor:04x}:{product:04x}" == uart.usb_id and uart.usb_id in firmware.board.usb_ids
    assert (device.descriptor[0], device.descriptor[4], device.descriptor[7]) == (18, 2, 64)
    assert device.address == 7
    assert device.strings[1:] == ["mcudeploy", "Serial USB"]
    assert device.coding == struct.pack("<IBBB", 115200, 0, 0, 8)
    assert device.refused == [GET_DESCRIPTOR, GET_DESCRIPTOR, SET_FEATURE, SEND_BREAK]
    parts = list(descriptors(device.configuration))
    assert struct.unpack("<H", parts[0][2:4])[0] == len(device.configuration)
    assert [it[5:8] for it in parts if it[1] == 4] == [b"\2\2\0", b"\x0a\0\0"]
    assert [(it[2], it[3]) for it in parts if it[1] == 5] == [(0x81, 3), (0x02, 2), (0x82, 2)]
    assert [it[2:] for it in parts if it[1] == 0x24] == [b"\0\x10\1", b"\1\0\1", b"\2\2", b"\6\0\1"]


def test_a_touch_restarts_the_chip_in_its_boot_loader(firmware: Firmware) -> None:
    machine, host = started(firmware)
    name = firmware.board.name
    address, word = FIND[name]
    code = {0x80: COMPARES[name], 0x84: 0xDE00D000, 0x88: 0x47702091, 0x8C: CODES[name], 0x90: 0xDE42}
    machine.map_rom({address: word, 0x18: 0x81, **code})  # beq; udf; movs r0, #0x91; bx lr; udf
    host.ask(host.touch())
    with pytest.raises(AssertionError, match="at 0x00000090"):
        machine.run()
    assert {it: machine.register(it) for it in ARGUMENTS[name]} == ARGUMENTS[name]


def asked(machine: Machine, request: Request, sequence: int, data: bytes) -> list[tuple[int, int]]:
    """Return type and number of the frames that come after a request."""
    machine.received.extend(b"\0" + encode(Frame(request, sequence, data)))
    received = bytearray()
    for _ in range(8):
        machine.run()
        received += machine.sent
        machine.sent.clear()
    return [(it.type, it.seq) for it in Receiver().feed(bytes(received))]


def test_a_program_goes_on_where_nobody_reads(firmware: Firmware) -> None:
    """It waits a second for the first packet, not for others; a new reader loses no frame."""
    machine, host = started(firmware)
    assert asked(machine, Request.HELLO, 0, b"\1\2\3\4") == [(Request.HELLO | REPLY, 0)]
    some = struct.pack("<BIH", 0, 0, 3 * PACKET)
    host.reads = False
    machine.haste = 2**18
    spent = []
    for sequence in range(1, 4):
        before = machine.instructions
        assert asked(machine, Request.READ, sequence, some) == []
        spent.append((machine.instructions - before) / machine.board.clock_hz)
    assert not machine.received
    assert 1.0 < spent[0] < 1.1 and max(spent[1:]) < 0.1
    host.reads = True
    assert asked(machine, Request.READ, 4, some) == [(Request.READ | REPLY, 4)]
