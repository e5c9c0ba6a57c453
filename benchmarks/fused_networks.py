"""Random networks of bottlenecks with fused chains: outputs, both checkers, and blocks that overlap.

    python benchmarks/fused_networks.py --networks 300 --mutants 500 --seed 0 [--ways fused,split]

Each network is planned in the ways of benchmarks/fuzz.py, of which `fused` has random chains, by random rows
and groups of channels. Every plan must have the outputs of the unsplit one, which is held to ONNX Runtime,
and both checkers must accept it. Of mutants, whose blocks or scratch lie elsewhere, both checkers must say
the same, and one that they accept must have equal outputs. Exits 1 if one is wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("tests", ".")]

from fuzzing.chains import draw_bottlenecks  # noqa: E402
from fuzzing.overlaps import examine_mutants  # noqa: E402
from fuzzing.running import BAD, examine  # noqa: E402

_BATCH = 10


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--mutants", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="of the first network; the others follow")
    parser.add_argument("--ways", help="only these plans beside the unsplit one, separated by commas")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    start, counts, bad = time.monotonic(), Counter[str](), 0
    ways = None if arguments.ways is None else arguments.ways.split(",")
    end = arguments.seed + arguments.networks
    for first in range(arguments.seed, end, _BATCH):
        seeds = range(first, min(end, first + _BATCH))
        with tempfile.TemporaryDirectory(prefix="mcudeploy-fused-") as folder:
            models = [(f"g{seed}", seed, draw_bottlenecks(seed).model) for seed in seeds]
            subjects = examine(models, Path(folder), ways)
            share = arguments.mutants * (seeds.stop - arguments.seed) // arguments.networks
            tally = examine_mutants(subjects, share - counts["mutants"], first, Path(folder) / "mutants")
        findings = [f"{it.name} {each}" for it in subjects for each in it.findings if each.kind in BAD]
        for line in (*findings, *tally.findings):
            bad += 1
            print(line, flush=True)
        plans = [judged.plan for it in subjects for judged, _ in it.plans]
        counts.update(it.verdict for it in subjects)
        counts.update({"plans": len(plans), "with fused chains": sum(bool(it.form.fused) for it in plans)})
        counts.update(tally.counts)
        text = ", ".join(f"{count} {name}" for name, count in counts.items())
        print(f"{time.monotonic() - start:.0f} s: {text}, {bad} findings", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
