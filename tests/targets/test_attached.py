"""Devices on USB, and the board of a family at a probe, by a fake sysfs and fake tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcudeploy.boards.catalogue import list_boards, load_board
from mcudeploy.boards.usb import kind_of, usb_kinds
from mcudeploy.common.errors import BoardNotFoundError, PortError
from mcudeploy.device.target import Target, require_port
from mcudeploy.device.transport import open_transport
from mcudeploy.toolchain import attached, ports
from mcudeploy.toolchain.attached import AttachedDevice, attached_board, list_devices
from mcudeploy.toolchain.ports import port_with

STLINK, STLINK_21 = "0483:3748", "0483:374b"
ST_INFO = """\
Found {} stlink programmers
  version:    V2J37S7
  serial:     {}
  flash:      1048576 (pagesize: 16384)
  sram:       196608
  chipid:     {}
  dev-type:   any
"""
Plug = Callable[..., None]
Tool = Callable[[str, str], None]


@pytest.fixture
def plug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plug:
    """Plugs a device in: with a serial port, or without one."""
    folder = tmp_path / "usb"
    folder.mkdir()
    comports: list[SimpleNamespace] = []
    monkeypatch.setattr(attached, "USB_DEVICES", folder)
    monkeypatch.setattr(ports.list_ports, "comports", lambda: list(comports))
    monkeypatch.setattr(ports, "may_open", lambda name: True)

    def plug_in(usb_id: str, serial: str = "", product: str = "", port: str = "") -> None:
        place = folder / f"1-{len(list(folder.iterdir())) + 1}"
        place.mkdir()
        vendor, number = usb_id.split(":")
        for name, text in zip(
            ("idVendor", "idProduct", "serial", "product"), (vendor, number, serial, product), strict=True
        ):
            if text:
                (place / name).write_text(f"{text}\n")
        if port:
            known = {"vid": int(vendor, 16), "pid": int(number, 16), "location": f"{place.name}:1.0"}
            comports.append(
                SimpleNamespace(device=port, description=product, serial_number=serial or None, **known)
            )

    return plug_in


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Installs a program that prints this; no others are there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(name: str, prints: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{prints}\n")
        (folder / name).chmod(0o755)

    return install


def st_info(*probes: tuple[str, str]) -> str:
    text = "".join(ST_INFO.format(len(probes), *each) for each in probes)
    return f"[ $1 = --probe ] || exit 1\necho '{text}'"


def test_each_device_is_known_by_its_id(plug: Plug) -> None:
    plug("1d6b:0002", "0000:00:14.0", "a hub")
    plug(STLINK_21, "066DFF48", "STM32 STLink", "/dev/ttyACM0")
    plug("2e8a:0003", "E0C9125B0D9B", "RP2 Boot")
    plug("10c4:ea60", "0001", "CP2102 USB to UART", "/dev/ttyUSB0")
    plug("1234:5678", "7", "a producer's CMSIS-DAP")
    plug("16c0:0478")
    devices = {it.usb_id: it for it in list_devices()}
    assert devices.keys() == {STLINK_21, "2e8a:0003", "10c4:ea60", "1234:5678", "16c0:0478"}
    stlink = devices[STLINK_21]
    assert (stlink.kind, stlink.serial, stlink.port) == ("probe", "066DFF48", "/dev/ttyACM0")
    assert {"stm32f405", "stm32u585"} <= set(stlink.boards) and "rp2040" not in stlink.boards
    assert devices["2e8a:0003"] == AttachedDevice(
        "RP2040 boot loader", "boot loader", "2e8a:0003", "E0C9125B0D9B", "", True, ("rp2040-usb", "rp2040")
    )
    assert (devices["10c4:ea60"].kind, devices["10c4:ea60"].boards) == ("serial bridge", ())
    assert (devices["1234:5678"].name, devices["1234:5678"].kind) == ("CMSIS-DAP", "probe")
    assert devices["16c0:0478"].boards == ("teensy41",)


def test_ids_name_families_that_are_there_and_one_kind_each() -> None:
    families = {it.family for it in list_boards()}
    ids = [each for kind in usb_kinds() for each in kind.ids]
    assert len(set(ids)) == len(ids) and all(set(kind.families) <= families for kind in usb_kinds())
    assert all(kind_of(each, "") for board in list_boards() for each in board.usb_ids)


@pytest.mark.parametrize(("chip", "board"), [("0x413", "stm32f405"), ("0x0420", "stm32f100")])
def test_st_info_tells_the_chip(chip: str, board: str, plug: Plug, tool: Tool) -> None:
    plug(STLINK, "066DFF48", "ST-Link")
    tool("st-info", st_info(("066DFF48", chip)))
    boards, known_by = attached_board("stm32")
    assert boards.name == board
    assert known_by == f"ST-Link/V2 (serial 066DFF48), chip id {int(chip, 16):#05x}"


def test_openocd_tells_the_chip_where_st_info_cannot(plug: Plug, tool: Tool, tmp_path: Path) -> None:
    plug(STLINK_21, "066DFF48", "ST-Link", "/dev/ttyACM0")
    tool("st-info", st_info(("066DFF48", "0x000")))
    asked = tmp_path / "asked"
    tool("openocd", f'echo "$*" >> {asked}; case "$*" in *0xe0042000*) echo "0xe0042000: 10016420";; esac')
    assert attached_board("stm32")[0].name == "stm32f100"
    lines = asked.read_text().splitlines()
    probe = "-c adapter serial 066DFF48 -c init -c mdw 0xe0042000 -c exit"
    assert f"-f interface/stlink.cfg -f target/stm32f1x.cfg {probe}" in lines
    assert all(line.startswith("-f interface/stlink.cfg -f target/") for line in lines)


def test_a_chip_without_a_board_or_with_two(plug: Plug, tool: Tool) -> None:
    plug(STLINK, "066DFF48", "ST-Link")
    tool("st-info", st_info(("066DFF48", "0x468")))
    with pytest.raises(
        BoardNotFoundError, match=r"has id 0x468, which no board of the family stm32 has.*--new"
    ):
        attached_board("stm32")
    tool("st-info", st_info(("066DFF48", "0x450")))
    with pytest.raises(BoardNotFoundError, match="id 0x450, as stm32h743, stm32h743i-eval, stm32h747: name"):
        attached_board("stm32")
    tool("st-info", "exit 1")
    with pytest.raises(BoardNotFoundError, match=r"which one is not known.*apt-get install stlink-tools"):
        attached_board("stm32")


def test_several_probes_are_listed_and_one_is_chosen(plug: Plug, tool: Tool) -> None:
    plug(STLINK, "AAAA", "ST-Link")
    plug(STLINK_21, "BBBB", "ST-Link", "/dev/ttyACM0")
    plug("0483:5740", "CCCC", "a program on some STM32", "/dev/ttyACM1")
    tool("st-info", st_info(("AAAA", "0x413"), ("BBBB", "0x420")))
    with pytest.raises(BoardNotFoundError) as caught:
        attached_board("stm32")
    assert str(caught.value) == (
        "2 devices may be stm32: ST-Link/V2-1 (serial BBBB, /dev/ttyACM0); ST-Link/V2 (serial AAAA). "
        "Choose one with --probe SERIAL, or --port."
    )
    assert attached_board("stm32", (), "AAAA")[0].name == "stm32f405"
    assert attached_board("stm32", (), "BBBB")[0].name == "stm32f100"
    assert attached_board("stm32", ("/dev/ttyACM0",))[0].name == "stm32f100"
    with pytest.raises(BoardNotFoundError, match="no stm32 is attached by a probe DDDD"):
        attached_board("stm32", (), "DDDD")


def test_the_port_of_a_chip_in_its_boot_loader_is_to_come(plug: Plug, tool: Tool) -> None:
    """It has no program yet: the port is the one that the program will show."""
    board = Target(load_board("rp2040-usb"))
    with pytest.raises(BoardNotFoundError, match="no rp2040-usb is attached"):
        require_port(board)
    plug("2e8a:0003", "E0C9125B0D9B", "RP2 Boot")
    assert require_port(board) == "usb:2e8a:000a"
    with pytest.raises(PortError, match="no serial port has the USB id 2e8a:000a"):
        open_transport("usb:2e8a:000a")
    plug("2e8a:000a", "", "Serial USB", "/dev/ttyACM7")
    assert port_with("2e8a:000a") == "/dev/ttyACM7"
    with pytest.raises(PortError, match="ttyACM7: there is no such port"):
        require_port(board)


def test_an_id_of_one_board_needs_no_tool(plug: Plug, tool: Tool) -> None:
    assert (attached_board("rp2")[0].name, attached_board("rp2")[1]) == ("rp2040", "")
    plug("2e8a:000f", "E66", "RP2350 Boot")
    assert attached_board("rp2")[0].name == "rp2350"
    assert attached_board("rp2")[1] == "RP2350 boot loader (serial E66)"
