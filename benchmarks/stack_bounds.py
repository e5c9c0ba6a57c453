"""The painted stack of every model on boards, beside its bound; prints a Markdown table.

python benchmarks/stack_bounds.py MODELS --board mps2-an386 [--board ...] [--no-split]

MODELS contains folders with a model.onnx. Runs each plan once in the board's emulator, on a drawn input; exit
1 if a stack exceeds its bound, or there is none.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import DeployError, FitError
from mcudeploy.device.target import Target, open_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain.stack import stack_bound
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples

SLACK_BYTES = 64


def figures(model: Path, target: Target, options: Options) -> tuple[int, int, int] | None:
    """Return painted stack, bound, and the bound of the library, in bytes; None if there is no bound."""
    deployment = plan_model(model, target.board, options)
    sample = load_samples(deployment.model.graph, [], [], options.seed)[0]
    firmware = deployment.build(target)
    bound = stack_bound(firmware)
    with open_device(target, firmware, deployment.patience_s) as device:
        run_once(device, Storage.of(deployment.plan), sample.stored)
        painted = device.session.stack().used_bytes
    return bound and (painted, bound.program_bytes, bound.library_bytes)


def main() -> int:
    """Run all, print the table and the exceptions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board", action="append", required=True)
    parser.add_argument("--no-split", action="store_true", help="unsplit plans, as the option of mcudeploy")
    arguments = parser.parse_args()
    models = [path for root in arguments.models for path in sorted(root.glob("**/model.onnx"))]
    options = Options(split=not arguments.no_split, time_limit=2, name="model")
    runs = loose = wrong = 0
    print("| board | model | painted | bound | of the library |\n|---|---|---|---|---|")
    for name in arguments.board:
        for model in models:
            try:
                stacks = figures(model, Target(load_board(name), emulate=True), options)
            except FitError:
                continue
            except DeployError as error:
                print(f"{name} {model.parent.name}: {error}", file=sys.stderr)
                continue
            painted, bound, library = stacks or (0, -1, 0)
            runs += 1
            wrong += painted > bound
            loose += bound > painted + SLACK_BYTES
            print(f"| {name} | {model.parent.name} | {painted} | {bound} | {library} |", flush=True)
    print(f"\n{runs} runs, {wrong} above the bound, {loose} more than {SLACK_BYTES} B below it")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
