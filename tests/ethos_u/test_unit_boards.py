"""Chips with an Ethos-U: their facts, and libraries that call the unit at the chip's address."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from models import quantised_convolutions
from unit_registers import MEMORY, Unit

from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.emulated import emulated_twin
from mcudeploy.costs.estimate import board_costs
from mcudeploy.device.target import Target
from mcudeploy.extensions.ethos_u.unit_blocks import UNITS
from mcudeploy.ir.isa import Isa
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain.board_texts import unit_files
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
CORE_MAIN = """#include "ethosu_driver.h"
#include "net_selftest.h"
static struct ethosu_driver unit;
int ethosu_semaphore_take(void *semaphore, uint64_t patience)
{
    (void)semaphore, (void)patience;
    if (unit.job.state == ETHOSU_JOB_RUNNING) { /* no interrupt comes */
        while ((*(volatile uint32_t *)(UNIT_BASE + 4u) & 2u) == 0u) { }
        ethosu_irq_handler(&unit);
    }
    return 0;
}
int main(void) { return ethosu_init(&unit, (void *)UNIT_BASE, 0, 0, 0, 1) != 0 ? 99 : (int)net_selftest(); }
void _exit(int code) { (void)code; for (;;) { } }
"""
CORE_DRIVER, CMSIS = (os.environ.get(name, "") for name in ("ETHOSU_CORE_DRIVER", "CMSIS_CORE"))
SIZE, END = 0x80000, MEMORY + 0x80000 - 16
M33 = ("-mcpu=cortex-m33", "-mthumb", "-mfloat-abi=soft", f"-Wl,-Ttext={MEMORY:#x}")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quantised_convolutions(tmp_path_factory.mktemp("model") / "small.onnx")


def linked(library: Path, flags: Sequence[str], main: str = MAIN, others: Sequence[Path | str] = ()) -> Path:
    """The program of a library, a small main(), and a driver of its unit, by default the bare-metal one."""
    (library / "main.c").write_text(main)
    drivers = others or [library / "npu" / "ethos_u_driver.c", library / "npu" / "cache.c"]
    include = [f"-I{library / folder}" for folder in ("include", "src", "npu")]
    strict = ["-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
    target = ["-nostartfiles", "-Wl,-e,main", "-Wl,--gc-sections", "-ffunction-sections"]
    gcc = ["arm-none-eabi-gcc", *flags, *strict, *include, *target, *library.glob("src/*.c"), *drivers]
    elf = library / "program.elf"
    subprocess.run([*gcc, library / "main.c", "-lm", "-o", elf], check=True)
    return elf


def result_in_unicorn(elf: Path, base: int, model: ctypes.CDLL) -> tuple[int, list[tuple[int, int]]]:
    """The result of main(), and the writes to the unit's registers, which lead to the model of 128 MACs."""
    unicorn = pytest.importorskip("unicorn")
    arm = pytest.importorskip("unicorn.arm_const")
    image = elf.with_suffix(".bin")
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", elf, image], check=True)
    header = subprocess.run(["arm-none-eabi-readelf", "-h", elf], check=True, capture_output=True, text=True)
    (entry,) = (line.split()[-1] for line in header.stdout.splitlines() if "Entry point" in line)
    memory = np.zeros(2 * SIZE, np.uint8)
    memory = memory[-memory.ctypes.data % 4096 :][:SIZE]
    data = np.frombuffer(image.read_bytes(), np.uint8)
    memory[: data.size] = data
    unit = Unit(model, memory)
    core = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    core.mem_map_ptr(MEMORY, SIZE, unicorn.UC_PROT_ALL, memory.ctypes.data)
    core.mmio_map(base, 0x1000, unit.read, None, unit.write, None)
    core.mem_map(0xE000_E000, 0x1000)
    core.reg_write(arm.UC_ARM_REG_SP, END)
    core.reg_write(arm.UC_ARM_REG_LR, END | 1)
    core.emu_start(int(entry, 16) | 1, END, timeout=60_000_000)
    assert core.reg_read(arm.UC_ARM_REG_PC) == END
    return core.reg_read(arm.UC_ARM_REG_R0), unit.writes


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
    assert linked(tmp_path, board.cpu_flags).is_file()


@needs_compiler
def test_the_selftest_of_a_library_passes_on_a_chip_of_unicorn(
    network: Path, tmp_path: Path, model: ctypes.CDLL
) -> None:
    """As code of a Cortex-M33, since Unicorn has no vectors."""
    board = load_board("psoc-e84")
    assert board.npu is not None and board.npu.base is not None
    reports.build_models([network], board, OPTIONS, tmp_path)
    code, writes = result_in_unicorn(linked(tmp_path, M33), board.npu.base, model)
    assert code == 0
    assert [value for offset, value in writes if offset == 0x0C] == [3]
    assert [value for offset, value in writes if offset == 0x08].count(1) == 1  # one stream of all steps


@needs_compiler
@pytest.mark.skipif(not (CORE_DRIVER and CMSIS), reason="ETHOSU_CORE_DRIVER and CMSIS_CORE name no folders")
def test_the_selftest_passes_by_arms_core_driver(network: Path, tmp_path: Path, model: ctypes.CDLL) -> None:
    """The folders of ethos-u-core-driver, and of the headers of CMSIS's core."""
    board = load_board("psoc-e84")
    assert board.npu is not None and board.npu.base is not None
    reports.build_models([network], board, OPTIONS, tmp_path)
    driver = Path(CORE_DRIVER)
    headers = [f"-I{folder}" for folder in (driver / "include", driver / "src", CMSIS)]
    macros = ["-DETHOSU_ARCH=u55", "-DETHOSU55", "-DETHOSU_LOG_ENABLE=0"]
    objects = []
    for name in ("ethosu_driver", "ethosu_device_u55_u65", "ethosu_pmu"):
        objects.append(tmp_path / f"{name}.o")
        gcc = ["arm-none-eabi-gcc", *M33[:-1], "-std=gnu11", "-O2", *macros, *headers, "-c"]
        subprocess.run([*gcc, driver / "src" / f"{name}.c", "-o", objects[-1]], check=True)
    main = CORE_MAIN.replace("UNIT_BASE", f"{board.npu.base:#x}u")
    own = [*headers[:1], tmp_path / "npu" / "ethos_u_driver_core.c", "--specs=nosys.specs", *objects]
    code, writes = result_in_unicorn(linked(tmp_path, M33, main, own), board.npu.base, model)
    assert code == 0 and [value for offset, value in writes if offset == 0x08].count(1) == 1


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


def test_an_ethos_u65_has_the_streams_of_an_ethos_u55_of_256() -> None:
    pytest.importorskip("ethosu")
    from ethosu.vela.architecture_features import Accelerator, create_default_arch  # noqa: PLC0415

    names = "ethos-u65-256", "ethos-u55-256"
    of_vela = [create_default_arch(Accelerator(name)).config for name in names]
    assert of_vela[0] == of_vela[1] and UNITS["ethos-u65-256"] == UNITS["ethos-u55-256"]
    board = load_board("alif-e7")
    assert board.npu is not None
    facts = board.model_dump(by_alias=True, exclude_unset=True)
    large = type(board).model_validate({**facts, "npu": {**facts["npu"], "kind": "ethos-u65"}})
    assert large.isa is Isa.U65_256
    assert "#define MCUD_NPU_PRODUCT 1u" in unit_files(large)["npu/mcud_board.h"]
    with pytest.raises(ValueError, match="with 512 it has two cores"):
        type(board).model_validate({**facts, "npu": {"kind": "ethos-u65", "macs": 128}})


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
