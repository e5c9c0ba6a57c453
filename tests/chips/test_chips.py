"""Firmware of chips that nobody had at hand: registers against the vendors' facts, and a run in Unicorn."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.resources import resource_dir
from mcudeploy.device.target import open_device
from tests.chips.facts import BOARDS, CHIP_OF, CHIPS, IN_UNICORN, Chip
from tests.chips.machine import PAGE, Machine
from tests.chips.programs import HOST, built, deployed, ran, started
from tests.chips.settings import SETTINGS
from tests.chips.wiring import wire
from tests.networks.small import small_model

MACRO = re.compile(
    r"^#define (\w+?)(?:\((n)\))? \(?(?:\(n\)|(\w+?)u?)(?: << (\d+))?\)?(?: /\*.*\*/)?$", re.MULTILINE
)


def macros(chip: str) -> list[tuple[str, int | None, int]]:
    """The macros of the HAL of a chip's boards, but for those of the core: name, value (None if it is given),
    shift.
    """
    hal = resource_dir("firmware") / "hal"
    boards = (load_board(name) for name in BOARDS if CHIP_OF.get(name, name) == chip)
    named = [it for board in boards for it in board.hal]
    sources = [hal / it for it in named if it.partition("/")[0] not in ("cortexm", it)]
    included = {
        source.parent / name
        for source in sources
        for name in re.findall(r'#include "(\w+\.h)"', source.read_text(encoding="utf-8"))
    }
    headers = {header for header in included if header.is_file()}
    names = []
    for path in sorted({*sources, *headers}):
        for name, argument, value, shift in MACRO.findall(path.read_text(encoding="utf-8")):
            names.append((name, None if argument else int(value, 0), int(shift or 0)))
    return names


@pytest.mark.parametrize("board", CHIPS)
def test_every_macro_of_a_register_says_what_the_facts_say(board: str) -> None:
    chip = Chip(board)
    named = {name: chip.named(name) for name, _, _ in macros(board)}
    assert {it.name for found in named.values() for it in found} == set(chip.registers) - chip.later
    for name, value, shift in macros(board):
        if named[name]:
            assert value in {it.address for it in named[name]} or {
                it.address - chip.bases[it.name.partition(".")[0]] for it in named[name]
            } == {value}, name
            continue
        registers = (it for it in named if named[it] and name.startswith(f"{it}_"))
        register = max(registers, key=len, default=None)
        if register is None:
            assert name in chip.bases or not re.search(r"_BASE$|^GPIO|^P\d$", name), name
            assert value == chip.bases.get(name, value), name
            continue
        field = name.removeprefix(f"{register}_")
        for it in named[register]:
            mask = it.fields[field]
            assert mask & -mask == 1 << shift, name
            assert value is None or value << shift == mask, name


@pytest.mark.parametrize("board", BOARDS)
def test_the_line_to_the_host_is_where_the_facts_have_it(board: str) -> None:
    chip, facts = Chip(board), load_board(board)
    assert facts.uart is not None
    (peripheral,) = (name for name, base in chip.bases.items() if base == facts.uart.base)
    assert {facts.uart.irq} == {irq for name, irq in chip.interrupts.items() if peripheral in name}


def test_no_address_of_a_register_is_written_without_its_name() -> None:
    hal = resource_dir("firmware") / "hal"
    for board in CHIPS:
        for source in (it for it in load_board(board).hal if it.partition("/")[0] not in ("cortexm", it)):
            code = re.sub(r"^#define.*$", "", (hal / source).read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert not re.search(r"0x[0-9A-Fa-f]{7,}", code), source


@pytest.fixture(scope="module")
def on_this_computer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the host's outputs of the small model."""
    deployment, (sample,) = deployed("host", small_model(tmp_path_factory.mktemp("host") / "small.onnx"))
    with open_device(HOST, deployment.build(HOST)) as device:
        return ran(deployment, device, sample)[1]


@pytest.mark.parametrize("board", IN_UNICORN)
def test_the_measurer_starts_and_computes_what_the_host_computes(
    board: str, on_this_computer: dict[str, bytes], tmp_path: Path
) -> None:
    deployment, (sample,) = deployed(board, small_model(tmp_path / "small.onnx"))
    with started(built(deployment, tmp_path)) as (machine, device):
        info = device.session.info
        assert (info.board, info.clock_hz, info.ticks_hz) == (board, *2 * (deployment.board.clock_hz,))
        assert machine.interrupts > 0  # the vector of the UART is the one that the facts say
        for place, value in SETTINGS[board].items():
            assert machine.field(*place.split(":")) == value, place
        machine.instructions = before = 2**24 - 20_000  # a period of SysTick ends in the run
        ticks, outputs = ran(deployment, device, sample)
        assert_equal(deployment.board, outputs, on_this_computer)
        assert deployment.model.macs < ticks < machine.instructions - before
        assert machine.wraps == (deployment.board.core == "cortex-m0plus")
        assert 100 < device.session.stack().used_bytes < deployment.board.stack_bytes
        strays_are_caught(machine)


def assert_equal(board: Board, outputs: dict[str, bytes], expected: dict[str, bytes]) -> None:
    """Bit for bit, but where a product is rounded before it is added."""
    if board.fuses_products:
        assert outputs == expected
    for name, its in expected.items():
        wanted = np.frombuffer(its, np.float32)
        np.testing.assert_allclose(
            np.frombuffer(outputs[name], np.float32), wanted, atol=1e-5 * np.ptp(wanted)
        )


def strays_are_caught(machine: Machine) -> None:
    """The model itself: reserved bits do not change unseen, and where no register is nothing answers."""
    register = next(it for it in machine.chip.registers.values() if it.known_bits != 0xFFFFFFFF)
    bit = ~register.known_bits & (register.known_bits + 1)
    page = register.address & -PAGE
    machine.write(page, register.address - page, 4, machine.values[register.address] ^ bit)
    assert f"{register.name}, which are in no field" in str(machine.error)
    machine.error = None
    machine.read(page, register.address - page + 2, 2)
    assert "reads 2 bytes" in str(machine.error)


@pytest.mark.parametrize(
    ("revision", "before", "after", "opened", "resets"),
    [
        (4, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0),
        (5, 0xFFFFFFFF, 0x5A, 0x5A, 1),
        (5, 0x5A, 0x5A, 0x5A, 0),
        (5, 0, 0, 0, 0),
    ],
    ids=["revision 2", "erased", "open", "locked by its owner"],
)
def test_the_debug_port_of_the_nrf52840_stays_open(
    revision: int, before: int, after: int, opened: int, resets: int, tmp_path: Path
) -> None:
    """From revision 3 on (code 5) UICR and the program must both open it; an erased UICR is set to open."""
    deployment, _ = deployed("nrf52840", small_model(tmp_path / "small.onnx"))
    machine = Machine(built(deployment, tmp_path), Chip("nrf52840"), wire)
    kept = {"FICR.REVISION": revision, "UICR.APPROTECT": before}
    machine.kept |= {machine.chip.registers[name].address for name in kept}
    machine.values |= {machine.chip.registers[name].address: value for name, value in kept.items()}
    machine.run()
    assert (machine.field("UICR.APPROTECT"), machine.field("APPROTECT.DISABLE")) == (after, opened)
    assert (machine.resets, machine.field("NVMC.CONFIG", "WEN")) == (resets, 0)
    assert machine.field("UART0.ENABLE", "ENABLE") == 4
