"""The driver of PL081 controllers: every byte arrives, at any alignment, in any number of pieces."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.kernelfiles import AWAIT, START
from mcudeploy.toolchain import Emulator, build_firmware

from .board_line import CONFIG, LINE, Line

PROGRAM = (Path(__file__).parent / "firmware" / "transfers.c").read_text(encoding="utf-8")
EDGES = (0, 1, 3, 4, 5, 4094, 4095, 4096, 8191, 16379, 16380, 16381, 20000)


@pytest.fixture(scope="module", params=["mps2-an505", "mps2-an521"])
def line(request: pytest.FixtureRequest, cache: Path) -> Iterator[tuple[Line, str]]:
    board = load_board(request.param)
    files = {"mcud_config.h": CONFIG, "line.h": LINE, "transfers.c": PROGRAM}
    firmware = build_firmware(board, files, [START, AWAIT], emulate=True, measurer=False)
    with Emulator(board, firmware.elf) as emulator:
        line = Line(emulator.url)
        yield line, request.param
        line.close()


def test_there_and_back(line: tuple[Line, str]) -> None:
    rng = random.Random(line[1])
    cases = [(at, over, to, size) for size in EDGES for at, over, to in ((0, 0, 0), (1, 1, 1), (3, 2, 1))]
    for _ in range(30):
        cases.append((*(rng.randrange(8) for _ in range(3)), rng.randrange(1, 20000)))
    for at, over, to, size in cases:
        for waits in (0, 1):
            assert line[0].ask(b"R", at, over, to, size, waits, answers=1) == [0], (at, over, to, size, waits)


def test_a_queue_longer_than_it_has_room(line: tuple[Line, str]) -> None:
    for count in (1, 7, 8, 9, 100):
        assert line[0].ask(b"B", count, answers=1) == [0], count


def test_pieces_and_queue_go_on_by_interrupt(line: tuple[Line, str]) -> None:
    assert line[0].ask(b"I", answers=1) == [0]


def test_the_core_does_not_copy(line: tuple[Line, str]) -> None:
    """A start costs the set-up of the board file, each further piece an interrupt that costs no more."""
    board = load_board(line[1])
    setup = board.links[0].setup_cycles
    spent = {}
    for size in (4, 16380, 20000):
        start, wait, copy = (board.instructions(it) for it in line[0].ask(b"T", size, answers=3))
        spent[size] = start + wait
        assert 0.8 * setup <= start <= setup
        assert copy > size / 4
    assert spent[4] == spent[16380]
    assert spent[20000] - spent[4] <= setup


def test_the_kernels_of_the_tape_use_the_driver(line: tuple[Line, str]) -> None:
    wrong, ticks = line[0].ask(b"K", answers=2)
    assert wrong == 0
    assert load_board(line[1]).instructions(ticks) < 1000  # 16,000 bytes


@pytest.mark.usefixtures("cache")
def test_the_engine_in_software_runs_on_a_board() -> None:
    """The same transfers arrive, none before its wait."""
    board = load_board("mps2-an386")
    files = {"mcud_config.h": CONFIG, "line.h": LINE, "transfers.c": PROGRAM}
    firmware = build_firmware(board, files, [START, AWAIT], emulate=True, measurer=False, engine="half")
    with Emulator(board, firmware.elf) as emulator:
        soft = Line(emulator.url)
        assert soft.ask(b"R", 1, 2, 3, 5000, 1, answers=1) == [0]
        assert 8000 < soft.ask(b"I", answers=1)[0] <= 9000
        soft.close()
