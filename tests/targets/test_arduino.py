"""`pio:<id>`: the measurer as a sketch, on emulated boards with an Arduino core, by PlatformIO's upload."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcudeploy.cli.main import cli
from tests.networks.small import small_model

from .arduino_board import Desk, install

BOARDS: dict[str, dict[str, object]] = {
    "bbcmicrobit": {"mcu": "nrf51822", "cpu": "cortex-m0", "variant": "microbit"},
    "Virt_32.b": {"mcu": "virt", "march": "rv32imafc", "variant": "riscv32-virt"},
}


def test_a_sketch_is_built_uploaded_and_verified(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "core", BOARDS)
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(tmp_path / "core"))
    model = small_model(tmp_path / "small.onnx")
    for name, build in BOARDS.items():
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setenv("SHIM_DESK", str(folder))
        with Desk(str(build["variant"]), folder) as desk:
            line = f"run {model} --board pio:{name} --port {desk.url} --no-split --json"
            result = CliRunner().invoke(cli, line)
            assert result.exit_code == 0, result.output
            assert (folder / "port").read_text() == desk.url
        report = json.loads(result.stdout)
        assert report["board"] == f"pio:{name}"
        assert report["verified"] and report["elements"] == 144
        assert report["latency"]["unit"] == "us" and report["latency"]["value"] > 0
        assert 0 < report["stack_bytes"] < 2048 < report["flash_bytes"]
        assert report["arena_bytes"] < report["static_ram_bytes"] < 4096  # as PlatformIO states it
