"""The time of a plan that several cores run together, as instructions along its critical path.

In the emulator cores take turns, so its clock cannot time them. A plugin counts the instructions of each core
between flags, without those executed while the core waits for others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np

from mcudeploy.common.errors import ConfigError, ProtocolError
from mcudeploy.common.text import count_text
from mcudeploy.costs.timeline import CoreTimeline, critical_path
from mcudeploy.device.target import Device, Target, open_device
from mcudeploy.execution.cycles.plugin import load_arguments
from mcudeploy.ir.plan import Lane, WorkSlice
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.disassembly import Functions

SOURCE = Path(__file__).with_name("marks.c")


class Mark(IntEnum):
    """A place of the program, by its number for the plugin: the beginning of a function."""

    BEGIN = 0
    LANE = 1
    PART = 2
    END = 3


MARKS = {
    Mark.BEGIN: "mcud_run_cores",
    Mark.LANE: "mcud_core_run",
    Mark.PART: "mcud_core_publish",
    Mark.END: "hal_ticks",
}
"""The functions that begin at the marks."""
WAITS = ("mcud_core_spin", "mcud_core_join")
"""Functions in which a core waits for others."""
WORKS = ("mcud_run_cores", "mcud_core_run")
"""Functions whose instructions end such a wait."""


@dataclass(frozen=True, slots=True)
class MarkPassed:
    """A core reached a mark after this number of instructions without waiting."""

    core: int
    mark: Mark
    count: int


@dataclass(frozen=True, slots=True)
class CallWindow:
    """Instructions of one call of mcud_run_cores.

    These are the instructions of core 0 before its lane, of each core's parts, and of core 0 after its last
    part, to the next reading of the counter.
    """

    before: int
    parts: tuple[tuple[int, ...], ...]
    after: int


@dataclass(frozen=True, slots=True)
class LaneCounts:
    """The instructions of one run of a plan on several cores, by calls of mcud_run_cores."""

    windows: tuple[CallWindow, ...]

    @property
    def parts(self) -> list[list[int]]:
        """The instructions of each part of each core's lane."""
        cores = range(len(self.windows[0].parts)) if self.windows else ()
        return [[count for window in self.windows for count in window.parts[core]] for core in cores]

    def timeline(self, lanes: Sequence[Lane]) -> CoreTimeline:
        """Return begin and end of the parts, as if one call ran them all.

        Raises ProtocolError if other parts were counted than the lanes contain, and ValueError if lanes wait
        for each other for ever.
        """
        counted = [len(each) for each in self.parts]
        wanted = [sum(isinstance(entry, WorkSlice) for entry in lane) for lane in lanes]
        if counted != wanted:
            raise ProtocolError(
                f"the emulator counted {_listed(counted)} parts on its cores, the plan has {_listed(wanted)}"
            )
        return critical_path(lanes, self.parts)

    def latency(self, lanes: Sequence[Lane]) -> int:
        """Return the instructions on the critical path of one call, with those of core 0 around its lane.

        Raises what `timeline` raises.
        """
        around = self.windows[0].before + self.windows[-1].after if self.windows else 0
        return around + int(self.timeline(lanes).ticks)


def count_lanes(
    lanes: Sequence[Lane],
    target: Target,
    firmware: Firmware,
    run: Callable[[Device], object],
    patience_s: float,
) -> LaneCounts:
    """Run a program with lanes once in the emulator, by `run`, and count the instructions of each part.

    A part lasts from the end of the core's previous part, or the beginning of its lane, to its end, without
    waiting. It ends when the core sets its flag for others.

    Raises the errors of running, ProtocolError if the emulator has not counted every part, BuildError if a
    tool is missing, and ConfigError for a board that cannot be emulated.
    """
    if target.board.emulator is None:
        raise ConfigError(f"{target.board.name} cannot be emulated")
    with tempfile.TemporaryDirectory(prefix="mcudeploy-") as folder:
        out = Path(folder) / "marks"
        arguments = mark_arguments(target.board.emulator.qemu, firmware.elf, out)
        with open_device(target, firmware, patience_s, arguments) as device:
            run(device)
        counts = LaneCounts(tuple(windows_of(read_marks(out), len(lanes))))
    counts.timeline(lanes)
    return counts


def mark_arguments(qemu: str, elf: Path, out: Path) -> tuple[str, ...]:
    """Return QEMU's arguments for the plugin: write to `out` when each core reaches each mark.

    Raises BuildError if the plugin cannot be compiled, and for a program that does not run lanes.
    """
    functions = Functions(elf)
    marks = [f"mark={functions.typed(MARKS[mark]).address:#x}" for mark in Mark]
    waits = [f"wait={functions.typed(name).address:#x}" for name in WAITS]
    symbols = [functions.typed(name) for name in WORKS]
    works = [f"work={it.address:#x}-{it.address + it.size:#x}" for it in symbols]
    return load_arguments(SOURCE, qemu, out, (*marks, *waits, *works))


def read_marks(path: Path) -> list[MarkPassed]:
    """Return the plugin's marks, in the order of time. Raises ProtocolError for a truncated file."""
    words = np.fromfile(path, dtype=np.uint64)
    if words.size % 3 or path.stat().st_size % words.itemsize:
        raise _incomplete()
    return [MarkPassed(core, Mark(mark), count) for core, mark, count in words.reshape(-1, 3).tolist()]


def windows_of(passed: Iterable[MarkPassed], cores: int) -> list[CallWindow]:
    """Return the calls of mcud_run_cores in the order of time.

    A call lasts from its entry to core 0's next reading of the counter. Raises ProtocolError if a call has no
    end, or a core has no lane in it.
    """
    windows: list[CallWindow] = []
    begin: int | None = None
    lanes: dict[int, int] = {}  # count of each core at the beginning of its lane
    ends: list[list[int]] = []  # counts of each core at the ends of its parts
    for it in passed:
        if it.mark is Mark.BEGIN:
            if begin is not None:
                raise _incomplete()
            begin, lanes, ends = it.count, {}, [[] for _ in range(cores)]
        elif begin is None:
            continue
        elif it.core >= cores:
            raise ProtocolError(f"core {it.core} does parts, the plan has {count_text(cores, 'core')}")
        elif it.mark is Mark.LANE:
            lanes[it.core] = it.count
        elif it.mark is Mark.PART:
            ends[it.core].append(it.count)
        elif it.core == 0:
            if len(lanes) != cores:
                raise _incomplete()
            bounds = [[lanes[core], *each] for core, each in enumerate(ends)]
            parts = tuple(tuple(np.diff(each).tolist()) for each in bounds)
            windows.append(CallWindow(lanes[0] - begin, parts, it.count - bounds[0][-1]))
            begin = None
    if begin is not None:
        raise _incomplete()
    return windows


def _incomplete() -> ProtocolError:
    return ProtocolError("the counts of the emulator are incomplete: it was stopped early")


def _listed(counts: Sequence[int]) -> str:
    return " + ".join(map(str, counts)) or "no"
