"""A working directory full of traps: no command runs any of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mcudeploy.boards import platformio
from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.help import leaves
from mcudeploy.cli.main import cli
from mcudeploy.common.resources import resource_dir
from mcudeploy.toolchain import attached
from tests.networks.decoder import Sizes, decoder
from tests.networks.onnx_files import save
from tests.networks.small import classifier, images
from tests.schedule.test_plaingraph import TRAINING
from tests.text.byte_tokenizer import TOKENS, save_byte_tokenizer

PROGRAMS = (
    *(
        "cc",
        "gcc",
        "clang",
        "as",
        "ld",
        "sh",
        "bash",
        "cp",
        "python",
        "python3",
        "pio",
        "scons",
        "make",
        "git",
    ),
    *(f"arm-none-eabi-{it}" for it in ("gcc", "gcc-ar", "as", "ld", "objcopy", "objdump", "size")),
    *("qemu-system-arm", "qemu-system-riscv32", "gdb-multiarch", "openocd", "pyocd", "probe-rs", "esptool"),
    *("esptool.py", "picotool", "st-flash", "st-info", "dfu-util", "labgrid-client", "cmake", "ssh", "git"),
)
MODULES = (
    *("platformio", "pyocd_user", "sitecustomize", "usercustomize", "conftest", "numpy", "onnx", "json"),
    *("serial", "SCons", "onnxruntime", "yaml", "click", "rich", "numba", "ctypes", "hostile"),
)
OPENOCD = ("openocd.cfg", "interface/stlink.cfg", "interface/cmsis-dap.cfg", "target/stm32f4x.cfg")
VISITS = {
    "boards": "boards --explain ./evil.toml",
    "devices": "devices",
    "doctor": "doctor --board ./evil.toml",
    "frontend": "frontend micro-speech -o front.tflite",
    "fit": "fit m.onnx --boards stm32f405,./evil.toml",
    "check": "check m.onnx",
    "plan": "plan m.onnx --no-split",
    "quantize": "quantize m.onnx --data x.npy -o q.onnx",
    "gate": "gate budgets.toml",
    "diff": "diff . .",
    "evaluate": "evaluate m.onnx --board mps2-an386 --data x.npy --no-split",
    "generate": "generate decoder.onnx --board mps2-an386 --tokenizer tokenizer.json --prompt a --tokens 1 "
    "--no-split --state key_0_out=key_0 --state value_0_out=value_0",
    "graph export": "graph export m.onnx -o exported.json",
    "graph order": "graph order graph.json -o order.json",
    "graph place": "graph place rectangles.csv --capacity 1M -o offsets.csv",
    "graph complete": "graph complete m.onnx --board ./evil.toml --cuts cuts.json -o completed.json",
    "graph pipeline": "graph pipeline m.onnx --topology units.toml",
    "run": "run m.onnx --board mps2-an386 --no-split",
    "measure": "measure m.onnx --board host --no-split",
    "tune": "tune m.onnx --board host --no-split --time-limit 1",
    "build": "build m.onnx --board ./evil.toml -o library --library-only --no-split",
    "init": "init project m.onnx --board stm32f405 --no-split",
    "adapt build": "adapt build m.onnx --board ./evil.toml --head prototypes --features a --classes 3 -o h",
    "train check": "train check m.onnx --boards stm32f405,./evil.toml",
    "train build": "train build m.onnx --board ./evil.toml -o steps --no-split",
    "train tune": "train tune m.onnx --board host --no-split --time-limit 1",
    "train run": "train run m.onnx --board mps2-an386 --data x.npy --labels y.npy --no-split",
    "parameters make": "parameters make m.onnx --library budgets.toml -o new.bin",
    "parameters push": "parameters push x.npy --port {port}",
    "parameters pull": "parameters pull -o pulled.bin --port {port}",
    "parameters diff": "parameters diff x.npy x.npy --library budgets.toml",
    "calibrate": "calibrate --board stm32f405 --flasher openocd --port {port}",
    "flash": "flash --board stm32f405 --flasher openocd --port {port}",
}
"""A command line of each command that gets to its tools: to QEMU, to OpenOCD without a probe."""
ENDS = {
    "flash": (9,),
    "calibrate": (9,),
    "diff": (2,),
    "doctor": (0, 1),
    "adapt build": (2,),
    "parameters make": (3,),
    "parameters push": (3,),
    "parameters pull": (10,),
    "parameters diff": (3,),
}


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder, and another in which each trap that is run leaves a file."""
    folder, canaries = tmp_path_factory.mktemp("cloned"), tmp_path_factory.mktemp("canaries")
    for name in PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\n/usr/bin/touch {canaries / name}\n")
        (folder / name).chmod(0o755)
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"open({str(canaries / name)!r} + '.py', 'w')\n")
    for name in OPENOCD:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"exec /usr/bin/touch {canaries / Path(name).name}\n")
    (folder / ".gdbinit").write_text(f"shell /usr/bin/touch {canaries / 'gdbinit'}\n")
    (folder / "pyocd.yaml").write_text("user_script: hostile.py\n")
    shutil.copy(folder / "pyocd.yaml", folder / ".pyocd.yml")
    (folder / ".numba_config.yaml").write_text(f"cache_dir: {canaries / 'numba'}\n")
    (folder / "platformio.ini").write_text(
        "[platformio]\ncore_dir = .\n[env:x]\nplatform = native\nextra_scripts = pre:hostile.py\n"
    )
    board = (resource_dir("boards") / "stm32f405.toml").read_text()
    board = board.replace('name = "stm32f405"', 'name = "evil"', 1).replace("family_default = true\n", "")
    board = board.replace('"memory.c"', '"./evil.c"', 1)
    board += '\n[[flasher]]\ntool = "command"\nline = ["./openocd"]\n'
    (folder / "evil.c").write_text('#include "evil.h"\n')
    (folder / "evil.toml").write_text(board)
    (folder / "mcudeploy.toml").write_text('board = "./evil.toml"\nflasher = "command"\n')
    classifier(folder / "m.onnx")
    sizes = Sizes(dim=8, layers=1, heads=2, kv_heads=1, vocabulary=TOKENS, context=8, hidden=8)
    save(decoder(sizes), folder, "decoder")
    save_byte_tokenizer(folder / "tokenizer.json")
    np.save(folder / "x.npy", images(4))
    np.save(folder / "y.npy", np.arange(4))
    (folder / "graph.json").write_text(json.dumps(TRAINING))
    (folder / "budgets.toml").write_text(
        '[[gate]]\nmodel = "m.onnx"\nboard = "mps2-an386"\noptions = {split = false}\n'
    )
    (folder / "rectangles.csv").write_text("id,lower,upper,size\na,0,3,4\nb,2,5,4\n")
    (folder / "cuts.json").write_text('{"splits": []}')
    (folder / "units.toml").write_text(
        'width = 2\nboard = "./evil.toml"\n[link]\nbytes_per_second = 1_000_000\n'
    )
    return folder, canaries


@pytest.fixture
def canaries(traps: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In the folder, with an environment that leads into it; afterwards nothing there was run."""
    folder, canaries = traps
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f":.:{folder}:{os.environ['PATH']}:")
    monkeypatch.setenv("PYTHONPATH", f":{folder}")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # as the command itself does
    for name in [name for name in os.environ if name.startswith("MCUDEPLOY_")]:
        monkeypatch.delenv(name)
    yield canaries
    names = sorted(it.name for it in canaries.iterdir())
    _clear(canaries)
    assert names == []


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_there_is_a_line_for_each_command() -> None:
    assert set(VISITS) == set(leaves(cli))


@pytest.mark.usefixtures("small_bench")
@pytest.mark.parametrize("name", VISITS)
def test_no_command_runs_what_lies_there(name: str, canaries: Path) -> None:
    master, port = os.openpty()
    result = CliRunner().invoke(cli, VISITS[name].format(port=os.ttyname(port)).split())
    os.close(master)
    os.close(port)
    assert result.exit_code in ENDS.get(name, (0,)), result.output


@pytest.mark.parametrize("line", ["run m.onnx", "flash", "tune m.onnx", "measure m.onnx", "init new m.onnx"])
def test_its_settings_name_no_program(line: str, canaries: Path) -> None:
    for extra in ("", " --emulate"):
        result = CliRunner().invoke(cli, (line + extra).split())
        assert (result.exit_code, "--trust-board" in result.output) == (3, True), result.output


def test_probes_and_registry_are_asked_elsewhere(canaries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = attached.AttachedDevice("probe", "probe", serial="066D")
    assert attached._chip_id(probe, [load_board("stm32f405")]) is None
    monkeypatch.setattr(platformio, "ASK_S", 5.0)
    assert CliRunner().invoke(cli, ["check", "m.onnx", "--board", "pio:nosuchboard"]).exit_code == 7


@pytest.mark.parametrize("line", ["mcudeploy doctor", "python -m mcudeploy plan m.onnx --no-split"])
def test_a_process_imports_nothing_from_there(line: str, canaries: Path) -> None:
    """Python itself looks for its sitecustomize where PYTHONPATH says: that is unset here."""
    program, *words = line.split()
    command = [str(Path(sys.executable).with_name(program)), *words]
    environment = {
        name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")
    }
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=120)
    assert done.returncode in (0, 1 if "doctor" in line else 0), done.stderr


def test_the_traps_are_real(traps: tuple[Path, Path]) -> None:
    """A tool that is started there runs the right files."""
    folder, canaries = traps
    commands = [
        ["./gcc"],
        [sys.executable, "-m", "platformio", "boards"],
        ["openocd", "-f", "interface/stlink.cfg", "-c", "exit"],
        [sys.executable, "-c", "import numpy"],
    ]
    for command in commands:
        subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=60)
    seen = {it.name for it in canaries.iterdir()}
    _clear(canaries)
    assert {"gcc", "platformio.py", "stlink.cfg", "numpy.py"} <= seen
