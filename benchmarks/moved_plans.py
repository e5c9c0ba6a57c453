"""Random plans with blocks that move between memories. Exits 1 if one computes other bits.

    python benchmarks/moved_plans.py --plans 1000 --boards 50 --seed 0

--plans: number of plans built for the host under sanitizers. The core copies, and engines in software at the
start of a transfer, at its wait, or half at each; outputs are compared with those of the plans without moves.
--boards: number of the planner's plans that run on mps2-an505 in its emulator, whose PL081 transfers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("tests", "tests/plan", ".")]

from fuzzing.trips import MODES, Trip, crossings, differing, differing_on, drawn, drawn_by_planner  # noqa: E402

from mcudeploy.boards.catalogue import load_board  # noqa: E402

_BATCH = 50


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plans", type=int, default=1000)
    parser.add_argument("--boards", type=int, default=50)
    parser.add_argument("--graphs", type=int, default=60, help="number of graphs of the plans")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start, wrong, trips = time.monotonic(), list[str](), list[Trip]()
    for batch in range(-(-arguments.plans // _BATCH)):
        count = min(_BATCH, arguments.plans - batch * _BATCH)
        batch_trips = drawn(count, arguments.seed + batch, arguments.graphs)
        with tempfile.TemporaryDirectory(prefix="mcudeploy-trips-") as folder:
            wrong += _told(differing(batch_trips, Path(folder)))
        trips += batch_trips
        print(f"{time.monotonic() - start:.0f} s: {len(trips)} plans", file=sys.stderr, flush=True)
    if trips:
        _print(trips, f"plans on the host in {len(MODES)} modes", len(wrong), time.monotonic() - start)
    start = time.monotonic()
    if arguments.boards:
        board = load_board("mps2-an505")
        planned = drawn_by_planner(arguments.boards, arguments.seed, arguments.graphs, board)
        with tempfile.TemporaryDirectory(prefix="mcudeploy-trips-") as folder:
            on_board = _told(differing_on(planned, Path(folder)))
        _print(planned, f"plans on {board.name}", len(on_board), time.monotonic() - start)
        wrong += on_board
    return int(bool(wrong))


def _told(lines: Iterable[str]) -> list[str]:
    names = []
    for line in lines:
        print(line, flush=True)
        names.append(line)
    return names


def _print(trips: Sequence[Trip], what: str, wrong: int, seconds: float) -> None:
    plans = [trip.judged.plan for trip in trips]
    across, flying = (sum(each) for each in zip(*map(crossings, plans), strict=True))
    ways = ", ".join(f"{count} {way}" for way, count in Counter(trip.judged.way for trip in trips).items())
    steps = sum(len(plan.schedule.steps) for plan in plans)
    transfers = sum(len(plan.layout.transfers) for plan in plans)
    print(f"{len(plans)} {what} ({ways}), {len({id(trip.base) for trip in trips})} graphs, {steps} steps")
    print(f"  {transfers} transfers, {across} between memories, {flying} of them in flight over steps")
    print(f"  {wrong} wrong, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
