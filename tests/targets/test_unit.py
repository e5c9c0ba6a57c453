"""A second core runs what it is handed, on its own stack; its faults end the program like the first one's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.kernelfiles import ON_UNIT
from mcudeploy.toolchain import Emulator, Firmware, build_firmware

from .board_line import CONFIG, Line

BOARD = load_board("mps2-an521")
PROGRAM = (Path(__file__).parent / "firmware" / "unit.c").read_text(encoding="utf-8")


@pytest.fixture
def firmware(cache: Path) -> Firmware:
    files = {"mcud_config.h": CONFIG, "unit.c": PROGRAM}
    return build_firmware(BOARD, files, [ON_UNIT], emulate=True, measurer=False)


@pytest.fixture
def line(firmware: Firmware) -> Iterator[tuple[Line, Emulator]]:
    with Emulator(BOARD, firmware.elf) as emulator:
        line = Line(emulator.url)
        yield line, emulator
        line.close()


def test_steps_run_on_the_second_core(line: tuple[Line, Emulator], firmware: Firmware) -> None:
    stack = BOARD.unit("cpu1").stack
    assert stack is not None
    core, address, rows = line[0].ask(b"H", answers=3)
    assert (core, rows) == (0, 0) and address not in stack.addresses
    core, address, rows = line[0].ask(b"L", answers=3)
    assert (core, rows) == (1, 2) and address in stack.addresses
    assert line[0].ask(b"N", answers=3) == [1, address, 2 + 2 * 1000]
    assert line[0].ask(b"H", answers=3)[0] == 0
    assert firmware.sizes.static_ram_bytes >= stack.bytes


# Of the fault status: an undefined instruction, the stack limit.
@pytest.mark.parametrize(("letter", "status"), [(b"F", "00010000"), (b"O", "00100000")])
def test_a_fault_there_ends_the_program(line: tuple[Line, Emulator], letter: bytes, status: str) -> None:
    line[0].send(letter)
    assert line[1].wait(10) == 86
    why = str(line[1].why_dead())
    assert "the program faulted: unit 1: exception" in why and f"cfsr {status}" in why
