"""Transfers between memories: by the core where there is no driver, and by the engine in software."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.kernelfiles import AWAIT, MOVE, START, source_folders, source_index
from mcudeploy.toolchain.project import SoftEngine, assemble
from tests.linked import SANITIZED, STRICT

FIRMWARE = Path(__file__).parents[2] / "firmware"


CONFIG = (
    "#include <stdint.h>\ntypedef uint16_t mcud_offset;\ntypedef uint16_t mcud_code;\n#define MCUD_ALIGN 1\n"
)
FROM, TO, BYTES = (0, 8, 21), (3, 16, 24), (5, 8, 0)
"""As in transfers.c; the first and the last end their source."""
BY_CORE, AT_START, AT_WAIT, HALF = range(4)

Run = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module", params=[BY_CORE, AT_START, AT_WAIT, HALF])
def mode(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def run(mode: int, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run requests; what is in the fast and in the slow memory then: `.` what was there at first, `c` a
    copy, `x` neither.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("transfers")
    (folder / "mcud_config.h").write_text(CONFIG)
    kernels = [source_index()[f"{it}.c"].path for it in (START, AWAIT, MOVE)]
    engine = [f"-DMCUD_DMA_SOFT={mode}", str(FIRMWARE / "hal" / "dma_soft.c")] if mode else []
    folders = [f"-I{it}" for it in (folder, *source_folders())]
    sources = [str(it) for it in (Path(__file__).with_name("transfers.c"), *kernels)]
    command = [compiler, *STRICT, *SANITIZED, *folders, *sources, *engine, "-o", str(folder / "program")]
    subprocess.run(command, check=True)

    def ran(requests: str) -> tuple[str, str]:
        words = [str(folder / "program"), *(part for it in requests.split() for part in (it[0], it[1:]))]
        lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
        fast, slow = map(bytes.fromhex, lines[-1].split())
        copied = {to + i: at + i for at, to, size in zip(FROM, TO, BYTES, strict=True) for i in range(size)}
        return (
            "".join("." if byte == i else "x" for i, byte in enumerate(fast)),
            "".join(
                "." if byte == 32 + i else "c" if byte == copied.get(i) else "x"
                for i, byte in enumerate(slow)
            ),
        )

    return ran


def memory(*parts: tuple[int, str]) -> str:
    """32 bytes as they were at first, but for these."""
    text = ["."] * 32
    for at, what in parts:
        text[at : at + len(what)] = what
    return "".join(text)


def test_the_target_is_poison_until_the_wait(run: Run, mode: int) -> None:
    fast, slow = run("s0")
    assert fast == memory()
    assert slow == memory((3, {AT_WAIT: "xxxxx", HALF: "ccxxx"}.get(mode, "ccccc")))
    fast, slow = run("s0 w0")
    assert slow == memory((3, "ccccc"))
    assert fast == memory((0, "xxxxx") if mode else (0, ""))  # the mark is nothing without the engine


def test_a_source_without_the_mark_stays(run: Run) -> None:
    assert run("s1 w0") == (memory(), memory((16, "c" * 8)))


def test_a_wait_finishes_no_more_than_it_has_to(run: Run, mode: int) -> None:
    fast, slow = run("s1 s0 w1")
    assert fast == memory()
    late = {AT_WAIT: "xxxxx", HALF: "ccxxx"}.get(mode, "ccccc")
    assert slow == memory((16, "c" * 8), (3, late))
    assert run("s1 s0 w2") == run("s1 s0")
    assert run("s1 s2 s0 w1 w0")[1] == memory((16, "c" * 8), (3, "ccccc"))


def test_a_full_queue_finishes_its_oldest(run: Run, mode: int) -> None:
    """33 transfers, of which 32 have room; the source of the first is as before its wait."""
    fast, slow = run("s0 " + "s1 " * 32)
    assert fast == memory()
    assert slow[:8] == memory((3, "ccccc"))[:8]
    assert slow[16:24] == {AT_WAIT: "x" * 8, HALF: "ccccxxxx"}.get(mode, "c" * 8)
    assert run("s0 " + "s1 " * 32 + "w0")[1] == memory((3, "ccccc"), (16, "c" * 8))


def test_a_move_leaves_poison_only_where_it_is_told_to(run: Run, mode: int) -> None:
    fast, slow = run("m0 m1")
    assert fast == memory((0, "xxxxx") if mode else (0, ""))
    assert slow == memory((3, "ccccc"), (16, "c" * 8))


@pytest.mark.parametrize(("engine", "number"), [(None, 0), ("start", 1), ("wait", 2), ("half", 3)])
@pytest.mark.parametrize("name", ["host", "mps2-an386"])
def test_a_build_asks_for_an_engine(name: str, engine: SoftEngine | None, number: int) -> None:
    board = load_board(name)
    project = assemble(board, {}, ["start_transfers", "await_transfers"], emulate=True, engine=engine)
    assert project.defines == ({"MCUD_DMA_SOFT": number} if number else {})
    assert ("src/hal/dma_soft.c" in project.files) == (number > 0)
    if not board.is_host:
        assert json.loads(project.files[f"boards/{name}.json"])["build"]["mcud"]["defines"] == project.defines
    plain = assemble(board, {}, ["start_transfers", "await_transfers"], emulate=True)
    assert (project.digest == plain.digest) == (number == 0)
