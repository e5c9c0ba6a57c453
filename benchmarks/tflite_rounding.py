"""The distance of programs from LiteRT's reference kernels, which round twice; a Markdown table.

    python benchmarks/tflite_rounding.py model.tflite... --samples 50 [--inputs FOLDER]

Every operator is run on LiteRT's own inputs, then the whole model. Inputs are random, over their whole range;
with --inputs they are all input_0.npy below the folder in FOLDER with the model's name.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from functools import reduce
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS / "frontend" / "tflite"))

from against_litert import Rounding, rounding  # noqa: E402

from mcudeploy.verify.difference import Difference  # noqa: E402

COLUMNS = ("model", "operators: differ / elements, worst", "outputs: differ / elements, worst", "other top")


def cell(name: str, difference: Difference) -> str:
    """Return one difference as text."""
    share = 100 * difference.mismatches / max(difference.elements, 1)
    return (
        f"{name}{difference.mismatches:,} / {difference.elements:,} ({share:.2g} %), {difference.worst:g} LSB"
    )


def by_kind(rounding: Rounding) -> dict[str, Difference]:
    """Return the operators of one kind together."""
    groups: dict[str, list[Difference]] = defaultdict(list)
    for name, each in rounding.operators.items():
        groups[rounding.kinds[name]].append(each)
    merged = {}
    for kind, differences in groups.items():
        merged[kind] = reduce(Difference.merge, differences)
    return merged


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--inputs", type=Path)
    options = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for path in options.models:
        files = [] if options.inputs is None else sorted((options.inputs / path.stem).rglob("input_0.npy"))
        roundings = rounding(path, options.samples, [np.load(file) for file in files])
        operators = "; ".join(cell(f"{kind} ", each) for kind, each in by_kind(roundings).items())
        tops = f"{roundings.tops} of {roundings.samples}"
        print(f"| {path.stem} | {operators} | {cell('', roundings.outputs)} | {tops} |", flush=True)


if __name__ == "__main__":
    main()
