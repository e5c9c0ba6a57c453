"""The gain of removing constant and unread channels: a Markdown table of models with and without them.

Exits 1 if an output differs in a bit.

    python benchmarks/constant_channels.py MODEL.onnx ... [--board mps2-an386] [--inputs 100]

Plans are unsplit. Outputs of both programs are compared on this computer, for random inputs; runs on the
board are verified. Models without such channels have no line.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernels import print_table

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import run_model
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import RunRequest
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.report import as_json
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples

COLUMNS = (
    "model", "channels", "removed", "MACs", "weights", "arena", "flash", "instructions", "cycles (modelled)",
    "outputs",
)  # fmt: skip
_UNSPLIT = Options(split=False, time_limit=5)


def outputs(path: Path, options: Options, count: int) -> list[bytes]:
    """Return the stored outputs of the program on this computer, for random inputs."""
    target = Target(load_board("host"))
    planned = find_plans(read_model(path, options), target.board, options)
    deployment = Deployment.of(planned, planned.baseline, target.board, options)
    storage, graph = Storage.of(deployment.plan), deployment.plan.graph
    values = []
    with open_device(target, deployment.build(target)) as device:
        for seed in range(count):
            run_once(device, storage, load_samples(graph, [], [], seed)[0].stored)
            tensors = (storage.get_tensor(device, io.tensor) for io in graph.outputs)
            values.append(b"".join(tensor.tobytes() for tensor in tensors))
    return values


def figures(path: Path, target: Target, options: Options) -> dict[str, Any]:
    """Return a verified run on the board, with modelled cycles."""
    report = as_json(run_model(path, target, options, RunRequest(timing="cycles-model")))
    if not report["verified"]:
        raise SystemExit(f"{path}: not verified")
    return report


def main() -> int:
    """Print the table; return 1 if outputs differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", metavar="MODEL.onnx", type=Path, nargs="+")
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--inputs", type=int, default=100)
    arguments = parser.parse_args()
    target, rows, wrong = Target(load_board(arguments.board), emulate=True), [], 0
    kept = replace(_UNSPLIT, keep_constant=True)
    for path in arguments.models:
        if read_model(path, _UNSPLIT).graph.trimmed is None:
            continue
        both = [outputs(path, options, arguments.inputs) for options in (kept, _UNSPLIT)]
        differing = sum(one != other for one, other in zip(*both, strict=True))
        wrong += differing
        for name, options in (("kept", kept), ("removed", _UNSPLIT)):
            row = figures(path, target, options)
            removed = row["constant_channels"]
            rows.append(
                (
                    path.parent.name, name, removed["channels"] if removed else 0, f"{row['macs']:,}",
                    f"{row['weights_bytes']:,}", f"{row['arena_bytes']:,}", f"{row['flash_bytes']:,}",
                    f"{row['cycles_model']['instructions']:,}", f"{row['latency']['value']:,}",
                    f"{arguments.inputs - differing} of {arguments.inputs} equal",
                )
            )  # fmt: skip
    print_table(COLUMNS, rows)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
