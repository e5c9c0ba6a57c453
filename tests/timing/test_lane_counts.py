"""Instructions of the parts of lanes: counted exactly, without waits, in one run or several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.kernelfiles import RUN_CORES
from mcudeploy.common.errors import BuildError, ProtocolError
from mcudeploy.execution.cycles.marks import (
    CallWindow,
    LaneCounts,
    Mark,
    MarkPassed,
    mark_arguments,
    read_marks,
    windows_of,
)
from mcudeploy.execution.cycles.plugin import build_plugin
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Lane, Sync, WorkSlice
from mcudeploy.toolchain import Emulator, Firmware, build_firmware
from tests.targets.board_line import CONFIG, LINE, Line
from tests.targets.conftest import cache  # noqa: F401 - fixture

PROGRAM = (Path(__file__).parent / "firmware" / "lanes.c").read_text(encoding="utf-8")


def part(entry: int, rows: int = 1) -> WorkSlice:
    return WorkSlice(entry, Interval(0, rows))


LANES: tuple[Lane, ...] = (
    (part(0), Sync(1, 1, 1), part(1), part(2, 7), Sync(3, 1, 2), part(3)),
    (part(0, 50), Sync(2, 0, 2), part(2), Sync(4, 0, 4), part(4)),
)
ROUNDS = (1000, 30, 200, 60_000, 5)
"""Of each entry: rounds of its loop by row."""
EXACT = [[2 * ROUNDS[it.entry] * len(it.rows) for it in lane if isinstance(it, WorkSlice)] for lane in LANES]
"""Of each part: instructions of its loop."""


def words(*passed: tuple[int, Mark, int]) -> list[MarkPassed]:
    return [MarkPassed(*each) for each in passed]


def run(firmware: Firmware, out: Path, ranges: Sequence[tuple[int, int]]) -> tuple[LaneCounts, int]:
    """Return the plugin's counts of runs of entries [first, end), and the instructions of all cores."""
    board = firmware.board
    assert board.emulator is not None
    with Emulator(board, firmware.elf, mark_arguments(board.emulator.qemu, firmware.elf, out)) as emulator:
        line = Line(emulator.url)
        ticks = sum(line.ask(b"R", first, end, answers=1)[0] for first, end in ranges)
        line.close()
    return LaneCounts(tuple(windows_of(read_marks(out), 2))), board.instructions(ticks)


@pytest.fixture(params=["mps2-an521", "riscv32-virt"])
def firmware(request: pytest.FixtureRequest, cache: Path) -> Firmware:  # noqa: F811
    """The lanes as C."""
    records = [
        [
            f"{{{it.entry}, MCUD_CORE_WAIT, {it.core}, {it.parts}}}"
            if isinstance(it, Sync)
            else f"{{{it.entry}, {it.entry}, {it.rows.lo}, {it.rows.hi}}}"
            for it in lane
        ]
        for lane in LANES
    ]
    ops = ", ".join(f"{{.kernel = spin, .rows = {rounds}}}" for rounds in ROUNDS)
    tables = {"OPS": ops, "LANE_0": ", ".join(records[0]), "LANE_1": ", ".join(records[1])}
    files = {
        "mcud_config.h": CONFIG + "#define mcud_run_cores mcud_run_cores_o32_c32_a4\n",
        "line.h": LINE,
        "lanes.c": PROGRAM,
        "schedule.h": "".join(f"#define {name} {text}\n" for name, text in tables.items()),
    }
    return build_firmware(load_board(request.param), files, [RUN_CORES], emulate=True, measurer=False)


def beyond(counts: LaneCounts) -> list[list[int]]:
    """The instructions of each part beside those of its loop."""
    return [np.subtract(*each).tolist() for each in zip(counts.parts, EXACT, strict=True)]


def along_path(parts: list[list[int]]) -> int:
    """The instructions of the parts that all others wait for."""
    return parts[1][0] + sum(parts[0][1:]) + parts[1][2]


def test_parts_count_exactly_and_waits_do_not(firmware: Firmware, tmp_path: Path) -> None:
    counts, ticks = run(firmware, tmp_path / "marks, in a file", [(0, len(ROUNDS))])
    (window,) = counts.windows
    # The loop of the lane, a call, a flag; first parts begin with the lane; a call more where one waits.
    (first, awaiting, plain, _), (other_first, *_) = beyond(counts)
    assert first == other_first and 10 < plain < awaiting < 60 and 10 < first < 60
    assert all(
        abs(each - awaiting) < 4 for lane in (beyond(counts)[0][3:], beyond(counts)[1][1:]) for each in lane
    )
    assert counts.timeline(LANES).ticks == along_path(counts.parts)
    assert counts.latency(LANES) == window.before + along_path(counts.parts) + window.after
    assert 0 < window.before < 100 and 0 < window.after < 100
    # The board's counter sees all cores, in turn, and their waits.
    assert ticks > sum(map(sum, counts.parts)) > counts.latency(LANES)


def test_runs_of_ranges_follow_each_other(firmware: Firmware, tmp_path: Path) -> None:
    bounds = [0, 1, 2, 4, 5]
    counts, _ = run(firmware, tmp_path / "marks", list(pairwise(bounds)))
    assert [[len(lane) for lane in window.parts] for window in counts.windows] == [
        [1, 1],
        [1, 0],
        [2, 1],
        [0, 1],
    ]
    assert all(10 < each < 100 for lane in beyond(counts) for each in lane)
    # As if one call had done them all: with what is around the first and the last one.
    around = counts.windows[0].before + counts.windows[-1].after
    assert counts.latency(LANES) == around + along_path(counts.parts)


def test_marks_are_read(tmp_path: Path) -> None:
    path = tmp_path / "marks"
    path.write_bytes(np.array([[0, 0, 7], [1, 2, 1 << 40]], np.uint64).tobytes())
    assert read_marks(path) == words((0, Mark.BEGIN, 7), (1, Mark.PART, 1 << 40))


@pytest.mark.parametrize("size", [8, 23, 25])
def test_a_torn_file_is_an_error(size: int, tmp_path: Path) -> None:
    path = tmp_path / "marks"
    path.write_bytes(bytes(size))
    with pytest.raises(ProtocolError, match="incomplete"):
        read_marks(path)


CALL = words(
    (0, Mark.END, 5),  # before the run
    (0, Mark.BEGIN, 100),
    (0, Mark.LANE, 110),
    (1, Mark.LANE, 30),
    (1, Mark.PART, 50),
    (0, Mark.PART, 150),
    (1, Mark.END, 60),  # no reading of core 0's
    (0, Mark.PART, 170),
    (0, Mark.END, 175),
)


def test_windows() -> None:
    empty = words((0, Mark.BEGIN, 200), (1, Mark.LANE, 70), (0, Mark.LANE, 203), (0, Mark.END, 209))
    after = words((0, Mark.END, 300), (0, Mark.END, 310))
    assert windows_of([*CALL, *empty, *after], 2) == [
        CallWindow(10, ((40, 20), (20,)), 5),
        CallWindow(3, ((), ()), 6),
    ]
    assert windows_of(after, 2) == []


@pytest.mark.parametrize(
    "passed",
    [CALL[:-1], [*CALL[:4], *CALL[1:]], [it for it in CALL if it.core == 0]],
    ids=["no end", "twice", "a core without lane"],
)
def test_a_torn_window_is_an_error(passed: list[MarkPassed]) -> None:
    with pytest.raises(ProtocolError, match="incomplete"):
        windows_of(passed, 2)


def test_more_cores_than_lanes_are_an_error() -> None:
    with pytest.raises(ProtocolError, match="core 1 does parts, the plan has 1 core"):
        windows_of(CALL, 1)


def test_the_latency_is_that_of_one_call() -> None:
    first = CallWindow(10, ((40,), (70,)), 5)
    second = CallWindow(3, ((50, 60, 7), (20, 30)), 6)
    counts = LaneCounts((first, second))
    assert counts.parts == [[40, 50, 60, 7], [70, 20, 30]]
    # Core 0 waits for 70 - 40, then core 1 for part 2, and for part 4.
    assert counts.timeline(LANES).end == ((40, 120, 180, 187), (70, 140, 217))
    assert counts.latency(LANES) == 10 + 217 + 6


def test_other_parts_than_the_plan_has_are_an_error() -> None:
    with pytest.raises(ProtocolError, match=r"counted 2 \+ 1 parts on its cores, the plan has 4 \+ 3"):
        LaneCounts(tuple(windows_of(CALL, 2))).latency(LANES)
    with pytest.raises(ProtocolError, match=r"counted no parts"):
        LaneCounts(()).latency(LANES)


@pytest.mark.usefixtures("cache")
def test_a_program_without_lanes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no function mcud_run_cores"):
        mark_arguments("qemu-system-arm", build_plugin(1), tmp_path / "marks")
