"""Random plans on several cores, as threads with random delays between their parts.

They run under the thread sanitizer. Exits 1 if one has a race, never ends, or computes other bits than one
core.

    python benchmarks/interleavings.py --plans 200 --runs 50 --seed 0

Each plan runs --runs times, every time with other delays: --plans times --runs interleavings. Transfers are
made by the core, or in three of four batches of plans by engines in software.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("tests", "tests/plan", ".")]

from fuzzing.together import Figures, drawn, interleaved  # noqa: E402
from fuzzing.trips import MODES, Trip  # noqa: E402

_BATCH = 25


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--graphs", type=int, default=40, help="number of graphs of the plans")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start, wrong, trips = time.monotonic(), 0, list[Trip]()
    for batch in range(-(-arguments.plans // _BATCH)):
        batch_trips = drawn(
            min(_BATCH, arguments.plans - batch * _BATCH), arguments.seed + batch, arguments.graphs
        )
        with tempfile.TemporaryDirectory(prefix="mcudeploy-together-") as folder:
            for line in interleaved(batch_trips, Path(folder), arguments.runs, MODES[batch % len(MODES)]):
                print(line, flush=True)
                wrong += 1
        trips += batch_trips
        print(f"{time.monotonic() - start:.0f} s: {len(trips)} plans", file=sys.stderr, flush=True)
    _print(trips, arguments.runs, wrong, time.monotonic() - start)
    return int(wrong > 0)


def _print(trips: list[Trip], runs: int, wrong: int, seconds: float) -> None:
    plans = [trip.judged.plan for trip in trips]
    ways = ", ".join(f"{count} {way}" for way, count in Counter(trip.judged.way for trip in trips).items())
    lanes = sorted(Counter(len(plan.lanes) for plan in plans).items())
    cores = ", ".join(f"{count} for {number} cores" for number, count in lanes)
    figures, steps = Figures.of(plans), sum(len(plan.schedule.steps) for plan in plans)
    moves = sum(len(plan.layout.transfers) for plan in plans)
    graphs = len({id(trip.base) for trip in trips})
    print(f"{len(plans)} plans ({ways}; {cores}), {graphs} graphs, {steps} steps")
    print(f"  {figures.parts} parts, {figures.columns} of columns, {figures.awaits} waits, {moves} transfers")
    print(f"  {len(plans) * runs} interleavings, {wrong} plans wrong, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
