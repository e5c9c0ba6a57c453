"""Sessions with the measurer over a bad serial line: each is correct, or ends in one protocol error.

    python benchmarks/line_faults.py --runs 10000 --seed 1 [--workers 4]

The measurer is the host's, at a pseudo terminal; bytes are lost, damaged, inserted, repeated and delayed,
the board is reset or unplugged. Prints how the sessions ended. Exit 1 if a result was wrong, an error was not
the protocol's, or a session hung; `--runs 1 --seed SEED` repeats such a session.
"""

from __future__ import annotations

import argparse
import multiprocessing
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "device"))

from line_runs import one_run
from measurer_program import build_program

HANGS_S = 60


class HangError(Exception):
    """A session does not end."""


def _hangs(*_: object) -> None:
    raise HangError(f"no end after {HANGS_S} s")


def ended(program: Path, seed: int) -> tuple[int, str, bool, float]:
    """Return seed, end of the session, whether that is a fault, and seconds."""
    signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(HANGS_S)
    start = time.monotonic()
    try:
        how, fault = one_run(program, seed), False
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        how, fault = f"{type(error).__name__} in {place.name}: {error}", True
    signal.alarm(0)
    return seed, how, fault, time.monotonic() - start


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    longest, faults = 0.0, 0
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool(arguments.workers) as pool:
        run = partial(ended, build_program(Path(folder)))
        seeds = range(arguments.seed, arguments.seed + arguments.runs)
        for seed, how, fault, seconds in pool.imap_unordered(run, seeds):
            longest = max(longest, seconds)
            faults += fault
            counts[how if not fault else "FAULT"] += 1
            if fault:
                print(f"seed {seed}: {how}", flush=True)
    for how, count in counts.most_common():
        print(f"{count:6} {how}")
    print(f"{arguments.runs} sessions, {faults} faults, the longest {longest:.1f} s")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
