"""Boards of PlatformIO whose facts are shipped: without a platform, without a network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from subprocess import TimeoutExpired

import pytest
from click.testing import CliRunner

from mcudeploy.boards import platformio
from mcudeploy.boards.catalogue import catalogue, every_board, list_boards, load_board
from mcudeploy.boards.pioshipped import nearest, pio_boards
from mcudeploy.boards.trust import own_programs
from mcudeploy.cli.fit_command import named_boards
from mcudeploy.cli.main import cli
from mcudeploy.common.errors import BoardNotFoundError, BuildError, UsageError
from mcudeploy.costs.estimate import load_costs
from mcudeploy.toolchain import build_firmware, firmware_build
from tests.networks.small import small_model

NAMES = tuple(board.name for board in list_boards())
ONE_OF_A_FRAMEWORK = {"nucleo_f446re": "arduino", "esp32-c6-devkitc-1": "esp-idf", "disco_h747xi": "zephyr"}


@pytest.fixture(autouse=True)
def without_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No platform is installed, and nothing may ask the registry."""
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(tmp_path / "core"))
    monkeypatch.delenv("PLATFORMIO_PLATFORMS_DIR", raising=False)

    def output_of(*_: object) -> bytes:
        raise OSError("no network")

    monkeypatch.setattr(platformio, "output_of", output_of)


@pytest.mark.parametrize("name", pio_boards())
def test_shipped_facts_are_a_board(name: str) -> None:
    facts, board = pio_boards()[name], load_board(f"pio:{name}")
    assert (board.ram_bytes, board.flash_bytes, board.clock_hz) == (facts.ram, facts.flash, facts.clock)
    assert board.usb_ids == facts.usb_ids
    assert board.source.startswith(f"manifest of PlatformIO's platform {facts.platform} ")
    assert board.framework is not None
    assert (board.framework.platform, board.framework.board) == (facts.platform, name)
    assert load_costs(board.core).kernels and not own_programs(board)


def test_the_lists_have_boards_to_buy_and_with_all_the_others() -> None:
    def listed(line: str) -> list[str]:
        result = CliRunner().invoke(cli, line)
        assert result.exit_code == 0, result.output
        return [it["name"] for it in json.loads(result.stdout)["boards"]]

    bought = listed("boards --json")
    assert bought == [board.name for board in catalogue()] and len(bought) > 60
    radios = {board.name: board.radio for board in catalogue()}
    assert radios["esp32c3"] == radios["pio:esp32dev"] == ("wifi", "bluetooth") and radios["rp2040"] == ()
    assert "pio:esp32dev" in bought and "rp2040" in bought
    assert not {"host", "mps2-an386", "riscv32-virt"}.intersection(bought)
    assert listed("boards --all --json") == [board.name for board in every_board()]
    with pytest.raises(UsageError, match="exclude each other"):
        named_boards("all", emulated=True)
    assert named_boards("all", emulated=False) == named_boards(None, emulated=False) == catalogue()
    assert set(NAMES) < {board.name for board in every_board()}


@pytest.mark.parametrize(("name", "system"), ONE_OF_A_FRAMEWORK.items())
def test_build_needs_no_platform(name: str, system: str, tmp_path: Path) -> None:
    model = small_model(tmp_path / "small.onnx")
    line = f"build {model} --board pio:{name} --no-split --for {system} -o {tmp_path / 'lib'}"
    result = CliRunner().invoke(cli, line)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "lib/src/small.c").is_file()


def test_init_needs_no_platform(tmp_path: Path) -> None:
    model = small_model(tmp_path / "small.onnx")
    line = f"init {tmp_path / 'project'} {model} --board pio:nucleo_f446re --no-split"
    result = CliRunner().invoke(cli, line)
    assert result.exit_code == 0, result.output
    ini = (tmp_path / "project/platformio.ini").read_text(encoding="utf-8")
    assert "platform = ststm32\n" in ini and "board = nucleo_f446re\n" in ini


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("stm32f407", "stm32f407-disco"),
        ("NUCLEO-F446", "pio:nucleo_f446re"),
        ("stm32f446", "pio:nucleo_f446re"),
        ("blackpil_f411ce", "pio:blackpill_f411ce"),
        ("rp2400", "rp2040"),
    ],
)
def test_an_unknown_name_proposes_the_nearest(name: str, first: str) -> None:
    assert nearest(name, NAMES)[0] == first
    with pytest.raises(BoardNotFoundError, match=rf"Is it {first}[ ?]"):
        load_board(name)


def test_a_name_like_no_other_proposes_nothing() -> None:
    assert nearest("nope", NAMES) == nearest("-", NAMES) == ()
    with pytest.raises(BoardNotFoundError, match=r"no board 'nope'\.\n`mcudeploy boards`"):
        load_board("nope")


def test_a_build_without_a_network_ends_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """PlatformIO's own wait is a minute."""

    def wait(command: Sequence[str], timeout_s: float, _: object) -> bytes:
        assert list(command[-3:]) == ["pkg", "show", "ststm32"] and timeout_s <= 20
        raise TimeoutExpired(command, timeout_s)

    monkeypatch.setattr(firmware_build, "output_of", wait)
    monkeypatch.setattr(firmware_build, "run_logged", lambda *_: pytest.fail("PlatformIO was started"))
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path))
    with pytest.raises(BuildError, match=r"registry did not answer.*`pio pkg install -g -p ststm32`"):
        build_firmware(load_board("pio:nucleo_f446re"), {"model.c": "", "main.c": ""}, [], emulate=False)


def test_an_unknown_id_of_platformio_proposes_the_nearest() -> None:
    """PlatformIO's registry, which may take its time or be out of reach, is not asked."""
    with pytest.raises(
        BoardNotFoundError, match=r"Is it pio:nucleo_f446re\? If `pio boards nucleo_f446` lists"
    ):
        load_board("pio:nucleo_f446")
