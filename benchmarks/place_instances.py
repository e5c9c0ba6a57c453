"""Places allocation benchmarks and prints the results as a Markdown table. Each has passed the checker.

    python benchmarks/place_instances.py RECTS.csv ... [--capacity 1048576] [--time-limit 60] [--fewest]

The greedy column is first fit alone, as a share of the capacity.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from mcudeploy.checker.offsets import check_offsets
from mcudeploy.common.effort import Effort
from mcudeploy.extensions.graphs.rectfile import read_rectangles
from mcudeploy.ir.rectangles import PlacementProblem
from mcudeploy.planner.place.place import place


def row(path: Path, capacity: int, seconds: float, fewest: bool) -> tuple[bool, tuple[str, ...]]:
    """Return whether the instance fits, and its line of the table."""
    rectangles = tuple(named.rectangle for named in read_rectangles(path))
    greedy = place(PlacementProblem(rectangles), capacity, Effort(0)).used_bytes
    wall, cpu = time.monotonic(), time.process_time()
    placed = place(PlacementProblem(rectangles), capacity, Effort.of(seconds), fewest=fewest)
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    check_offsets(PlacementProblem(rectangles), placed.offsets)
    used = placed.used_bytes
    cells = (
        path.name, f"{len(rectangles)}", f"{greedy / capacity:.3f}", f"{used:,}", f"{used / capacity:.3f}",
        f"{placed.lower_bound_bytes:,}", placed.status, f"{wall:.1f}", f"{cpu:.1f}",
    )  # fmt: skip
    return used <= capacity, cells


def main() -> None:
    """Print the table; exit code 1 if an instance does not fit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("instances", type=Path, nargs="+")
    parser.add_argument("--capacity", type=int, default=1 << 20)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--fewest", action="store_true", help="go on to fewer bytes than the capacity")
    arguments = parser.parse_args()
    print("| instance | rectangles | greedy | used | share | lower bound | status | seconds | CPU seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    fitted = True
    for path in arguments.instances:
        fits, cells = row(path, arguments.capacity, arguments.time_limit, arguments.fewest)
        fitted = fitted and fits
        print("| " + " | ".join(cells) + " |", flush=True)
    sys.exit(0 if fitted else 1)


if __name__ == "__main__":
    main()
