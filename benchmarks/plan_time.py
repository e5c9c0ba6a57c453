"""CPU time of `plan` against its time limit, and whether a busy machine finds the same plan.

    python benchmarks/plan_time.py MODELS... [--board mps2-an386] [--time-limit 10] [--twice]

MODELS are ONNX files, or folders that are searched for model.onnx. `cpu` are the seconds of processor time of
the whole command, start and compiled loops included. With --twice each model is planned again beside a
process for every core that computes without end; `same` says whether both plan files have the same bytes.
Exit 1 if the CPU time is above 1.25 times the limit, or plans differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST = 1.25
COLUMNS = ("model", "arena", "candidates", "cpu s", "of the limit", "same")


def planned(model: Path, plan: Path, board: str, seconds: float) -> tuple[dict[str, object], float]:
    """Return the JSON of `plan`, and its seconds of CPU time."""
    command = [sys.executable, "-m", "mcudeploy", "plan", str(model), "--board", board, "--json", "--fresh"]
    before = os.times()
    done = subprocess.run(
        [*command, "--time-limit", str(seconds), "-o", str(plan), "--force"], capture_output=True, check=False
    )
    after = os.times()
    if done.returncode not in (0, 4, 5):
        raise SystemExit(f"{model}: exit code {done.returncode}: {done.stderr.decode()}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return json.loads(done.stdout) if done.returncode == 0 else {}, cpu_s


@contextmanager
def busy() -> Iterator[None]:
    """Run a process for every core that computes without end."""
    processes = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--twice", action="store_true", help="again on a busy machine")
    arguments = parser.parse_args()
    models = sorted(
        model
        for path in arguments.models
        for model in (path.rglob("model.onnx") if path.is_dir() else [path])
    )
    fault = False
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "first.plan", Path(folder) / "second.plan"
        for model in models:
            plan, cpu_s = planned(model, first, arguments.board, arguments.time_limit)
            same = ""
            if arguments.twice and plan:
                with busy():
                    planned(model, second, arguments.board, arguments.time_limit)
                is_same = first.read_bytes() == second.read_bytes()
                same, fault = "yes" if is_same else "NO", fault or not is_same
            name = model.parent.name if model.name == "model.onnx" else model.stem
            share = cpu_s / arguments.time_limit
            arena = f"{plan['arena_bytes']:,}" if plan else "does not fit"
            candidates = plan["search"]["candidates"] if plan else ""
            print(f"| {name} | {arena} | {candidates} | {cpu_s:.1f} | {share:.2f} | {same} |", flush=True)
            fault |= share > MOST
    return int(fault)


if __name__ == "__main__":
    sys.exit(main())
