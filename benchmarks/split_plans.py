"""Arena and modelled cycles of the int8 models of MLPerf Tiny, cut in several ways; prints a Markdown table.

    python benchmarks/split_plans.py MODELS/mlperf_tiny [--summary] [--only vww01] [--time-limit 10]

All plans run on mps2-an386 in its emulator and are verified; exit 1 if one is not. --summary: the table of
the README, a line for each model.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import run_model
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

BOARD = "mps2-an386"


@dataclass(frozen=True, slots=True)
class Way:
    """A choice of options; `ram_limit` in bytes, `overhead` in percent."""

    streamed: bool = False
    overhead: float = 5.0
    ram_limit: int | None = None

    @property
    def text(self) -> str:
        """The options on a command line."""
        parts = ["--stream-input"] * self.streamed
        parts += [f"--max-overhead {self.overhead:g}"] * (self.overhead != 5.0)
        parts += [] if self.ram_limit is None else [f"--ram-limit {self.ram_limit}"]
        return f"`{' '.join(parts)}`" if parts else ""

    def options(self, time_limit: float) -> Options:
        """The options of a search that takes `time_limit` seconds."""
        return Options(
            stream_input=self.streamed,
            max_overhead=self.overhead,
            ram_limit=self.ram_limit,
            time_limit=time_limit,
        )


DEFAULT, MORE, MOST, STREAMED, STREAMED_MORE = Way(), Way(False, 30), Way(False, 60), Way(True), Way(True, 30)
WAYS = {
    "kws01_int8": (DEFAULT, MORE, MOST, STREAMED, STREAMED_MORE, Way(False, 100, 4700)),
    "ic01_int8": (DEFAULT, MORE, MOST, STREAMED, STREAMED_MORE, Way(False, 100, 12800)),
    "vww01_int8": (DEFAULT, MORE, STREAMED, STREAMED_MORE, Way(ram_limit=31000), Way(True, 100, 11000)),
}
SUMMARY = (
    ("visual wake words (vww01)", "vww01_int8", (DEFAULT, MORE)),
    ("the same, input streamed", "vww01_int8", (STREAMED, STREAMED_MORE)),
    ("image classification (ic01)", "ic01_int8", (DEFAULT, MOST)),
    ("keyword spotting (kws01)", "kws01_int8", (DEFAULT, MOST)),
)


def ran(model: Path, options: Options) -> dict[str, Any]:
    """The report of a verified run. Raises SystemExit if an output is wrong."""
    target = Target(load_board(BOARD), emulate=True)
    report = as_json(run_model(model, target, options))
    if not report["verified"]:
        raise SystemExit(f"{model} with {options} is not verified: {report['reason']}")
    return report


def cells(report: dict[str, Any], *, unit: str = "") -> str:
    """Arena and cycles for a cell of the summary."""
    return f"{report['arena_bytes']:,} B, {report['latency']['value'] / 1e6:.2f} M{unit}"


def main() -> int:
    """Run all, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--only", default="", help="part of the model's name")
    parser.add_argument("--time-limit", type=float, default=10.0, help="of a search, in seconds")
    arguments = parser.parse_args()
    if arguments.summary:
        print("| model | arena, uncut | cut, at most 5 % slower | cut, smallest here |\n|---|---|---|---|")
        for title, name, ways in [it for it in SUMMARY if arguments.only in it[1]]:
            model = arguments.models / name / "model.onnx"
            uncut = "" if ways[0].streamed else cells(ran(model, Options(split=False)), unit=" cycles")
            cut = (cells(ran(model, way.options(arguments.time_limit))) for way in ways)
            print(f"| {title} | {' | '.join((uncut, *cut))} |", flush=True)
        return 0
    print("| model | options | arena | cycles | overhead % |\n| --- | --- | --- | --- | --- |")
    for name in [it for it in WAYS if arguments.only in it]:
        for way in WAYS[name]:
            report = ran(arguments.models / name / "model.onnx", way.options(arguments.time_limit))
            figures = f"{report['arena_bytes']:,} | {report['latency']['value']:,}"
            print(f"| {name} | {way.text} | {figures} | {report['overhead_percent']:+.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
