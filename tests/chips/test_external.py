"""Memories beside the chip: firmware starts them as their data sheets ask, and a network runs in them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import ValidationError

from mcudeploy.boards.board import Memory
from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.facts import BoardRegion
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError
from mcudeploy.common.resources import resource_dir
from mcudeploy.device.session import Session
from mcudeploy.device.target import Device, open_device
from mcudeploy.execution.deployment import Deployment
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.board_texts import board_header
from mcudeploy.toolchain.project import assemble
from mcudeploy.verify.samples import load_samples
from tests.chips.facts import Chip
from tests.chips.machine import Machine, MachineLine
from tests.chips.programs import HOST, PATIENT, built, ran
from tests.chips.psram import Aps6404l, FlexSpi2
from tests.chips.sdram import Sdram
from tests.chips.wiring import wire
from tests.networks.small import small_model

SDRAM, QMI = ("stm32f746-disco", "stm32h743i-eval"), ("pico-plus2-usb", "promicro-rp2350-usb")
EXTERNAL: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(SDRAM, "sdram") | dict.fromkeys((*QMI, "teensy41"), "psram")
)
of_sdram = pytest.mark.parametrize("program", SDRAM, indirect=True)
of_psram = pytest.mark.parametrize("program", (QMI[0], "teensy41"), indirect=True)
of_flexspi = pytest.mark.parametrize("program", ["teensy41"], indirect=True)
of_qmi = pytest.mark.parametrize("program", QMI[:1], indirect=True)
MPU_RNR, MPU_RBAR, MPU_RASR = 0xE000ED98, 0xE000ED9C, 0xE000EDA0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small network."""
    return small_model(tmp_path_factory.mktemp("model") / "small.onnx")


@pytest.fixture(scope="module", params=EXTERNAL)
def program(
    request: pytest.FixtureRequest, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Deployment, Firmware]:
    """Return a plan whose only arena is in the external memory, and its firmware."""
    board = load_board(request.param)
    limits = {it.name: 0 for it in board.memories} | {EXTERNAL[board.name]: 1 << 23}
    deployment = api.plan_model(model, board.limited(limits), Options(split=False))
    return deployment, built(deployment, tmp_path_factory.mktemp(board.name))


@pytest.fixture(scope="module")
def machine(program: tuple[Deployment, Firmware]) -> Machine:
    """Return a chip that has started its memory."""
    _, firmware = program
    machine = Machine(firmware, Chip(firmware.board.name), wire)
    machine.run()
    return machine


def external(board: str) -> Memory:
    """Return the external memory of a board."""
    return load_board(board).memory(EXTERNAL[board])


def is_open(machine: Machine) -> bool:
    """Whether the program may use the memory: by the MPU, or by the memory interface."""
    if machine.board.name in QMI:
        return bool(machine.field("XIP_CTRL.CTRL", "WRITABLE_M1"))
    return machine.core[MPU_RNR] == 2 and machine.core[MPU_RASR] != 0  # other regions are set before


def region_of(machine: Machine) -> tuple[int, int, int]:
    """Return number, origin and attributes of the region that the firmware has set last."""
    return machine.core[MPU_RNR], machine.core[MPU_RBAR], machine.core[MPU_RASR]


def cached_region(memory: Memory) -> tuple[int, int, int]:
    """Return normal memory, written back, never executed (Arm DDI 0403E, B3.5.9)."""
    never, all_may, normal_written_back, size = (
        1 << 28,
        3 << 24,
        1 << 19 | 3 << 16,
        memory.bytes.bit_length() - 2,
    )
    return 2, memory.origin, never | all_may | normal_written_back | size << 1 | 1


def test_a_network_runs_in_the_memory(program: tuple[Deployment, Firmware], model: Path) -> None:
    deployment, firmware = program
    memory = external(firmware.board.name)
    assert (
        deployment.plan.layout.arenas[memory.name]
        and sum(deployment.plan.layout.arenas.values()) == (deployment.plan.layout.arenas[memory.name])
    )
    (sample,) = load_samples(deployment.model.graph, [], [], 0)
    host = api.plan_model(model, load_board("host"), Options(split=False))
    with open_device(HOST, host.build(HOST)) as device:
        expected = ran(host, device, sample)[1]
    machine = Machine(firmware, Chip(firmware.board.name), wire)
    with Session(MachineLine(machine), board=firmware.board.name, timing=PATIENT) as session:
        session.hello(firmware.hash)
        assert is_open(machine)
        if machine.board.core == "cortex-m7":
            assert region_of(machine) == cached_region(memory)
        device = Device(session, "unicorn", firmware, 3600.0)
        assert ran(deployment, device, sample)[1] == expected


class Unplugged(Machine):
    """A chip whose external memory is not there: pull-ups answer."""

    def map_memory(self, region: BoardRegion) -> None:
        """Map ones in place of the external memory."""
        if region.origin != external(self.board.name).origin:
            super().map_memory(region)
            return
        self._uc.mmio_map(region.origin, region.bytes, self._ones, None, self._nothing, None)

    def _ones(self, _: Any, offset: int, size: int, __: Any) -> int:
        return (1 << 8 * size) - 1

    def _nothing(self, _: Any, offset: int, size: int, value: int, __: Any) -> None:
        """Nothing stores it."""


@of_sdram
def test_a_memory_that_does_not_answer_stays_closed(program: tuple[Deployment, Firmware]) -> None:
    _, firmware = program
    machine = Unplugged(firmware, Chip(firmware.board.name), wire)
    machine.run()
    assert not is_open(machine)


SEQUENCE = (1, 2, 3 | 7 << 5, 4 | 0x230 << 9)
"""Words of the commands: clock, precharge, eight refreshes, mode."""


@pytest.mark.parametrize(
    ("commands", "pause_us", "fault"),
    [
        (SEQUENCE[1:], 100, "without a clock"),
        (SEQUENCE, 99, "too soon"),
        ((SEQUENCE[0], *SEQUENCE[2:]), 100, "the order is"),
        ((*SEQUENCE[:2], 3, SEQUENCE[3]), 100, "too few refreshes"),
        ((*SEQUENCE[:3], 4 | 0x220 << 9), 100, "other latencies"),
        ((*SEQUENCE[:3], 4 | 0x231 << 9), 100, "bursts"),
        (SEQUENCE[:3], 100, "not started yet"),
    ],
)
@of_sdram
def test_the_model_refuses_other_orders(
    machine: Machine, commands: tuple[int, ...], pause_us: int, fault: str
) -> None:
    """The model itself."""
    Sdram(machine)
    command, refresh = (machine.chip.registers[f"FMC.{it}"] for it in ("SDCMR", "SDRTR"))
    with pytest.raises(AssertionError, match=fault):
        for word in commands:
            machine.on_write[command.address](machine, command, word | 1 << (5 - bank_of(machine)))
            machine.instructions += pause_us * machine.board.clock_hz // 1_000_000
        machine.on_write[refresh.address](machine, refresh, machine.values[refresh.address])


@pytest.mark.parametrize(
    ("field", "value"),
    [("TRAS", 1), ("TRC", 1), ("TRP", 0), ("TRCD", 0), ("TXSR", 1), ("TWR", 0), ("TMRD", 0)],
)
@of_sdram
def test_the_model_refuses_short_times(machine: Machine, field: str, value: int) -> None:
    Sdram(machine)
    register = f"FMC.SDTR{1 if field in ('TRC', 'TRP') else bank_of(machine)}"
    right = machine.field(register, field)
    machine.set_field(register, field, value)
    command = machine.chip.registers["FMC.SDCMR"]
    with pytest.raises(AssertionError):
        machine.on_write[command.address](machine, command, 1 | 1 << (5 - bank_of(machine)))
    machine.set_field(register, field, right)
    machine.on_write[command.address](machine, command, 1 | 1 << (5 - bank_of(machine)))


def bank_of(machine: Machine) -> int:
    """Return the number of the memory's bank at the FMC."""
    return 1 + (external(machine.board.name).origin >> 28 & 1)


@of_psram
def test_a_psram_starts_from_any_state(
    program: tuple[Deployment, Firmware], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after power-on, and as an earlier program has left it, which is what the other tests do."""
    _, firmware = program
    monkeypatch.setattr(Aps6404l.__init__, "__defaults__", (False,))
    machine = Machine(firmware, Chip(firmware.board.name), wire)
    machine.run()
    assert is_open(machine)


@of_psram
def test_without_a_psram_its_window_stays_closed(
    program: tuple[Deployment, Firmware], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, firmware = program
    monkeypatch.setattr(Aps6404l, "command", lambda *_: b"")
    machine = Machine(firmware, Chip(firmware.board.name), wire)
    machine.run()
    assert not is_open(machine)


@pytest.mark.parametrize(
    ("register", "field", "value", "fault"),
    [
        ("M1_TIMING", "CLKDIV", 1, "too fast"),
        ("M1_TIMING", "MAX_SELECT", 19, "its refresh"),
        ("M1_TIMING", "MAX_SELECT", 0, "its refresh"),
        ("M1_TIMING", "MIN_DESELECT", 1, "pause"),
        ("M1_TIMING", "PAGEBREAK", 0, "1 KiB"),
        ("M1_RFMT", "DUMMY_LEN", 4, "does not understand"),
        ("M1_RFMT", "PREFIX_WIDTH", 0, "does not understand"),
        ("M1_WFMT", "DATA_WIDTH", 1, "does not understand"),
        ("M1_WCMD", "PREFIX", 2, "does not understand"),
    ],
)
@of_qmi
def test_the_model_refuses_other_windows(
    machine: Machine, register: str, field: str, value: int, fault: str
) -> None:
    """The model itself."""
    right = machine.field(f"XIP_QMI.{register}", field)
    machine.set_field(f"XIP_QMI.{register}", field, value)
    control = machine.chip.registers["XIP_CTRL.CTRL"]
    with pytest.raises(AssertionError, match=fault):
        machine.on_write[control.address](machine, control, machine.values[control.address])
    machine.set_field(f"XIP_QMI.{register}", field, right)


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        ("CCM.CBCMR:FLEXSPI2_PODF", 2, "too fast"),
        ("CCM.CBCMR:FLEXSPI2_CLK_SEL", 0, "not from the PLL"),
        ("FLEXSPI2.AHBCR:PREFETCHEN", 1, "across pages"),
        ("FLEXSPI2.FLSHCR1A1:CSINTERVAL", 1, "pause"),
        ("FLEXSPI2.LUT21:OPERAND0", 4, "steps that"),
        ("IOMUXC.SW_MUX_CTL_PAD_GPIO_EMC_26:MUX_MODE", 5, "EMC_26 belongs"),
        ("IOMUXC.SW_PAD_CTL_PAD_GPIO_EMC_22:PUS", 0, "may be selected"),
        ("IOMUXC.FLEXSPI2_IPP_IND_SCK_FA_SELECT_INPUT:DAISY", 0, "SCK_FA"),
    ],
)
@of_flexspi
def test_the_model_refuses_other_settings(machine: Machine, place: str, value: int, fault: str) -> None:
    """The model itself."""
    interface = FlexSpi2(machine)
    right = machine.field(*place.split(":"))
    machine.set_field(*place.split(":"), value)
    with pytest.raises(AssertionError, match=fault):
        interface.check_interface()
        interface.check_window()
    machine.set_field(*place.split(":"), right)
    interface.check_interface()
    interface.check_window()


@of_qmi
def test_the_model_refuses_code_in_flash_during_commands(machine: Machine) -> None:
    machine.flash_answers = False
    machine.sent.clear()
    with pytest.raises(AssertionError, match="flash that does not answer"):
        machine.run()


@pytest.mark.parametrize(
    ("commands", "fault"),
    [
        ([(0x99, 1)], "not enabled"),
        ([(0x35, 1)], "unknown state"),
        ([(0x9F, 4)], "does not see"),
        ([(0x66, 1), (0x99, 1), (0x35, 1), (0x9F, 1)], "does not see"),
        ([(0x03, 1)], "unknown command"),
    ],
)
def test_the_model_of_a_psram_refuses_other_commands(commands: list[tuple[int, int]], fault: str) -> None:
    chip = Aps6404l(quad=False)
    with pytest.raises(AssertionError, match=fault):
        for code, pads in commands:
            chip.command(code, pads)


@pytest.mark.skipif(shutil.which("clang") is None, reason="Clang is not installed")
@pytest.mark.parametrize("name", [SDRAM[0], SDRAM[1], QMI[0], "teensy41"])
def test_clang_compiles_the_start_without_a_warning(name: str, tmp_path: Path) -> None:
    board, firmware = load_board(name), resource_dir("firmware")
    (tmp_path / "mcud_board.h").write_text(board_header(board, board.timer.hardware), encoding="utf-8")
    sources = [it for it in board.hal if it.endswith(".c") and "/" in it and "startup" not in it]
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wcast-align", "-Werror")
    command = ["clang", "--target=arm-none-eabi", *board.cpu_flags, "-std=c99", "-O2", "-ffreestanding"]
    command += [*warnings, "-fsyntax-only", "-DMCUD_EMULATED=0", f"-I{tmp_path}"]
    command += [f"-I{firmware / it}" for it in ("include", "hal")]
    assert len(sources) > 3
    subprocess.run([*command, *(str(firmware / "hal" / it) for it in sources)], check=True)


@pytest.mark.parametrize(("name", "driver"), [("pico-plus2-usb", "rp2/qmi"), ("teensy41", "imxrt/flexspi2")])
def test_a_clock_that_the_interface_cannot_make_is_refused(name: str, driver: str, tmp_path: Path) -> None:
    board = load_board(name)
    (psram,) = (it.psram for it in board.memories if it.psram is not None)
    slow = psram.model_copy(update={"most_hz": 20_000_000})
    memories = tuple(it.model_copy(update={"psram": it.psram and slow}) for it in board.memories)
    text = board_header(board.model_copy(update={"memories": memories}), board.timer.hardware)
    (tmp_path / "mcud_board.h").write_text(text, encoding="utf-8")
    hal = resource_dir("firmware") / "hal"
    command = [f"{board.toolchain}-gcc", *board.cpu_flags, "-fsyntax-only", f"-I{tmp_path}", f"-I{hal}"]
    result = subprocess.run(
        [*command, hal / f"{driver}_psram.c"], capture_output=True, text=True, check=False
    )
    assert result.returncode and "most_hz of the board's psram is less" in result.stderr


@pytest.mark.parametrize(("name", "driver"), [("stm32f746-disco", "fmc"), ("pico-plus2-usb", "qmi")])
def test_a_chip_that_no_source_starts_is_refused(name: str, driver: str) -> None:
    board = load_board(name)
    silent = board.model_copy(update={"hal": tuple(it for it in board.hal if driver not in it)})
    with pytest.raises(ConfigError, match=f"no source of its hal starts {EXTERNAL[name]}"):
        assemble(silent, {}, [], emulate=False)
    kind = "sdram" if driver == "fmc" else "psram"
    memories = tuple(it.model_copy(update={kind: None}) for it in board.memories)
    with pytest.raises(ConfigError, match=rf"add its facts, \[memory.{kind}\]"):
        assemble(board.model_copy(update={"memories": memories}), {}, [], emulate=False)


def test_an_sdram_has_all_its_pins_once() -> None:
    (facts,) = (it.sdram for it in load_board("stm32f746-disco").memories if it.sdram)
    for pins in (facts.pins[1:], (*facts.pins[1:], facts.pins[1])):
        with pytest.raises(ValidationError, match="has 38 different pins"):
            type(facts).model_validate(facts.model_dump() | {"pins": pins})
