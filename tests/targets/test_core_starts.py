"""Cores that run one program together: each has its stack and FPU, all see what the others have made."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.kernelfiles import ON_UNIT, RUN_CORES
from mcudeploy.common.errors import BuildError
from mcudeploy.toolchain import Emulator, Firmware, build_firmware
from mcudeploy.toolchain.firmware_build import HOST_FLAGS, write_project
from mcudeploy.toolchain.project import assemble

from .board_line import CONFIG, LINE, Line

PROGRAM = (Path(__file__).parent / "firmware" / "cores.c").read_text(encoding="utf-8")
FILES = {"mcud_config.h": CONFIG, "line.h": LINE, "cores.c": PROGRAM}
BOARDS = ("mps2-an521", "riscv32-virt")
RINGS = ((1, 0), (1, 1), (2, 1), (7, 3), (40, 0), (40, 1), (40, 20), (40, 39), (40, 40))
RUNS = 300


@pytest.fixture(params=BOARDS)
def firmware(request: pytest.FixtureRequest, cache: Path) -> Firmware:
    assert cache.is_dir()
    return build_firmware(load_board(request.param), FILES, [RUN_CORES], emulate=True, measurer=False)


@pytest.fixture
def line(firmware: Firmware) -> Iterator[tuple[Line, Emulator]]:
    with Emulator(firmware.board, firmware.elf) as emulator:
        line = Line(emulator.url)
        yield line, emulator
        line.close()


def test_values_go_from_core_to_core(line: tuple[Line, Emulator]) -> None:
    for rounds, first in RINGS:
        whole, in_two, alone = line[0].ask(b"R", rounds, first, answers=3)
        assert whole == in_two == alone, (rounds, first)
    assert line[0].ask(b"N", RUNS, answers=1) == [0]


def test_each_core_has_its_own_stack(line: tuple[Line, Emulator]) -> None:
    board = line[1].board
    places = line[0].ask(b"P", answers=board.cores)
    assert len(set(places)) == board.cores
    assert places == line[0].ask(b"P", answers=board.cores)


def test_sleeping_cores_cost_nothing(line: tuple[Line, Emulator]) -> None:
    """A loop takes the same number of instructions before the cores have run anything, and afterwards."""
    board = line[1].board
    loops = (1, 1000, 1_000_000)
    before = [board.instructions(line[0].ask(b"T", count, answers=1)[0]) for count in loops]
    line[0].ask(b"R", 40, 0, answers=3)
    after = [board.instructions(line[0].ask(b"T", count, answers=1)[0]) for count in loops]
    assert before == after


def test_a_fault_of_any_core_ends_the_program(line: tuple[Line, Emulator]) -> None:
    core = line[1].board.cores - 1
    name = "unit 1: exception" if line[1].board.family == "mps" else f"hart {core}: mcause 00000003 mepc "
    line[0].send(b"F", core)
    assert line[1].wait(10) == 86
    assert f"the program faulted: {name}" in str(line[1].why_dead())


@pytest.mark.parametrize("sanitize", [False, True])
def test_threads_of_the_host(sanitize: bool, cache: Path) -> None:
    assert cache.is_dir()
    board = load_board("host")
    program = build_firmware(board, FILES, [RUN_CORES], emulate=True, sanitize=sanitize, measurer=False)
    assert run_rings([str(program.elf)]) == ""


def test_threads_of_the_host_have_no_race(tmp_path: Path) -> None:
    board = load_board("host")
    project = assemble(board, FILES, [RUN_CORES], emulate=True, measurer=False)
    write_project(project, tmp_path)
    sources = [name for name in project.files if name.endswith(".c")]
    folders = ("-Iinclude", "-Isrc/generated", "-Isrc/kernels", "-Isrc/hal")
    compiler = ("gcc", *HOST_FLAGS, "-Werror", "-fsanitize=thread", "-no-pie", "-pthread")
    subprocess.run([*compiler, *folders, *sources, "-lm", "-o", "program"], cwd=tmp_path, check=True)
    assert run_rings([str(tmp_path / "program")]) == ""


def run_rings(command: list[str]) -> str:
    """Asks a program of the host for rings and short runs; what it says about itself."""
    requests = b"".join(b"R" + words(*ring) for ring in RINGS) + b"N" + words(RUNS)
    done = subprocess.run(command, input=requests, capture_output=True, check=False, timeout=300)
    answers = [int.from_bytes(done.stdout[at : at + 4], "little") for at in range(0, len(done.stdout), 4)]
    assert done.returncode == 0, done.stderr.decode()
    assert len(answers) == 3 * len(RINGS) + 1 and answers[-1] == 0
    for at, ring in enumerate(RINGS):
        assert len(set(answers[3 * at : 3 * at + 3])) == 1, ring
    return done.stderr.decode()


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def test_units_and_cores_are_served_together_or_apart() -> None:
    board = load_board("mps2-an521")
    for kernels in ([ON_UNIT], [RUN_CORES], [ON_UNIT, RUN_CORES]):
        files = assemble(board, FILES, kernels, emulate=True, measurer=False).files
        assert "src/hal/cortexm/unit.c" in files and "include/mcud_cores.h" in files
    for name in (*BOARDS, "host"):
        files = assemble(load_board(name), FILES, [], emulate=True, measurer=False).files
        assert not any(path.endswith(("unit.c", "sse200.c", "harts.c", "threads.c")) for path in files)


def test_a_board_without_a_hal_for_several_cores_is_refused() -> None:
    with pytest.raises(BuildError, match=r"several cores of mps2-an386.*core_hal"):
        assemble(load_board("mps2-an386"), {}, [RUN_CORES], emulate=True)
