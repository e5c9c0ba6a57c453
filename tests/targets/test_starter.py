"""`init`: the project builds with PlatformIO as it is written, and its main() computes the same bits."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from models import fully_connected

from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.facts import Framework
from mcudeploy.cli.main import cli
from mcudeploy.codegen.render import LibraryModel
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import UsageError
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain.emulator import qemu_command
from mcudeploy.toolchain.firmware_build import platformio_environment
from mcudeploy.toolchain.starter import require_start, starter_files

BOARD = "mps2-an386"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("init")
    fully_connected(folder / "my net.onnx", (8, 6, 1), quantised=True)
    done = init(folder)
    assert done.exit_code == 0, done.stderr
    assert "its README.md says how to go on" in done.stdout
    return folder / "project"


def init(folder: Path, *more: str) -> Result:
    words = ["init", folder / "project", folder / "my net.onnx", "--board", BOARD, "--time-limit", "1", *more]
    return CliRunner().invoke(cli, list(map(str, words)))


def test_it_builds_and_runs(project: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "platformio", "run", "-d", str(project)]
    done = subprocess.run(
        command,
        env=platformio_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "warning:" not in done.stdout, done.stdout
    elf = project / ".pio" / "build" / BOARD / "firmware.elf"
    machine = qemu_command(load_board(BOARD), elf, ("-serial", "stdio"))
    ran = subprocess.run(
        machine, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0
    assert "my_net: self-test passed, 0 outputs differ" in ran.stdout
    assert re.search(r"my_net: the output is -?\d+; a run took \d+ us", ran.stdout)
    assert " ".join(machine[:3]) in (project / "README.md").read_text()


def test_its_folder_has_the_options_of_every_command(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    planned = CliRunner().invoke(cli, ["plan", "model/my_net.onnx", "--json", "--time-limit", "1"])
    assert planned.exit_code == 0 and f'"board": "{BOARD}"' in planned.stdout
    again = ["build", "model/my_net.onnx", "--for", "platformio", "--name", "my_net", "-o", "lib/my_net"]
    assert CliRunner().invoke(cli, [*again, "--time-limit", "1"]).exit_code == 0


def test_what_the_user_has_changed_stays(project: Path) -> None:
    main = project / "src" / "main.c"
    text = main.read_text()
    main.write_text("int main(void) { return 0; }\n")
    done = init(project.parent)
    assert done.exit_code == 2 and "src/main.c" in done.stderr
    assert init(project.parent, "--force").exit_code == 0
    assert main.read_text() == text


def test_a_board_of_platformio_gets_a_sketch(tmp_path: Path) -> None:
    framework = Framework(name="arduino", platform="espressif32", board="esp32dev")
    board = load_board("stm32f405").model_copy(
        update={"name": "pio:esp32dev", "framework": framework, "hal": ()}
    )
    require_start(board)
    other = {"framework": framework.model_copy(update={"name": "espidf"})}
    with pytest.raises(UsageError, match="build --for esp-idf"):
        require_start(board.model_copy(update=other))
    path = fully_connected(tmp_path / "m.onnx", (8, 4), quantised=True)
    deployment = plan_model(path, load_board("stm32f405"), Options(time_limit=0.5))
    member = LibraryModel(deployment.program, deployment.plan, deployment.source)
    files = starter_files(member, "m", board, "m.onnx", emulate=False)
    assert "board = esp32dev\nframework = arduino\n" in str(files["platformio.ini"])
    assert "\n#include <Arduino.h>\n" in str(files["src/main.cpp"])
    assert 'board = "pio:esp32dev"' in str(files["mcudeploy.toml"])
    assert "pio run -t upload -t monitor" in str(files["README.md"])


@pytest.mark.parametrize(("board", "message"), [("host", "--for cmake"), ("esp32s3", "--board pio:ID")])
def test_boards_without_start_up_code_are_refused(board: str, message: str, tmp_path: Path) -> None:
    fully_connected(tmp_path / "m.onnx", (8, 4), quantised=True)
    words = ["init", str(tmp_path / "p"), str(tmp_path / "m.onnx"), "--board", board]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2 and message in done.stderr and not (tmp_path / "p").exists()
