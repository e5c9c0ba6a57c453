"""The devices of `tune`: emulators by number, boards by their ports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from click.testing import Result

import mcudeploy
from mcudeploy.device.target import Target
from tests.cli.conftest import Deploy

Invoke = Callable[[str], Result]
TUNE = "tune m.onnx --board tiny --json"


@pytest.fixture
def targets(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> list[Target]:
    """Those that `tune` was called with last."""
    seen: list[Target] = []

    def tune_model(_: Any, targets: tuple[Target, ...], *__: Any) -> tuple[None, dict[str, Any]]:
        seen[:] = targets
        return None, {}

    tuning = ModuleType("mcudeploy.tuning")
    tuning.tune_model = tune_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, tuning.__name__, tuning)
    monkeypatch.setattr(mcudeploy, "tuning", tuning, raising=False)
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


def test_settings_wait_for_the_devices_that_they_are_for(
    mcudeploy_command: Invoke, targets: list[Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCUDEPLOY_PORT", "/dev/ttyUSB1")
    monkeypatch.setenv("MCUDEPLOY_MEASURERS", "2")
    assert mcudeploy_command(TUNE).exit_code == 0
    assert [target.port for target in targets] == ["/dev/ttyUSB1"]
    assert mcudeploy_command(f"{TUNE} --emulate").exit_code == 0
    assert [target.port for target in targets] == [None, None]
