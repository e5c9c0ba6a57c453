"""Serial ports and the boards they belong to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mcudeploy.boards.catalogue import list_boards, load_board
from mcudeploy.common.errors import BoardNotFoundError
from mcudeploy.toolchain import ports
from mcudeploy.toolchain.flash_tools import Attached


def comport(
    device: str, usb: str = "", description: str = "n/a", serial: str | None = None
) -> SimpleNamespace:
    vendor, product = (int(part, 16) for part in usb.split(":")) if usb else (None, None)
    return SimpleNamespace(
        device=device, vid=vendor, pid=product, description=description, serial_number=serial
    )


def attach(monkeypatch: pytest.MonkeyPatch, *devices: SimpleNamespace) -> None:
    monkeypatch.setattr(ports.list_ports, "comports", lambda: list(devices))
    monkeypatch.setattr(ports, "may_open", lambda name: True)  # whatever ports this machine has


STLINK, MICROBIT = "0483:374b", "0d28:0204"


def test_ports_name_their_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    attach(
        monkeypatch, comport("/dev/ttyS0"), comport("/dev/ttyACM1", MICROBIT), comport("/dev/ttyACM0", STLINK)
    )
    listed = ports.list_serial_ports(list_boards())
    assert [(port.name, port.usb_id) for port in listed] == [
        ("/dev/ttyACM0", STLINK), ("/dev/ttyACM1", MICROBIT), ("/dev/ttyS0", ""),
    ]  # fmt: skip
    assert "stm32f405" in listed[0].boards
    assert listed[1].boards == ("microbit",)
    assert listed[2].boards == ()
    assert all(port.allowed for port in listed)


def test_the_port_of_a_board(monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("microbit")
    attach(
        monkeypatch, comport("/dev/ttyACM0", STLINK), comport("/dev/ttyACM1", MICROBIT), comport("/dev/ttyS0")
    )
    assert ports.find_port(board) == "/dev/ttyACM1"
    attach(monkeypatch, comport("/dev/ttyS0"), comport("/dev/ttyUSB0", "1a86:7523", "USB serial"))
    assert ports.find_port(board) == "/dev/ttyUSB0"


def test_no_board_or_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("microbit")
    attach(monkeypatch)
    with pytest.raises(BoardNotFoundError, match=r"no microbit is attached: no serial ports are .*--port"):
        ports.find_port(board)
    attach(monkeypatch, comport("/dev/ttyS0"))
    with pytest.raises(BoardNotFoundError, match="1 serial port is on this machine; none is a USB port"):
        ports.find_port(board)
    attach(monkeypatch, comport("/dev/ttyACM0", MICROBIT, "mbed"), comport("/dev/ttyACM1", MICROBIT, "mbed"))
    with pytest.raises(BoardNotFoundError, match=r"2 ports may be microbit: /dev/ttyACM0 \(mbed\), "):
        ports.find_port(board)


def test_a_port_that_is_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    attach(monkeypatch, comport("/dev/null"))
    monkeypatch.setattr(ports, "may_open", lambda name: False)
    (port,) = ports.list_serial_ports()
    assert not port.allowed


def test_the_port_chooses_the_probe_and_the_probe_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("stm32f405")
    attach(
        monkeypatch,
        comport("/dev/ttyACM0", STLINK, "ST-Link", "066DFF48"),
        comport("/dev/ttyACM1", STLINK, "ST-Link", "066DFF49"),
        comport("/dev/ttyACM2", STLINK, "ST-Link", "\x01\x02"),
        comport("/dev/ttyUSB0", "1a86:7523", "bridge", "5"),
    )
    assert ports.attached_by(board, "/dev/ttyACM1") == Attached("/dev/ttyACM1", "066DFF49", STLINK)
    assert ports.attached_by(board, "/dev/ttyACM2") == Attached("/dev/ttyACM2")  # no text: not for a command
    assert ports.attached_by(board, "/dev/ttyUSB0") == Attached("/dev/ttyUSB0")  # no probe
    assert ports.attached_by(board, None, "066DFF48") == Attached(None, "066DFF48", STLINK)
    assert ports.attached_by(board, None, "other") == Attached(None, "other", None)
    assert ports.find_port(board, "066DFF49") == "/dev/ttyACM1"
    with pytest.raises(BoardNotFoundError, match=r"ttyACM0 \(ST-Link, serial 066DFF48\).*--probe SERIAL"):
        ports.find_port(board)
