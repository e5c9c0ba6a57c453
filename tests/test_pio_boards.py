"""Boards of PlatformIO by their manifests: what they become, and what is refused.

The manifests have the facts of those in PlatformIO's platforms ststm32, espressif32, raspberrypi, atmelavr,
espressif8266 and sifive (Apache-2.0), as far as they are used.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mcudeploy.boards import platformio
from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.common.errors import (
    BoardNotFoundError,
    BuildError,
    ConfigError,
    DeployError,
    FitError,
    PortError,
    UsageError,
)
from mcudeploy.costs.estimate import load_costs
from mcudeploy.device import target
from mcudeploy.toolchain import build_firmware, firmware_build, framework
from mcudeploy.toolchain.doctor import checks
from mcudeploy.toolchain.firmware import Firmware, Sizes
from mcudeploy.toolchain.flash_tools import Attached
from mcudeploy.toolchain.flashing import flash_commands


def manifest(frameworks: str, ram: int, flash: int, needs_port: bool = False, **build: Any) -> dict[str, Any]:
    """A board's manifest, without what nothing here reads."""
    upload: dict[str, Any] = {"maximum_ram_size": ram, "maximum_size": flash}
    return {
        "name": "a name",
        "url": "",
        "vendor": "",
        "frameworks": frameworks.split(),
        "build": build,
        "upload": upload | ({"require_upload_port": True} if needs_port else {}),
    }


PICO = [["0x2E8A", "0x00C0"]]
MANIFESTS = {
    "nucleo_f446re": manifest(
        "arduino mbed zephyr", 131072, 524288, cpu="cortex-m4", mcu="stm32f446ret6", f_cpu="180000000L"
    ),
    "esp32-s3-devkitc-1": manifest(
        "arduino espidf", 327680, 8388608, True, mcu="esp32s3", f_cpu="240000000L"
    ),
    "esp32-c3-devkitm-1": manifest("arduino", 327680, 4194304, True, mcu="esp32c3", f_cpu="160000000L"),
    "pico": manifest(
        "arduino", 270336, 2097152, True, cpu="cortex-m0plus", mcu="rp2040", f_cpu="133000000L", hwids=PICO
    ),
    "uno": manifest("arduino", 2048, 32256, True, mcu="atmega328p", f_cpu="16000000L"),
    "d1_mini": manifest("arduino", 81920, 4194304, True, mcu="esp8266", f_cpu="80000000L"),
    "hifive1-revb": manifest(
        "freedom-e-sdk", 16384, 16777216, mcu="fe310", march="rv32imac", f_cpu="320000000L"
    ),
    "odd": manifest("arduino", 16384, 65536, mcu="z80n", cpu="z80", f_cpu="8000000L"),
    "no_ram": manifest("arduino", 0, 65536, cpu="cortex-m3", mcu="x", f_cpu="8000000L"),
    "no_list": {"build": [], "upload": {}},
}


@pytest.fixture(autouse=True)
def core_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PlatformIO's core folder, with one platform that has all manifests."""
    folder = tmp_path / "core"
    boards = folder / "platforms" / "all" / "boards"
    boards.mkdir(parents=True)
    (boards.parent / "platform.json").write_text('{"name": "all", "version": "1.2.3"}')
    for name, content in MANIFESTS.items():
        (boards / f"{name}.json").write_text(json.dumps(content))
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(folder))
    monkeypatch.delenv("PLATFORMIO_PLATFORMS_DIR", raising=False)
    return folder


@pytest.mark.parametrize(
    ("name", "core", "clock_mhz", "arena", "unit"),
    [
        ("nucleo_f446re", "cortex-m4", 180, 131072 - 6144, "cycles"),
        ("esp32-s3-devkitc-1", "xtensa-lx7", 240, 327680 - 72704, "cycles"),
        ("esp32-c3-devkitm-1", "rv32imc", 160, 327680 - 72704, "cycles"),
        ("pico", "cortex-m0plus", 133, 270336 - 6144, "ticks"),
    ],
)
def test_a_manifest_is_a_board(name: str, core: str, clock_mhz: int, arena: int, unit: str) -> None:
    board = load_board(f"pio:{name}")
    facts = MANIFESTS[name]
    assert (board.name, board.core, board.clock_hz) == (f"pio:{name}", core, clock_mhz * 10**6)
    assert (board.ram_bytes, board.flash_bytes) == tuple(facts["upload"].values())[:2]
    assert board.room(board.memories[0]) == arena
    assert board.timer.hardware is not None and board.timer.hardware.unit == unit
    assert board.framework is not None
    assert (board.framework.platform, board.framework.version) == ("all", "1.2.3")
    assert load_costs(board.core).kernels
    assert board.usb_ids == (("2e8a:00c0",) if name == "pico" else ())


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("uno", UsageError, "atmega328p is not supported: it is an AVR"),
        ("d1_mini", UsageError, "esp8266 is not supported: constants in its flash"),
        ("hifive1-revb", UsageError, "is for arduino, espidf, zephyr; the board has freedom-e-sdk"),
        ("pico:zephyr", UsageError, "is for arduino, espidf, zephyr; the board has arduino"),
        ("odd", UsageError, r"the core of z80n is not known \(z80\)"),
        ("no_ram", ConfigError, "lacks upload.maximum_ram_size"),
        ("no_list", ConfigError, "not a board manifest of PlatformIO:\n  build"),
        ("../uno", BoardNotFoundError, "names no board"),
        ("a b\n[env]", BoardNotFoundError, "names no board"),
    ],
)
def test_what_is_refused_says_why(name: str, kind: type[DeployError], message: str) -> None:
    with pytest.raises(kind, match=message):
        load_board(f"pio:{name}")


def test_a_damaged_manifest_names_its_file(core_folder: Path) -> None:
    (core_folder / "platforms/all/boards/pico.json").write_text("{")
    with pytest.raises(ConfigError, match=r"boards/pico\.json cannot be read"):
        load_board("pio:pico")


def test_the_registry_knows_boards_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    brief = {"id": "bluepill_f103c6", "name": "BluePill", "platform": "ststm32", "mcu": "STM32F103C8T6"}
    brief |= {"fcpu": 72000000, "ram": 20480, "rom": 65536, "frameworks": ["arduino", "mbed"]}  # type: ignore[dict-item]
    listed = json.dumps([brief | {"id": "bluepill_f103c6_32k"}, brief])
    answers = [listed, listed, json.dumps([brief | {"id": "pico"}]), "no network"]

    def output_of(command: list[str], *_: object) -> bytes:
        assert command[1:] == ["-P", "-m", "platformio", "boards", "--json-output"]
        return answers.pop(0).encode()

    monkeypatch.setattr(platformio, "output_of", output_of)
    board = load_board("pio:bluepill_f103c6")
    assert (board.core, board.ram_bytes, board.flash_bytes) == ("cortex-m3", 20480, 65536)
    assert board.framework is not None and board.framework.platform == "ststm32"
    missing = [it for it in checks(board) if not it.ok and it.name == "platform ststm32"]
    assert missing[0].remedy.endswith("-m platformio pkg install -g -p ststm32")
    with pytest.raises(
        BoardNotFoundError, match=r"nor its registry has this board. Is it pio:bluepill_f103c6"
    ):
        load_board("pio:bluepil_f103c6")
    for why in ("installed boards only", "no list of boards"):  # "pico" is installed
        with pytest.raises(BoardNotFoundError, match=rf"{why}.*`pio boards bluepill_f103c6` names.*`pio pkg"):
            load_board("pio:bluepill_f103c6")


def test_platformio_uploads_what_was_built(tmp_path: Path) -> None:
    attached = Attached("/dev/ttyACM0", "123")
    commands = {
        name: flash_commands(load_board(f"pio:{name}"), tmp_path / "firmware.elf", attached)
        for name in ("nucleo_f446re", "pico")
    }
    common = (
        f"-P -m platformio run -d {tmp_path}/project -e firmware --disable-auto-clean -t nobuild -t upload"
    )
    assert commands["nucleo_f446re"] == [[sys.executable, *common.split()]]
    assert commands["pico"] == [[sys.executable, *common.split(), "--upload-port", "/dev/ttyACM0"]]


def test_a_program_that_leaves_no_stack_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("pio:nucleo_f446re")
    with pytest.raises(BuildError, match="no ELF file"):
        framework.keep(tmp_path, tmp_path / "ready", "", board)
    (tmp_path / ".pio/build/firmware").mkdir(parents=True)
    (tmp_path / ".pio/build/firmware/firmware.elf").touch()
    monkeypatch.setattr(framework, "measure", lambda _: Sizes(9000, 8900, 0, 0, 100, 3000))
    log = "RAM:   [========= ]  98.6% (used 129184 bytes from 131072 bytes)\n"
    with pytest.raises(FitError, match="160 B too small for 129184 B and a stack of 2048 B"):
        framework.keep(tmp_path, tmp_path / "ready", log, board)


def test_commands_about_board_files_refuse_it() -> None:
    result = CliRunner().invoke(cli, "boards --explain pio:pico")
    assert result.exit_code == 2 and "pio:pico has no board file" in result.output


@pytest.mark.parametrize(("name", "patient"), [("pico", True), ("stm32f405", False)])
def test_the_port_of_a_board_that_is_its_own_usb_device_may_come_late(
    name: str, patient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [PortError("gone"), PortError("gone")]
    session = object()

    def connect(*_: object, **__: object) -> object:
        if faults:
            raise faults.pop()
        return session

    monkeypatch.setattr(target, "connect", connect)
    monkeypatch.setattr(target, "_RETRY_S", 0.0)
    board = load_board(f"pio:{name}" if patient else name)
    firmware = Firmware(Path("firmware.elf"), board, 1, False, Sizes(0, 0, 0, 0, 0, 0))
    if patient:
        opened = target._session_after_flashing(target.Target(board), "/dev/ttyACM0", firmware)
        assert opened is session  # type: ignore[comparison-overlap]
        return
    with pytest.raises(PortError, match="gone"):
        target._session_after_flashing(target.Target(board), "/dev/ttyACM0", firmware)


def test_a_platform_that_cannot_be_installed_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firmware_build, "run_logged", lambda *_: (1, "Installing all\nHTTPClientError: \n"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        BuildError, match=r"registry did not answer.*`pio pkg install -g -p all`.*--library-only"
    ):
        build_firmware(load_board("pio:nucleo_f446re"), {"model.c": "", "main.c": ""}, [], emulate=False)
