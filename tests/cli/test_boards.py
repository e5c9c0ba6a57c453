"""The shipped boards through the command line, and which board of a family is meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from click.testing import Result
from rich.console import Console

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import list_boards, load_board
from mcudeploy.cli import boardtables
from mcudeploy.common.resources import resource_dir
from mcudeploy.toolchain.attached import AttachedDevice
from tests.cli.conftest import Deploy

Invoke = Callable[[str], Result]
EXAMPLE = resource_dir("boards").parent / "examples" / "vww" / "model.onnx"


def test_every_shipped_board_is_listed(mcudeploy_command: Invoke) -> None:
    listed = json.loads(mcudeploy_command("boards --all --json").stdout)["boards"]
    assert {board["name"] for board in listed} >= {board.name for board in list_boards()}
    assert all(board["flash_bytes"] > 0 and board["memories"] and board["units"] for board in listed)
    assert all(board["source"] for board in listed if board["name"] != "host")
    linked = {board["name"]: board["links"] for board in listed if board["links"]}
    assert linked.keys() == {"mps2-an505", "mps2-an521"}
    assert linked["mps2-an505"][0]["memories"] == ["sram", "psram"]


def test_no_name_of_a_board_is_cut(mcudeploy_command: Invoke) -> None:
    report, console = json.loads(mcudeploy_command("boards --all --json").stdout), StringIO()
    boardtables.boards(Console(file=console, width=140), report)
    shown = {line.split()[0] for line in console.getvalue().splitlines() if line.strip()}
    assert {board["name"] for board in report["boards"]} <= shown


def test_a_library_is_built_for_a_board_without_firmware(mcudeploy_command: Invoke, tmp_path: Path) -> None:
    command = f"build {EXAMPLE} --board stm32u585 --no-split -o {tmp_path} --json"
    report = json.loads(mcudeploy_command(command).stdout)
    assert "flash_bytes" not in report and report["weights_bytes"] > 0
    assert not (tmp_path / "firmware").exists()
    assert (tmp_path / "src" / "model.c").is_file()


def test_doctor_looks_for_what_a_board_needs(mcudeploy_command: Invoke) -> None:
    result = mcudeploy_command("doctor --board stm32f405 --json")
    assert result.exit_code == 0
    checks = json.loads(result.stdout)["checks"]
    assert any("arm-none-eabi" in check["name"] for check in checks)
    assert not any("riscv" in check["name"] for check in checks)
    assert all(check["ok"] or check["remedy"] for check in checks)


@pytest.mark.parametrize(
    ("known_by", "options", "chosen", "message"),
    [
        ("", "", "stm32f405", ""),
        ("ST-Link, chip id 0x420", "", "stm32f100", "stm32 is stm32f100: ST-Link, chip id 0x420\n"),
        ("ST-Link, chip id 0x420", "--quiet", "stm32f100", ""),
        ("ST-Link, chip id 0x420", "--emulate", "stm32f405", ""),
    ],
)
def test_a_family_is_its_attached_board_or_its_default(
    known_by: str,
    options: str,
    chosen: str,
    message: str,
    mcudeploy_command: Invoke,
    deploy: Deploy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[object, ...]] = []

    def attached(*given: object) -> tuple[Board, str]:
        calls.append(given)
        return load_board("stm32f100" if known_by else "stm32f405"), known_by

    monkeypatch.setattr("mcudeploy.boards.catalogue.list_boards", list_boards)
    monkeypatch.setattr("mcudeploy.toolchain.attached.attached_board", attached)
    line = f"run m.onnx --board stm32 {options}"
    result = mcudeploy_command(line if "--emulate" in line else f"{line} --probe 066D --port /dev/ttyACM0")
    assert (result.exit_code, result.stderr) == (0, message), result.output
    target = deploy.calls["run_model"][0][1]
    assert target.board.name == chosen
    if not target.emulate:
        assert calls == [("stm32", ("/dev/ttyACM0",), "066D")]
        assert (target.port, target.probe) == ("/dev/ttyACM0", "066D")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--flasher magic", "tiny is not flashed by magic; its board file names openocd, st-flash"),
        ("--probe --x", "is not a serial number"),
        ("--probe 0;exit", "is not a serial number"),
        ("--emulate --probe 1", "--probe names a real board's probe; tiny runs in the emulator"),
        ("--emulate --flasher openocd", "--flasher names a real board's flasher"),
    ],
)
def test_how_a_board_is_reached_is_checked_at_once(
    options: str, message: str, mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    for command in ("flash", "run m.onnx", "measure m.onnx"):
        result = mcudeploy_command(f"{command} --board tiny {options}")
        assert result.exit_code == 2 and message in result.stderr
    assert not deploy.calls


def test_flashers_come_from_options_and_settings(
    mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mcudeploy_command("flash --board tiny --flasher pyocd --probe 066D").exit_code == 0
    target = deploy.calls["flash_board"][0][1]
    assert (target.flasher, target.probe) == ("pyocd", "066D")
    monkeypatch.setenv("MCUDEPLOY_FLASHER", "st-flash")
    assert mcudeploy_command("run m.onnx --board tiny").exit_code == 0
    assert deploy.calls["run_model"][0][1].flasher == "st-flash"
    assert mcudeploy_command("run m.onnx --board tiny --emulate").exit_code == 0  # it waits for hardware
    assert deploy.calls["run_model"][0][1].flasher is None


def test_devices_are_listed(mcudeploy_command: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    attached = (
        AttachedDevice("ST-Link/V2", "probe", "0483:3748", "066D", "", True, ("stm32f405", "stm32f100")),
        AttachedDevice("CP210x", "serial bridge", "10c4:ea60", "1", "/dev/ttyUSB0", False),
    )
    monkeypatch.setattr("mcudeploy.toolchain.attached.list_devices", lambda: attached)
    table = mcudeploy_command("devices").stdout
    assert "stm32f405, stm32f100" in table and "/dev/ttyUSB0 (no access: see doctor)" in table
    listed = json.loads(mcudeploy_command("devices --json").stdout)["devices"]
    assert [it["usb_id"] for it in listed] == ["0483:3748", "10c4:ea60"]
    monkeypatch.setattr("mcudeploy.toolchain.attached.list_devices", tuple)
    assert "no probe, no boot loader and no serial port" in mcudeploy_command("devices").stdout


def test_flash_that_programs_run_from_in_place_costs_most(mcudeploy_command: Callable[[str], Result]) -> None:
    listed = json.loads(mcudeploy_command("boards --json").stdout)["boards"]
    costs = {board["name"]: board["flash_read_cost"] for board in listed}
    serial = {"esp32s3", "rp2040", "rp2040-usb", "rp2350", "rp2350-usb", "teensy41"}
    serial |= {"pico-plus2-usb", "promicro-rp2350-usb"}
    serial |= {"grove-vision-ai-v2", "psoc-e84", "alif-e7"}  # the last one's is MRAM beyond a slow bus
    assert {name for name, cost in costs.items() if cost > 1} == serial
    assert 0 == costs["stm32f100"] < costs["stm32f411"] < costs["stm32f405"] < costs["stm32l476"] < 1
