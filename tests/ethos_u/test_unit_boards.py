"""Chips with an Ethos-U: their facts, and libraries that call the unit at the chip's address."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from models import quantised_convolutions
from unit_registers import MEMORY, Unit

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.emulated import emulated_twin
from mcudeploy.costs.estimate import board_costs
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain.project import unit_files
from tests import reports
from tests.weekly import sample

pytest.importorskip("ethosu", reason="Vela is not installed: pip install mcudeploy[ethosu]")
needs_compiler = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed"
)
CHIPS = ("grove-vision-ai-v2", "alif-e7", "ra8p1", "psoc-e84", "m55m1")
OPTIONS = Options(split=False, name="net")
MAIN = """#include "net_selftest.h"
int main(void) { return (int)net_selftest(); }
void _exit(int code) { (void)code; for (;;) { } }
"""
SIZE = 0x80000
CONFIGS = {64: 6, 128: 7, 256: 8}


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quantised_convolutions(tmp_path_factory.mktemp("model") / "small.onnx")


def linked(board: Board, library: Path, flags: tuple[str, ...], *options: str) -> Path:
    """The program of a library, its driver of the unit, and a small main()."""
    (library / "main.c").write_text(MAIN)
    sources = [*library.glob("src/*.c"), library / "npu" / "ethos_u_driver.c", library / "npu" / "cache.c"]
    include = [f"-I{library / folder}" for folder in ("include", "src", "npu")]
    strict = ["-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
    target = ["-nostartfiles", "-Wl,-e,main", "-Wl,--gc-sections", "-ffunction-sections", *options]
    elf = library / f"{board.name}.elf"
    gcc = ["arm-none-eabi-gcc", *flags, *strict, *include, *target, *sources, library / "main.c", "-lm"]
    subprocess.run([*gcc, "-o", elf], check=True)
    return elf


def test_check_plans_for_a_chip(network: Path) -> None:
    report = reports.check_model(network, load_board("m55m1"), Options(time_limit=0.2))
    assert report["supported"] and not report["notes"]


@needs_compiler
@pytest.mark.parametrize("name", sample(CHIPS, 3))
def test_a_library_for_a_chip_links_with_its_driver(name: str, network: Path, tmp_path: Path) -> None:
    board = load_board(name)
    assert board.npu is not None and board.npu.base is not None
    report = reports.build_models([network], board, OPTIONS, tmp_path)
    assert report["verified"] and list(tmp_path.glob("src/*_npu.c"))
    text = (tmp_path / "npu" / "mcud_board.h").read_text()
    assert f"#define MCUD_NPU_BASE {board.npu.base:#010x}u" in text and "MCUD_NPU_CACHED 1" in text
    assert f"#define MCUD_NPU_ACCESS {1 if board.npu.secure else 3}u" in text
    assert f"MCUD_NPU_IRQ {board.npu.irq}u" in text or board.npu.irq is None
    assert linked(board, tmp_path, board.cpu_flags).is_file()


@needs_compiler
def test_the_selftest_of_a_library_passes_on_a_chip_of_unicorn(
    network: Path, tmp_path: Path, model: ctypes.CDLL
) -> None:
    """As code of a Cortex-M33, since Unicorn has no vectors; the unit's registers lead to the model."""
    unicorn = pytest.importorskip("unicorn")
    arm = pytest.importorskip("unicorn.arm_const")
    board = load_board("psoc-e84")
    assert board.npu is not None and board.npu.base is not None
    reports.build_models([network], board, OPTIONS, tmp_path)
    flags = ("-mcpu=cortex-m33", "-mthumb", "-mfloat-abi=soft")
    elf, image = linked(board, tmp_path, flags, f"-Wl,-Ttext={MEMORY:#x}"), tmp_path / "image.bin"
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", elf, image], check=True)
    header = subprocess.run(["arm-none-eabi-readelf", "-h", elf], check=True, capture_output=True, text=True)
    (entry,) = (line.split()[-1] for line in header.stdout.splitlines() if "Entry point" in line)
    memory = np.zeros(2 * SIZE, np.uint8)
    memory = memory[-memory.ctypes.data % 4096 :][:SIZE]
    data = np.frombuffer(image.read_bytes(), np.uint8)
    memory[: data.size] = data
    unit = Unit(model, memory, config=CONFIGS[board.npu.macs])
    core = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    core.mem_map_ptr(MEMORY, SIZE, unicorn.UC_PROT_ALL, memory.ctypes.data)
    core.mmio_map(board.npu.base, 0x1000, unit.read, None, unit.write, None)
    core.mem_map(0xE000_E000, 0x1000)
    core.reg_write(arm.UC_ARM_REG_SP, MEMORY + SIZE - 16)
    core.reg_write(arm.UC_ARM_REG_LR, MEMORY + SIZE - 15)
    core.emu_start(int(entry, 16) | 1, MEMORY + SIZE - 16, timeout=60_000_000)
    assert core.reg_read(arm.UC_ARM_REG_PC) == MEMORY + SIZE - 16
    assert core.reg_read(arm.UC_ARM_REG_R0) == 0
    assert [value for offset, value in unit.writes if offset == 0x0C] == [3]
    assert [value for offset, value in unit.writes if offset == 0x08].count(1) >= 2


def test_a_board_with_a_model_of_the_unit_has_no_driver_in_its_libraries() -> None:
    assert not unit_files(load_board("mps3-an547-u55")) and not unit_files(load_board("mps3-an547"))


@pytest.mark.parametrize("name", CHIPS)
def test_a_chip_is_emulated_with_its_multipliers(name: str) -> None:
    board = load_board(name)
    twin = emulated_twin(board)
    assert twin is not None and twin.npu is not None and board.npu is not None
    assert twin.isa is board.isa and twin.npu.base is None
    assert twin.npu.clock_hz == board.npu.clock_hz


@pytest.mark.weekly
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
@pytest.mark.parametrize("name", CHIPS)
def test_a_run_of_a_chip_is_verified_in_the_emulator(name: str, network: Path) -> None:
    twin = emulated_twin(load_board(name))
    assert twin is not None
    report = reports.run_model(network, Target(twin, emulate=True), OPTIONS, inputs=[], expected=[])
    assert report["verified"]


def test_cycles_of_a_slower_unit_take_longer() -> None:
    board = load_board("ra8p1")
    assert board.npu is not None
    alike = board.model_copy(update={"npu": board.npu.model_copy(update={"clock_hz": None})})
    slow, fast = (board_costs(it, "cycles").kernels["conv2d_s8_npu"] for it in (board, alike))
    assert slow == {**fast, "unit_cycles": 2 * fast["unit_cycles"]}


def test_without_vela_chips_are_compared_without_their_units(
    network: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    boards = [load_board("ra8p1"), load_board("nrf52840")]
    with_unit = reports.fit_model(network, boards, replace(OPTIONS, name=None))
    monkeypatch.setitem(sys.modules, "ethosu", None)
    without = reports.fit_model(network, boards, replace(OPTIONS, name=None))
    assert "compared without it: pip install ethos-u-vela" in caplog.text
    assert len(with_unit["boards"]) == len(without["boards"]) == 2
