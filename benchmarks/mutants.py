"""Tries mutants of files that mcudeploy reads: each is accepted, or refused with mcudeploy's own error.

    python benchmarks/mutants.py --mutants 100000 --seed 1 [--kind plan] [--workers 2]

Anything else is a finding: another exception, 10 s of processor time, 1 GiB of memory, the process's death.
Findings are printed with the number of their first mutant; `--only NUMBER --kind KIND` tries that one again,
with its traceback. Exit 1 if there are findings.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [
    str(TESTS / name) for name in (".", "mutants", "frontend", "frontend/tflite", "deploy", "units")
]

from mutant_runner import Tally, run  # noqa: E402
from mutant_subjects import KINDS  # noqa: E402

SHARES = {
    "onnx": 0.25,
    "tflite": 0.1,
    "plan": 0.2,
    "board": 0.1,
    "database": 0.15,
    "frames": 0.1,
    "samples": 0.05,
    "maps": 0.05,
}
"""Number of all mutants, if no kind is asked for."""


def again(kind: str, seed: int, number: int) -> None:
    """Try one mutant again, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        KINDS[kind](Path(folder))(random.Random(f"{kind} {seed} {number}"))


def tried(kind: str, seed: int, count: int, workers: int) -> Tally:
    """Try all mutants of a kind, dealt out to the workers."""
    with ThreadPoolExecutor(workers) as pool:
        tallies = pool.map(
            lambda first: run(KINDS[kind], kind, seed, range(first, count, workers)), range(workers)
        )
        return _sum(list(tallies))


def _sum(tallies: list[Tally]) -> Tally:
    total = Tally(sum(each.taken for each in tallies), sum((each.refused for each in tallies), Counter()))
    for tally in tallies:
        for what, numbers in tally.findings.items():
            total.findings.setdefault(what, []).extend(numbers)
    return total


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", type=int)
    arguments = parser.parse_args()
    kinds = arguments.kind or list(KINDS)
    if arguments.only is not None:
        again(kinds[0], arguments.seed, arguments.only)
        return
    whole = sum(SHARES[kind] for kind in kinds)
    findings = 0
    for kind in kinds:
        start = time.monotonic()
        tally = tried(
            kind, arguments.seed, round(arguments.mutants * SHARES[kind] / whole), arguments.workers
        )
        refused = ", ".join(f"{count} {name}" for name, count in sorted(tally.refused.items()))
        print(
            f"{kind}: {tally.taken} taken, refused: {refused}; {time.monotonic() - start:.0f} s", flush=True
        )
        for what, numbers in sorted(tally.findings.items(), key=lambda each: -len(each[1])):
            print(f"  {len(numbers)} x {what} (first: {min(numbers)})", flush=True)
        findings += len(tally.findings)
    sys.exit(findings > 0)


if __name__ == "__main__":
    main()
