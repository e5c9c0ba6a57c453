"""The driver of an Ethos-U, as code of a Cortex-M33 in Unicorn, whose registers lead to the model."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from unit_registers import MEMORY, Unit
from vela_streams import SOURCES

pytest.importorskip("unicorn")

from unicorn import UC_ARCH_ARM, UC_MODE_MCLASS, UC_MODE_THUMB, Uc
from unicorn.arm_const import UC_ARM_REG_LR, UC_ARM_REG_R0, UC_ARM_REG_R1, UC_ARM_REG_R2, UC_ARM_REG_SP
from unicorn.unicorn_const import UC_PROT_ALL

pytestmark = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed"
)

CODE, UNIT, NVIC = 0x10000, 0x4810_2000, 0xE000_E000
SIZE = 0x10000
WORDS, REGIONS, FROM, TO, END = (MEMORY + 0x1000 * it for it in (1, 2, 3, 4, 5))
BYTES = 200
DONE, FAULT, TIMEOUT, NO_UNIT, UNALIGNED = 0, 7, 6, 8, 9
BUS_ERROR, BAD_COMMAND = 4, 16
COPY = [
    *(0x0000_0130, 0x4030, 0, 0x0001_0131, 0x4031, 0),  # from the start of region 0 to that of region 1
    *(0x4032, BYTES, 0x10, 0xFFFF_0000),
]
STUBS = """
#include <stdint.h>
void core_interrupts_off(void) { }
void core_interrupts_on(void) { }
void core_sleep(void) { }
void core_irq(uint32_t irq, int32_t on)
{
    *(volatile uint32_t *)(on ? 0xE000E100u : 0xE000E180u) = 1u << irq;
}
void mcud_cache_clean(const void *at, uint32_t bytes)
{
    *(volatile uint32_t *)0x48102F00u = bytes == 0u ? 0u : (uintptr_t)at;
}
void mcud_cache_invalidate(const void *at, uint32_t bytes)
{
    *(volatile uint32_t *)0x48102F04u = bytes == 0u ? 0u : (uintptr_t)at;
}
"""


@dataclass
class Machine:
    """A core with the driver, the unit and memory."""

    code: bytes
    entry: int
    unit: Unit

    def __post_init__(self) -> None:
        self.core = Uc(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS)
        self.core.mem_map(CODE, SIZE)
        self.core.mem_write(CODE, self.code)
        memory = self.unit.memory
        self.core.mem_map_ptr(MEMORY, memory.nbytes, UC_PROT_ALL, memory.ctypes.data)
        self.core.mmio_map(UNIT, 0x1000, self.unit.read, None, self.unit.write, None)
        self.core.mem_map(NVIC, 0x1000)

    def run(self, words: Sequence[int] = COPY, at: int = WORDS, payload: int = 0) -> int:
        """The code that the driver returns for a stream."""
        memory = self.unit.memory
        data = np.array(words, "<u4").view(np.uint8)
        memory[at - MEMORY :][: data.size] = data
        fields = [FROM, TO, *[0] * 6, 0x1000, 0x1000, *[0] * 6, 0b10 | payload << 8]
        facts = np.array(fields, "<u4").view(np.uint8)
        memory[REGIONS - MEMORY :][: facts.size] = facts
        self.core.reg_write(UC_ARM_REG_SP, MEMORY + SIZE)
        self.core.reg_write(UC_ARM_REG_LR, CODE + SIZE - 3)
        for register, value in zip(
            (UC_ARM_REG_R0, UC_ARM_REG_R1, UC_ARM_REG_R2), (at, len(words), REGIONS), strict=True
        ):
            self.core.reg_write(register, value)
        self.core.emu_start(self.entry | 1, CODE + SIZE - 4, timeout=20_000_000)
        return int(self.core.reg_read(UC_ARM_REG_R0))


@pytest.fixture(scope="module", params=["polling", "asleep", "cached"])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, int]:
    """The code of the driver, and where it begins."""
    folder = tmp_path_factory.mktemp("driver")
    macros = [
        f"#define MCUD_NPU_BASE {UNIT:#x}u",
        "#define MCUD_NPU_MACS 128",
        "#define MCUD_NPU_PATIENCE 1000u",
    ]
    if request.param == "asleep":
        macros.append("#define MCUD_NPU_IRQ 16u")
    if request.param == "cached":
        macros.append("#define MCUD_NPU_CACHED 1")
    (folder / "mcud_board.h").write_text("\n".join([*macros, ""]))
    (folder / "stubs.c").write_text(STUBS)
    includes = [f"-I{it}" for it in (folder, SOURCES.parent, SOURCES.parents[1] / "include")]
    flags = [
        "-mcpu=cortex-m33",
        "-mthumb",
        "-std=c99",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wconversion",
    ]
    linked = ["-nostdlib", "-Wl,-e,mcud_npu_run", f"-Wl,-Ttext={CODE:#x}", f"-Wl,-Tbss={MEMORY + 0x100:#x}"]
    sources = (SOURCES / "ethos_u_driver.c", folder / "stubs.c")
    elf, binary = folder / "driver.elf", folder / "driver.bin"
    gcc = ["arm-none-eabi-gcc", *flags, "-Werror", *includes, *linked, *map(str, sources), "-o", str(elf)]
    subprocess.run(gcc, check=True)
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", "-j", ".text", elf, binary], check=True)
    header = subprocess.run(["arm-none-eabi-readelf", "-h", elf], check=True, capture_output=True, text=True)
    (entry,) = (line.split()[-1] for line in header.stdout.splitlines() if "Entry point" in line)
    return binary.read_bytes(), int(entry, 16)


@pytest.fixture
def machine(image: tuple[bytes, int], model: ctypes.CDLL) -> Machine:
    memory = np.zeros(2 * SIZE, np.uint8)
    aligned = memory[-memory.ctypes.data % 4096 :][:SIZE]
    aligned[FROM - MEMORY :][:BYTES] = np.arange(BYTES)
    return Machine(*image, Unit(model, aligned))


def _copied(machine: Machine) -> bool:
    return bool((machine.unit.memory[TO - MEMORY :][:BYTES] == np.arange(BYTES)).all())


def test_a_stream_runs_and_the_next_one_needs_no_reset(machine: Machine) -> None:
    assert machine.run() == DONE and _copied(machine)
    machine.unit.memory[TO - MEMORY :][:BYTES] = 0
    assert machine.run() == DONE and _copied(machine)
    assert [offset for offset, _ in machine.unit.writes].count(0x0C) == 1


@pytest.mark.parametrize("fault", [BUS_ERROR, BAD_COMMAND, 1 << 7, 1 << 8])
def test_a_fault_ends_in_a_reset(machine: Machine, fault: int) -> None:
    machine.unit.faults = fault
    assert machine.run() == FAULT
    assert machine.unit.writes[-5][0] == 0x0C
    machine.unit.faults = 0
    assert machine.run() == DONE and _copied(machine)


def test_a_stream_without_its_end_is_a_fault(machine: Machine) -> None:
    assert machine.run(COPY[:-1]) == FAULT


@pytest.mark.parametrize("image", ["polling"], indirect=True)
def test_a_unit_that_never_finishes_is_stopped(machine: Machine) -> None:
    machine.unit.patience = 1 << 30
    assert machine.run() == TIMEOUT and machine.unit.left is None
    machine.unit.patience = 3
    assert machine.run() == DONE and _copied(machine)


def test_a_missing_or_different_unit(machine: Machine) -> None:
    for config in (0, 8, 0x1000_0007):  # none answers; 256 multipliers; an Ethos-U65
        machine.unit.config = config
        assert machine.run() == NO_UNIT
    machine.unit.config, machine.unit.resets = 7, False
    assert machine.run() == NO_UNIT
    assert not any(offset == 0x08 for offset, _ in machine.unit.writes)


@pytest.mark.parametrize(("payload", "port"), [(0, 1), (1, 3)])
def test_words_in_flash_come_by_the_port_of_constants(machine: Machine, payload: int, port: int) -> None:
    assert machine.run(payload=payload) == DONE and _copied(machine)
    assert (0x1C, port) in machine.unit.writes
    cleaned = [value for offset, value in machine.unit.writes if offset == 0xF00]
    assert WORDS not in cleaned or not payload


def test_words_that_are_not_aligned(machine: Machine) -> None:
    assert machine.run(at=WORDS + 4) == UNALIGNED
    assert not machine.unit.writes


@pytest.mark.parametrize("image", ["cached"], indirect=True)
def test_caches_are_cleaned_before_and_forget_afterwards(machine: Machine) -> None:
    assert machine.run() == DONE
    relevant = [it for it in machine.unit.writes if it[0] in (0x08, 0xF00, 0xF04) and it[1]]
    assert relevant == [(0xF00, WORDS), (0xF00, TO), (0x08, 1), (0x08, 0b1110), (0xF04, TO)]
