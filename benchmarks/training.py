"""The memory and the cycles of training steps on an emulated board. Prints Markdown.

    python benchmarks/training.py MODEL.onnx[:UPDATE[:OPTION,...]] ... [--board mps2-an386] [--time-limit 20]

UPDATE is that of `mcudeploy train run`, by default `bias`. An option is `momentum` (0.9), `batch` (8),
`stream` (the input arrives by rows), `unsplit`, or a limit of latency in percent, such as `35`. Two steps on
drawn samples are run and verified. `rest` is the arena without parameters and sums of gradients; the overhead
is that over the unsplit step that keeps all tensors.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mcudeploy.frontend.load import load

CASE = re.compile(r"(?P<model>.+?\.onnx)(:(?P<update>full|bias|(last|lora):\d+))?(:(?P<options>.*))?")
ROWS = ("model", "update", "options", "arena", "parameters, sums", "rest", "flash", "cycles", "overhead")
NAMED = {
    "momentum": ("--momentum", "0.9"),
    "batch": ("--batch", "8"),
    "stream": ("--stream-input",),
    "unsplit": ("--no-split",),
}
"""Options by their names in a case."""
SUMS = {"momentum", "batch"}
"""The options with sums of gradients that stay."""


def row(case: str, board: str, time_limit: float) -> list[str]:
    """The row of a case. Raises SystemExit if a step is not verified."""
    match = CASE.fullmatch(case)
    if match is None:
        raise SystemExit(f"{case} is not MODEL.onnx[:UPDATE[:OPTION,...]]")
    model, update, options = match["model"], match["update"], match["options"] or ""
    chosen = [it for it in options.split(",") if it]
    named = Path(model).parent.name if Path(model).stem == "model" else Path(model).stem
    report = trained(
        Path(model), update or "bias", chosen, ["--board", board, "--time-limit", str(time_limit)]
    )
    unsplit = trained(
        Path(model),
        update or "bias",
        [*(it for it in chosen if it in SUMS), "unsplit"],
        ["--board", board],
    )
    training, arena = report["training"], report["arena_bytes"]
    held = training["parameter_bytes"] * (1 if SUMS.isdisjoint(chosen) else 2)
    cycles = report["latency"]["value"]
    overhead = 100 * (cycles / unsplit["latency"]["value"] - 1)
    sizes = [arena, held, arena - held, report["flash_bytes"]]
    text = [f"{size:,} B" for size in sizes]
    return [
        named,
        f"`{update or 'bias'}`",
        ", ".join(chosen),
        *text,
        f"{cycles / 1e6:.1f} M",
        f"{overhead:+.1f} %",
    ]


def trained(model: Path, update: str, chosen: list[str], options: list[str]) -> dict[str, Any]:
    """The report of `train run`."""
    command = [
        sys.executable,
        "-m",
        "mcudeploy",
        "train",
        "run",
        str(model),
        "--update",
        update,
        "--json",
        *options,
    ]
    command += ["--rate", "0.0001", "--steps", "2"]
    for option in chosen:
        command += NAMED.get(option, ("--max-overhead", option))
    with TemporaryDirectory() as folder:
        graph = load(model)
        (entry,), (output,) = graph.own_inputs(), graph.own_outputs()
        rng = np.random.default_rng(0)
        spread = 1 if entry.dtype == "float32" else 30
        drawn = rng.normal(0, spread, (2, *entry.shape[1:])).clip(-128 if spread > 1 else -np.inf, 127)
        np.save(f"{folder}/x.npy", drawn.astype(entry.dtype))
        np.save(f"{folder}/y.npy", np.arange(2) % graph.tensors[output.tensor].elements)
        command += ["--data", f"{folder}/x.npy", "--labels", f"{folder}/y.npy"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    report = json.loads(done.stdout)
    assert report["verified"], model
    return report


def lines(cases: list[str], board: str, time_limit: float) -> Iterator[str]:
    """The lines of the table."""
    yield f"| {' | '.join(ROWS)} |"
    yield f"|{'---|' * len(ROWS)}"
    for case in cases:
        yield f"| {' | '.join(row(case, board, time_limit))} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="+", metavar="MODEL.onnx[:UPDATE[:OPTION,...]]")
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--time-limit", type=float, default=20)
    options = parser.parse_args()
    for line in lines(options.cases, options.board, options.time_limit):
        print(line, flush=True)


if __name__ == "__main__":
    main()
