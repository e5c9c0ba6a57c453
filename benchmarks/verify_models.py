"""Runs every model of a folder on boards with all its samples; prints a Markdown table of their needs.

    python benchmarks/verify_models.py MODELS --board mps2-an386 [--board ...] [--only int8]

MODELS contains folders with model.onnx, input_<k>.npy, output_<k>.npy and further samples in sample_<n>/.
A model that does not fit a board is a line with the reason; exit 1 if one fits and is not verified.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import run_model
from mcudeploy.common.errors import DeployError, FitError, ModelError
from mcudeploy.device.target import Target
from mcudeploy.execution.parts import RunRequest
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

COLUMNS = (
    "model", "board", "arena", "peak", "flash", "code", "stack", "RAM", "latency", "unit", "per MAC",
    "samples", "operators: differ (at ties) / elements", "outputs: differ / elements, worst",
    "ties resolved", "verdict",
)  # fmt: skip


def samples(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return inputs and outputs of all samples, in the order of `run`."""
    folders = [folder, *sorted(folder.glob("sample_*"))]
    inputs = [path for one in folders for path in sorted(one.glob("input_?.npy"))]
    outputs = [path for one in folders for path in sorted(one.glob("output_?.npy"))]
    return inputs, outputs


def row(folder: Path, board: Board, options: Options) -> tuple[str, ...]:
    """Return a line of the table."""
    inputs, expected = samples(folder)
    start = time.monotonic()
    try:
        run = run_model(
            folder / "model.onnx",
            Target(board, emulate=True),
            replace(options, name=f"m_{folder.name}"),
            RunRequest(inputs, expected),
        )
    except (FitError, ModelError) as error:
        return (folder.name, board.name, *[""] * (len(COLUMNS) - 3), " ".join(str(error).split())[:300])
    except DeployError as error:
        return (folder.name, board.name, *[""] * (len(COLUMNS) - 3), f"FAILED: {error}"[:300])
    report = as_json(run)
    verdict = "verified" if report["verified"] else f"FAILED: {report['reason'][:200]}"
    print(f"{folder.name} {board.name} {verdict} {time.monotonic() - start:.0f} s", file=sys.stderr)
    return (folder.name, board.name, *figures(report, len(inputs)), verdict)


def figures(report: dict[str, Any], count: int) -> tuple[str, ...]:
    """Return the numbers of a line."""
    checks = report["operator_checks"].values()
    differ, ties, elements = (
        sum(check[key] for check in checks) for key in ("mismatches", "ties", "elements")
    )
    sizes = ("arena_bytes", "peak_bytes", "flash_bytes", "code_bytes", "stack_bytes", "total_ram_bytes")
    latency = report["latency"]["value"]
    return (
        *(f"{report[name]:,}" for name in sizes),
        f"{latency:,}",
        report["latency"]["unit"].removesuffix(" (model)"),
        f"{latency / report['macs']:.2f}" if report["macs"] else "",
        str(count),
        f"{differ:,} ({ties:,}) / {elements:,}",
        f"{report['mismatches']:,} / {report['elements']:,}, {report['max_abs_error']:.3g}",
        str(report["ties_resolved"]),
    )


def main() -> int:
    """Run all, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board", action="append", required=True)
    parser.add_argument("--only", default="", help="part of the model's name")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-split", action="store_true", help="unsplit plans, as the option of mcudeploy")
    parser.add_argument("--stream-input", action="store_true", help="as the option of mcudeploy")
    arguments = parser.parse_args()
    folders = [path.parent for root in arguments.models for path in sorted(root.glob("**/model.onnx"))]
    options = Options(split=not arguments.no_split, stream_input=arguments.stream_input)
    work = [(f, load_board(b)) for b in arguments.board for f in folders if arguments.only in f.name]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        rows = list(pool.map(lambda pair: row(*pair, options), work))
    for line in (COLUMNS, ["---"] * len(COLUMNS), *rows):
        print("| " + " | ".join(line) + " |")
    return int(any(line[-1].startswith("FAILED") for line in rows))


if __name__ == "__main__":
    sys.exit(main())
