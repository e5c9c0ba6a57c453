"""Models on several cores of this computer by its clock, beside one core.

A plausibility check of the counts of `benchmarks/parallel.py`. Needs an idle machine with that many cores.

    python benchmarks/wall_clock.py 2 MODEL.onnx ... [--runs 50]

The same programs as on boards run as processes, cores as threads. Microseconds are the least of the runs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.deployment import Deployment
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples


def least_us(model: Path, cores: int, runs: int) -> float:
    """Return the shortest run of the unsplit plan."""
    target, options = Target(load_board("host")), Options(split=False, cores=cores)
    planned = find_plans(load_model(model), target.board, options)
    deployment = Deployment.of(planned, planned.baseline, target.board, options)
    sample = load_samples(deployment.model.graph, [], [], 0)[0]
    storage = Storage.of(deployment.plan)
    with open_device(target, deployment.build(target)) as device:
        return min(run_once(device, storage, sample.stored) for _ in range(runs)) / 1000


def main() -> int:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cores", type=int)
    parser.add_argument("models", metavar="MODEL.onnx", type=Path, nargs="+")
    parser.add_argument("--runs", type=int, default=50)
    arguments = parser.parse_args()
    print(f"| model | one core, us | {arguments.cores} cores, us | faster |\n|---|---|---|---|")
    for model in arguments.models:
        one, several = (least_us(model, cores, arguments.runs) for cores in (1, arguments.cores))
        print(f"| {model.parent.name} | {one:,.0f} | {several:,.0f} | {one / several:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
