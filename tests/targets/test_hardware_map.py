"""Twister's hardware maps: which entries are a board's, and what is written into one."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import BoardNotFoundError, ConfigError, UsageError
from mcudeploy.toolchain.attached import AttachedDevice
from mcudeploy.toolchain.hardware_map import MappedBoard, entries_for, write_map

MAP = """
- {connected: true, id: 066DFF48, platform: stm32f405, product: ST, runner: openocd, serial: /dev/ttyACM0}
- {connected: true, id: 066DFF49, platform: feather/stm32f405xx, runner: jlink, serial: /dev/ttyACM1}
- {connected: true, id: '1', probe_id: P1, platform: stm32f405, runner: pyocd, serial: 'rfc2217://lab1:5001'}
- {connected: false, id: '2', platform: stm32f405, serial: /dev/ttyACM3}
- {connected: true, id: '3', platform: stm32f405, serial: null}
- {connected: true, id: '4', platform: nucleo_f411re, runner: openocd, serial: /dev/ttyACM4}
- {connected: true, id: unknown, platform: unknown, product: STM32 STLink, serial: /dev/ttyACM5}
- {connected: true, id: '6', platform: bbc_microbit, serial: /dev/ttyACM6}
- {connected: true, id: '7', platform: bbc_microbit_v2, serial: /dev/ttyACM7}
- {connected: true, id: '8', platform: unknown, product: Something, serial: /dev/ttyACM8}
- {connected: true, available: false, id: '9', platform: rpi_pico/rp2040, serial: /dev/ttyACM9}
- {connected: true, id: 'a', platform: nrf52840dk/nrf52840, runner: nrfjprog, serial: /dev/ttyACM10}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "map.yaml").write_text(MAP)
    return tmp_path / "map.yaml"


@pytest.mark.parametrize(
    ("board", "ports"),
    [("stm32f405", ["/dev/ttyACM0", "/dev/ttyACM1", "rfc2217://lab1:5001", "/dev/ttyACM5"]),
     ("stm32f411", ["/dev/ttyACM4", "/dev/ttyACM5"]),
     ("microbit", ["/dev/ttyACM6"]),
     ("nrf52840", ["/dev/ttyACM10"])],
)  # fmt: skip
def test_the_entries_of_a_board(board: str, ports: list[str], path: Path) -> None:
    assert [entry.port for entry in entries_for(load_board(board), path)] == ports


def test_what_an_entry_says(path: Path) -> None:
    first, second, third, last = entries_for(load_board("stm32f405"), path)
    assert first == MappedBoard("stm32f405", "/dev/ttyACM0", "066DFF48", "openocd")
    assert second.flasher is None  # jlink is not a flasher of ours
    assert (third.probe, third.flasher) == ("P1", "pyocd")
    assert last.probe is None


def test_none_of_a_kind(path: Path) -> None:
    with pytest.raises(BoardNotFoundError, match=r"no connected rp2040 .*bbc_microbit, .*`platform: rp2040`"):
        entries_for(load_board("rp2040"), path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- [", "is not YAML"),
        ("a: 1", "is not a hardware map"),
        ("- 1", "is not a hardware map"),
        ("[" * 5000 + "]" * 5000, "nests values more than 32 levels deep"),
        ("{a: " * 3000, "nests values more than 32 levels deep"),
        ("a: !!timestamp x", "a value does not fit its tag"),
        ("!!python/object:os.system x", "is not YAML"),
        (b"\xff\xfe\xff".decode("latin1"), "is no"),
        ("- &a 1\n" + "- *a\n" * 33, r"33 aliases \(\*name\), the limit is 32"),
        ("- &a {connected: true, platform: stm32f405, serial: X}\n- *a", "names X twice"),
    ],
)
def test_what_is_not_a_map(content: str, message: str, path: Path) -> None:
    path.write_bytes(content.encode("latin1"))
    with pytest.raises(ConfigError, match=message):
        entries_for(load_board("stm32f405"), path)
    with pytest.raises(ConfigError, match="cannot be read"):
        entries_for(load_board("stm32f405"), path.with_name("none"))


def test_a_map_is_written_and_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "map.yaml"
    probe = AttachedDevice(
        "ST-Link/V2-1", "probe", "0483:374b", "066D", "/dev/ttyACM0", True, ("stm32f405", "b")
    )
    micro = AttachedDevice("DAPLink", "probe", "0d28:0204", "9904", "/dev/ttyACM1", True, ("microbit",))
    attached = [probe, micro, AttachedDevice("ST-Link/V2", "probe", "0483:3748", "1"),
                AttachedDevice("ttyS0", "serial port", port="/dev/ttyS0")]  # fmt: skip
    write_map(path, attached)
    rows = yaml.safe_load(path.read_text())
    assert [(row["platform"], row["serial"], row["id"], row["connected"]) for row in rows] == [
        ("unknown", "/dev/ttyACM0", "066D", True), ("microbit", "/dev/ttyACM1", "9904", True),
    ]  # fmt: skip
    assert rows[1]["runner"] == load_board("microbit").flashers[0].tool
    remote = {"platform": "stm32f405", "serial": "socket://lab:1", "connected": True, "notes": "mine"}
    path.write_text(
        yaml.safe_dump([{**rows[0], "platform": "stm32f405", "fixtures": ["x"]}, rows[1], remote])
    )
    moved = AttachedDevice(
        "ST-Link/V2-1", "probe", "0483:374b", "066D", "/dev/ttyACM7", True, ("stm32f405", "b")
    )
    write_map(path, [moved])
    first, second, third = yaml.safe_load(path.read_text())
    assert (first["platform"], first["serial"], first["fixtures"]) == ("stm32f405", "/dev/ttyACM7", ["x"])
    assert (second["connected"], second["serial"]) == (False, None) and third == remote
    assert [it.port for it in entries_for(load_board("stm32f405"), path)] == [
        "/dev/ttyACM7",
        "socket://lab:1",
    ]


def test_without_pyyaml_the_error_names_the_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"pip install pyyaml"):
        entries_for(load_board("stm32f405"), path)
