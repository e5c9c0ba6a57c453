"""The devices of `tune`: emulators by number, boards by their ports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import Result

from mcudeploy import commands
from mcudeploy.common.errors import ProtocolError
from mcudeploy.device.target import Target
from tests.cli.conftest import Deploy

Invoke = Callable[[str], Result]
TUNE = "tune m.onnx --board tiny --json"


@pytest.fixture
def targets(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> list[Target]:
    """Those that `tune` was called with last."""
    seen: list[Target] = []

    def tune_model(_: Any, targets: tuple[Target, ...], *__: Any) -> dict[str, Any]:
        seen[:] = targets
        return {}

    tuning = ModuleType("mcudeploy.commands.tune")
    tuning.tune_model = tune_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, tuning.__name__, tuning)
    monkeypatch.setattr(commands, "tune", tuning, raising=False)
    return seen


@pytest.mark.parametrize(
    ("line", "devices"),
    [
        ("", [(None, False)]),
        ("--measurers 1", [(None, False)]),
        ("--port A", [("A", False)]),
        ("--port A --port B", [("A", False), ("B", False)]),
        ("--port A --port B --measurers 2", [("A", False), ("B", False)]),
        ("--emulate", [(None, True)]),
        ("--emulate --measurers 3", [(None, True)] * 3),
    ],
)
def test_devices_by_options(
    line: str, devices: list[tuple[str | None, bool]], mcudeploy_command: Invoke, targets: list[Target]
) -> None:
    assert mcudeploy_command(f"{TUNE} {line}").exit_code == 0
    assert [(target.port, target.emulate) for target in targets] == devices


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--measurers 2", "give --port 2 times"),
        ("--port A --measurers 2", "give --port 2 times"),
        ("--port A --port A", "--port A is given twice"),
        ("--measurers 0", "0 is not in the range"),
        ("--emulate --port A", "tiny runs in the emulator"),
    ],
)
def test_what_cannot_be(line: str, message: str, mcudeploy_command: Invoke, targets: list[Target]) -> None:
    result = mcudeploy_command(f"{TUNE} {line}")
    assert result.exit_code == 2 and message in result.stderr and not targets


@pytest.mark.parametrize(
    ("line", "setting", "patience"),
    [("", "", 1.0), ("--patience 20", "", 20.0), ("", "7.5", 7.5), ("--emulate --patience 3", "7.5", 3.0)],
)
def test_patience(
    line: str,
    setting: str,
    patience: float,
    mcudeploy_command: Invoke,
    targets: list[Target],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCUDEPLOY_PATIENCE", setting)
    assert mcudeploy_command(f"{TUNE} {line}").exit_code == 0
    assert [target.board.patience for target in targets] == [patience]


def test_patience_has_bounds(mcudeploy_command: Invoke, targets: list[Target]) -> None:
    for factor in ("0", "0.5", "1001", "nan", "x"):
        assert mcudeploy_command(f"{TUNE} --patience {factor}").exit_code == 2 and not targets


def test_settings_wait_for_the_devices_that_they_are_for(
    mcudeploy_command: Invoke, targets: list[Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCUDEPLOY_PORT", "/dev/ttyUSB1")
    monkeypatch.setenv("MCUDEPLOY_MEASURERS", "2")
    assert mcudeploy_command(TUNE).exit_code == 0
    assert [target.port for target in targets] == ["/dev/ttyUSB1"]
    assert mcudeploy_command(f"{TUNE} --emulate").exit_code == 0
    assert [target.port for target in targets] == [None, None]


def test_a_hardware_map_names_the_boards(
    mcudeploy_command: Invoke, targets: list[Target], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(
        "".join(f"- {{connected: true, platform: tiny, serial: {port}, id: S{port}}}\n" for port in "AB")
    )
    line = f"{TUNE} --hardware-map {path}"
    assert mcudeploy_command(line).exit_code == 0
    assert [(target.port, target.probe) for target in targets] == [("A", "SA"), ("B", "SB")]
    assert mcudeploy_command(f"{line} --measurers 1").exit_code == 0
    assert [target.port for target in targets] == ["A"]
    targets.clear()
    for extra, message in [
        ("--port C", "exclude each other"),
        ("--measurers 3", "has 2 of tiny"),
        ("--probe X", "--probe is for one board"),
        ("--emulate", "--hardware-map names a real board's hardware-map; tiny runs in the emulator"),
    ]:
        result = mcudeploy_command(f"{line} {extra}")
        assert result.exit_code == 2 and message in result.stderr and not targets
    monkeypatch.setenv("MCUDEPLOY_HARDWARE_MAP", str(path))
    assert mcudeploy_command(TUNE).exit_code == 0 and len(targets) == 2
    assert mcudeploy_command(f"{TUNE} --port C").exit_code == 0
    assert [target.port for target in targets] == ["C"]
    assert mcudeploy_command(f"{TUNE} --emulate").exit_code == 0 and targets[0].port is None


@pytest.mark.parametrize("ending", [None, KeyboardInterrupt, ProtocolError])
def test_places_are_released_when_the_command_ends(
    ending: type[BaseException] | None,
    mcudeploy_command: Invoke,
    targets: list[Target],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held: list[str] = []

    @contextmanager
    def acquired(place: str) -> Iterator[str]:
        held.append(place)
        try:
            yield f"socket://lab:{len(held)}"
        finally:
            held.remove(place)

    def tune_model(_: Any, given: tuple[Target, ...], *__: Any) -> dict[str, Any]:
        targets[:] = given
        assert held == ["a", "b"]
        if ending is not None:
            raise ending("it ends")
        return {}

    monkeypatch.setattr("mcudeploy.device.labgrid.acquired", acquired)
    monkeypatch.setattr(sys.modules["mcudeploy.commands.tune"], "tune_model", tune_model)
    code = mcudeploy_command(f"{TUNE} --port labgrid://a --port labgrid://b").exit_code
    assert code == {None: 0, KeyboardInterrupt: 130, ProtocolError: 10}[ending]
    assert [target.port for target in targets] == ["socket://lab:1", "socket://lab:2"] and not held
