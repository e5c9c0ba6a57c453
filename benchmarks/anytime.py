"""Arenas of `plan` with rising time limits: more time never needs more memory.

    python benchmarks/anytime.py MODELS... [--board mps2-an386] [--time-limits 5,20,60]

MODELS are ONNX files, or folders that are searched for model.onnx. A cell has the arena in bytes and, in
brackets, the seconds of processor time of the whole command as a part of its limit.
Exit 1 if an arena grows with the limit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from plan_time import planned


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--time-limits", default="5,20,60")
    arguments = parser.parse_args()
    limits = [float(seconds) for seconds in arguments.time_limits.split(",")]
    models = sorted(
        model
        for path in arguments.models
        for model in (path.rglob("model.onnx") if path.is_dir() else [path])
    )
    grows = False
    print("| model | " + " | ".join(f"{seconds:g} s" for seconds in limits) + " |")
    print("| --- |" + " --- |" * len(limits))
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            name = model.parent.name if model.name == "model.onnx" else model.stem
            print(f"| {name} |", end="", flush=True)
            arenas: list[float] = []
            for seconds in limits:
                plan, cpu_s = planned(model, Path(folder) / "first.plan", arguments.board, seconds)
                arenas.append(float(str(plan["arena_bytes"])) if plan else float("inf"))
                arena = f"{arenas[-1]:,.0f}" if plan else "does not fit"
                print(f" {arena} ({cpu_s / seconds:.2f}) |", end="", flush=True)
            print(flush=True)
            grows |= any(more > less for less, more in pairwise(arenas))
    return int(grows)


if __name__ == "__main__":
    sys.exit(main())
