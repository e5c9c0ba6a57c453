"""The functions that the board passes through in `mcudeploy plan`, in the order of their first calls.

    python benchmarks/board_walk.py MODEL.onnx [BOARD]

A function is listed if an argument is a `Board`. A `^` marks a climb: the caller of the function is not the
function above it, so a reader goes back up. The offsets are there with `_banks`.
Fails after more than MOST climbs to them.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import mcudeploy
from mcudeploy.boards.board import Board
from mcudeploy.cli.main import cli

ROOT = Path(mcudeploy.__file__).parent
OFFSETS = "planner/place/solve.py:_banks"
MOST = 12


@dataclass
class Walk:
    """`rows`: depth and name of each function, and whether its caller is elsewhere."""

    rows: list[tuple[int, str, bool]] = field(default_factory=list)
    _stack: list[str] = field(default_factory=list)
    _last: str = ""

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Follow the calls; for `sys.setprofile`."""
        if event == "return" and self._stack:
            self._stack.pop()
        elif event == "call":
            name = self._name(frame)
            callers = [each for each in self._stack if each]
            if name and name not in {row[1] for row in self.rows}:
                self.rows.append((len(callers), name, bool(self._last) and callers[-1:] != [self._last]))
                self._last = name
            self._stack.append(name)

    def _name(self, frame: FrameType) -> str:
        """Return the name of a function of mcudeploy that takes a board; empty for others."""
        code = frame.f_code
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = [frame.f_locals.get(name) for name in arguments if name != "self"]
        boards = [each for it in values for each in (it if isinstance(it, tuple) else (it,))]
        if "<" in code.co_name or not any(isinstance(it, Board) for it in boards):
            return ""
        path = Path(code.co_filename)
        return f"{path.relative_to(ROOT)}:{code.co_qualname}" if path.is_relative_to(ROOT) else ""

    def climbs(self, until: str = "") -> int:
        """Return the climbs up to a function, or all of them."""
        names = [name for _, name, _ in self.rows]
        end = names.index(until) + 1 if until else len(names)
        return sum(up for _, _, up in self.rows[:end])


def main() -> int:
    """Print the walk."""
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    walk, board = Walk(), sys.argv[2] if len(sys.argv) > 2 else "stm32f405"
    with TemporaryDirectory() as folder:  # measured times would lengthen the walk
        os.environ["MCUDEPLOY_CACHE_DIR"] = folder
        sys.setprofile(walk.profile)
        try:
            cli.main(["plan", sys.argv[1], "--board", board, "--time-limit", "1", "--quiet"])
        except SystemExit as end:
            code = int(end.code or 0)
        sys.setprofile(None)
    for depth, name, up in walk.rows:
        print(f"{'^' if up else ' '} {'  ' * depth}{name}")
    print(f"{walk.climbs(OFFSETS)} climbs to the offsets, {walk.climbs()} in all")
    return code or int(walk.climbs(OFFSETS) > MOST)


if __name__ == "__main__":
    sys.exit(main())
