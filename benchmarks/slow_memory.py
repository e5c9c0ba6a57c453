"""Plans models into fast memories that are too small, runs them in the emulator, and prints a Markdown table.

    python benchmarks/slow_memory.py mps2-an505 MODEL.onnx:sram=64k MODEL.onnx:sram=40k,psram=1M [--no-engine]

Stalls are modelled, as a part of the latency of the unsplit plan with everything in the fast memory.
--no-engine: the core copies, as if the board had no DMA.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import run_model
from mcudeploy.common.errors import DeployError
from mcudeploy.common.sizes import parse_limit
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

COLUMNS = (
    "model", "limits", "unsplit instructions", "instructions", "stalls, cycles", "of the unsplit latency",
    "arenas", "moved between memories", "CPU s",
)  # fmt: skip


def row(model: Path, limits: str, board: Board, options: Options) -> tuple[str, ...]:
    """Return a line of the table."""
    named = tuple(map(parse_limit, limits.split(",")))
    target = Target(board, emulate=True)
    try:
        unsplit = as_json(run_model(model, target, replace(options, split=False)))
        begin = time.process_time()
        report = as_json(run_model(model, target, replace(options, memory_limits=named)))
    except DeployError as error:
        return (model.parent.name, limits, *[""] * 6, f"FAILED: {error}")
    if not report["verified"]:
        return (model.parent.name, limits, *[""] * 6, "FAILED: not verified")
    moved, all_fast = report["transfers"], unsplit["latency"]["value"]
    return (
        model.parent.name,
        limits,
        f"{all_fast:,}",
        f"{report['latency']['value']:,}",
        f"{moved['exposed_ticks']:,.0f}",
        f"{100 * moved['exposed_ticks'] / all_fast:.2f} %",
        ", ".join(f"{name} {used:,}" for name, used in report["arenas"].items()),
        f"{moved['count']:,} blocks, {moved['bytes']:,} B",
        f"{time.process_time() - begin:.0f}",
    )


def main() -> int:
    """Run all, print each line when it is ready."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("board")
    parser.add_argument("cases", nargs="+", metavar="MODEL:LIMITS")
    parser.add_argument("--no-engine", action="store_true")
    parser.add_argument("--time-limit", type=float, default=60.0)
    arguments = parser.parse_args()
    board = load_board(arguments.board)
    if arguments.no_engine:
        board = board.model_copy(update={"links": ()})
    options, failed = Options(time_limit=arguments.time_limit), False
    print("|", " | ".join(COLUMNS), "|\n|", "|".join("---" for _ in COLUMNS), "|")
    for case in arguments.cases:
        model, limits = case.rsplit(":", 1)
        line = row(Path(model), limits, board, options)
        failed |= line[-1].startswith("FAILED")
        print("|", " | ".join(line), "|", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
