"""Interrupts commands at random moments. They end with the best plan so far (0), or with 130, in order.

    python benchmarks/interrupts.py [--moments 30] [--seed 0] [--commands plan tune ...] [--time-limit 5]

A command runs to its end first; moments are drawn from the time that this took. With `--twice` another Ctrl-C
follows soon, after which only 0 and 130 may come as well. Tables are for docs/reliability.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
_MODEL = REPOSITORY / "examples" / "vww" / "model.onnx"
_BOARD = ["--board", "stm32f405"]
_UNSEEMLY = re.compile(r"Traceback|SystemError|ImportError|Exception ignored|internal error|Fatal Python")
_BEGUN = re.compile(r"mcudeploy/(?!__main__|__init__|common/(__init__|interrupts))\w+")
"""Maximum lines of a traceback: modules that are imported before Ctrl-C is handled show less."""

_PATIENCE_S = 600.0
COLUMNS = ("command", "runs", "best so far (0)", "130", "python's own", "wrong", "slowest end, s")


@dataclass
class Tally:
    """Counts of how the runs of one command ended."""

    counts: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    wrong: list[str] = field(default_factory=list)


def commands(folder: Path, seconds: float = 5.0) -> dict[str, list[str]]:
    """Return the command lines, with their files in a folder."""
    rng = random.Random(1)
    with (folder / "rects.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "lower", "upper", "size"))
        for number in range(300):
            lower = rng.randrange(400)
            rows.writerow((number, lower, lower + rng.randint(5, 120), rng.randint(1, 40) * 8))
    nodes = [
        {
            "id": at,
            "op": "op",
            "inputs": sorted({rng.randrange(at) for _ in range(2)} if at else ()),
            "outputs": [at],
        }
        for at in range(120)
    ]
    graph = {"nodes": nodes, "tensors": [{"bytes": rng.randint(1, 99)} for _ in nodes], "outputs": [119]}
    (folder / "graph.json").write_text(json.dumps(graph))
    model, search = str(_MODEL), ["--time-limit", str(seconds)]
    return {
        "plan": ["plan", model, *_BOARD, *search],
        "tune": ["tune", model, *_BOARD, "--emulate", *search],
        "run": ["run", model, *_BOARD, "--emulate", *search],
        "place": ["graph", "place", "rects.csv", "--capacity", "40k", *search],
        "schedule": ["graph", "order", "graph.json", *search],
    }


def start(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start the command in a separate process group, as a terminal would."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    return subprocess.Popen(
        [sys.executable, "-m", "mcudeploy", *arguments, "--json"],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY), "MCUDEPLOY_CACHE_DIR": str(folder / "cache")},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def fault(code: int, out: str, err: str) -> str | None:
    """Return the fault in the end of a run, if any."""
    if _UNSEEMLY.search(err):
        return f"stderr: {err.strip().splitlines()[-1]}"
    if code not in (0, 130):
        return f"exit code {code}: {err.strip()[-200:]}"
    try:
        report = json.loads(out)
    except ValueError:
        return f"exit code {code}, stdout is not one JSON object: {out[:80]!r}"
    if ("error" in report) != (code == 130):
        return f"exit code {code}, but stdout says {out[:80]!r}"
    return None


def interrupted(arguments: list[str], folder: Path, delay_s: float, twice: bool, tally: Tally) -> None:
    """Run once, interrupted after `delay_s` seconds."""
    process = start(arguments, folder)
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGINT)
    since = time.monotonic()
    if twice:
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
    try:
        out, err = process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        tally.wrong.append(f"after {delay_s:.2f} s: does not end")
        return
    tally.slowest_s = max(tally.slowest_s, time.monotonic() - since)
    killed = process.returncode in (1, 130) and err.rstrip().endswith("KeyboardInterrupt")
    by_python = process.returncode == -signal.SIGINT or killed
    if by_python and not _BEGUN.search(err):
        tally.counts["own"] += 1  # Python itself was starting
        return
    wrong = fault(process.returncode, out, err)
    if wrong:
        tally.wrong.append(f"after {delay_s:.2f} s: {wrong}")
    else:
        tally.counts[str(process.returncode)] += 1


def main() -> None:
    """Print a table, and the runs that ended wrongly."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--moments", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="*", default=None)
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds of search")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mcudeploy-interrupts-"))
    try:
        known = commands(folder, arguments.time_limit)
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        failed = False
        for name in arguments.commands or known:
            failed |= bool(measured(name, known[name], folder, arguments))
        sys.exit(failed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measured(name: str, arguments: list[str], folder: Path, options: argparse.Namespace) -> list[str]:
    """Print the row of a command; return its faults."""
    rng = random.Random(f"{options.seed} {name}")
    for _ in range(2):  # the first compiles, and fills the cache
        began = time.monotonic()
        process = start(arguments, folder)
        out, err = process.communicate()
        whole_s = time.monotonic() - began
    if process.returncode:
        sys.exit(f"{name} fails without an interrupt: {out}\n{err}")
    tally = Tally()
    for _ in range(options.moments):
        interrupted(arguments, folder, rng.uniform(0, whole_s), options.twice, tally)
    counts = tally.counts
    cells = (name, options.moments, counts["0"], counts["130"], counts["own"], len(tally.wrong))
    print(f"| {' | '.join(map(str, cells))} | {tally.slowest_s:.1f} |", flush=True)
    for one in tally.wrong:
        print(f"{name} {one}", file=sys.stderr, flush=True)
    return tally.wrong


if __name__ == "__main__":
    main()
