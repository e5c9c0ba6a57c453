"""Models on several cores of a board in the emulator, beside one core: a Markdown table.

    python benchmarks/parallel.py mps2-an521 2 MODEL.onnx ... [--no-split] [--stream-input] [--max-overhead 5]

Latencies are instructions along the critical path, waits left out; of one core all instructions. Outputs are
verified, or the run fails. Overhead is of each plan over the unsplit one on as many cores.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import run_model
from mcudeploy.common.errors import DeployError
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

COLUMNS = (
    "model", "plan", "cores", "one core", "arena", "several cores", "arena", "faster", "arena ratio", "waits",
)  # fmt: skip


def row(model: Path, target: Target, options: Options, overhead: float) -> tuple[str, ...]:
    """Return a line of the table; the plan for several cores may exceed the unsplit one by `overhead`
    percent.
    """
    how = ("streamed" if options.stream_input else "whole") if options.split else "unsplit"
    head = (model.parent.name, how, str(options.cores))
    try:
        one = _run(model, target, replace(options, cores=1))
        several = _run(model, target, replace(options, max_overhead=overhead))
    except DeployError as error:
        return (*head, *[""] * 6, f"FAILED: {error}")
    return (
        *head,
        f"{one['latency']['value']:,}",
        f"{one['arena_bytes']:,}",
        f"{several['latency']['value']:,}",
        f"{several['arena_bytes']:,}",
        f"{one['latency']['value'] / several['latency']['value']:.2f}",
        f"{several['arena_bytes'] / one['arena_bytes']:.3f}",
        f"{sum(several['parallel']['waits']):,}",
    )


def _run(model: Path, target: Target, options: Options) -> dict[str, Any]:
    report = as_json(run_model(model, target, options))
    if not report["verified"]:
        raise DeployError("not verified")
    return report


def main() -> int:
    """Run all, print each line when it is ready."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("board")
    parser.add_argument("cores", type=int)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--no-split", action="store_true")
    parser.add_argument("--stream-input", action="store_true")
    parser.add_argument("--max-overhead", type=float, default=5.0, help="of the plan for several cores")
    parser.add_argument("--time-limit", type=float, default=30.0)
    arguments = parser.parse_args()
    target = Target(load_board(arguments.board), emulate=True)
    options = Options(
        split=not arguments.no_split,
        stream_input=arguments.stream_input,
        time_limit=arguments.time_limit,
        cores=arguments.cores,
    )
    print("|", " | ".join(COLUMNS), "|\n|", "|".join("---" for _ in COLUMNS), "|")
    failed = False
    for model in arguments.models:
        line = row(model, target, options, arguments.max_overhead)
        failed |= line[-1].startswith("FAILED")
        print("|", " | ".join(line), "|", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
