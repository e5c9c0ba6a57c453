"""The shipped boards through the command line, and which board of a family is meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from mcudeploy.boards.board import list_boards
from mcudeploy.common.resources import resource_dir
from mcudeploy.targets.ports import Port
from tests.cli.conftest import Deploy

Invoke = Callable[[str], Result]
EXAMPLE = resource_dir("boards").parent / "examples" / "vww" / "model.onnx"


def test_every_shipped_board_is_listed(mcudeploy_command: Invoke) -> None:
    listed = json.loads(mcudeploy_command("boards --json").stdout)["boards"]
    assert [board["name"] for board in listed] == [board.name for board in list_boards()]
    assert all(board["flash_bytes"] > 0 and board["memories"] and board["units"] for board in listed)
    assert all(board["source"] for board in listed if board["name"] != "host")
    linked = {board["name"]: board["links"] for board in listed if board["links"]}
    assert linked.keys() == {"mps2-an505", "mps2-an521"}
    assert linked["mps2-an505"][0]["memories"] == ["sram", "psram"]


def test_a_library_is_built_for_a_board_without_firmware(mcudeploy_command: Invoke, tmp_path: Path) -> None:
    command = f"build {EXAMPLE} --board rp2040 --no-split -o {tmp_path} --json"
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
    ("attached", "options", "chosen"),
    [("", "", "stm32f405"), ("stm32f100", "", "stm32f100"), ("stm32f100", "--emulate", "stm32f405")],
)
def test_a_family_is_its_attached_board_or_its_default(
    attached: str,
    options: str,
    chosen: str,
    mcudeploy_command: Invoke,
    deploy: Deploy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ports = (Port("/dev/ttyACM0", "probe", "0483:3748", boards=(attached,)),) if attached else ()
    monkeypatch.setattr("mcudeploy.boards.board.list_boards", list_boards)
    monkeypatch.setattr("mcudeploy.targets.ports.list_serial_ports", lambda boards: ports)
    result = mcudeploy_command(f"run m.onnx --board stm32 {options}")
    assert result.exit_code == 0, result.output
    assert deploy.calls["run_model"][0][1].board.name == chosen


def test_flash_that_programs_run_from_in_place_has_a_rate(mcudeploy_command: Callable[[str], Result]) -> None:
    listed = json.loads(mcudeploy_command("boards --json").stdout)["boards"]
    rates = {board["name"]: board["flash_read_rate"] for board in listed if board["flash_read_rate"]}
    assert rates.keys() == {"esp32s3", "rp2040", "rp2350", "teensy41"}
    assert all(0 < rate < 1 for rate in rates.values())
