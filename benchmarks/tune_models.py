"""Tunes models on a board and prints the results of the search as a Markdown table.

    python benchmarks/tune_models.py MODEL.onnx ... --board mps2-an386 [--max-overhead 5] [--time-limit 300]

Every model is tuned with its input whole and with its input streamed; outputs are those of the unsplit plan,
bit for bit, or the run fails.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.tune import tune_model
from mcudeploy.common.errors import DeployError
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

COLUMNS = (
    "model", "input", "unsplit arena", "arena", "peak", "steps", "unsplit latency", "overhead %",
    "predicted %", "candidates", "tiles measured", "seconds",
)  # fmt: skip


def row(model: Path, target: Target, options: Options) -> tuple[str, ...]:
    """Return a line of the table."""
    how = "streamed" if options.stream_input else "whole"
    try:
        report = as_json(tune_model(model, [target], options))
    except DeployError as error:
        return (model.parent.name, how, *[""] * 9, f"FAILED: {error}")
    search = report["search"]
    return (
        model.parent.name,
        how,
        f"{report['unsplit_arena_bytes']:,}",
        f"{report['arena_bytes']:,}",
        f"{report['peak_bytes']:,}",
        f"{report['steps']:,}",
        f"{report['unsplit_latency']['value']:,}",
        f"{report['overhead_percent']:+.2f}",
        f"{report['predicted_overhead_percent']:+.2f}",
        f"{search['candidates']:,}",
        f"{search['measured']:,}",
        f"{search['seconds']:.1f}",
    )


def main() -> int:
    """Tune all, print each line when it is ready."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--max-overhead", type=float, default=5.0)
    parser.add_argument("--time-limit", type=float, default=300.0)
    arguments = parser.parse_args()
    target = Target(load_board(arguments.board), emulate=True)
    failed = False
    for line in (COLUMNS, ["---"] * len(COLUMNS)):
        print("| " + " | ".join(line) + " |")
    for model in arguments.models:
        for stream in (False, True):
            options = Options(
                max_overhead=arguments.max_overhead, time_limit=arguments.time_limit, stream_input=stream
            )
            line = row(model, target, options)
            failed |= line[-1].startswith("FAILED")
            print("| " + " | ".join(line) + " |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
