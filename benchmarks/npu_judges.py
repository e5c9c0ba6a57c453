"""Random graphs on an Ethos-U against the core's kernels, and mutants of streams against the checker.

    python benchmarks/npu_judges.py --graphs 2000 --mutants 1000 [--seed 0] [--keep FOLDER]

Graphs are ONNX files (even seeds) and .tflite files with int8 or int16 operators that a unit can compute; it
computes all of these. The plan without cuts is judged by ONNX Runtime and LiteRT's reference kernels. That of
the core's kernels, one with random cuts and, of each fourth seed, one that a search has cut have the same
bytes. Units of 64, 128 and 256 multipliers take turns. Graphs without such an operator do not count.

A mutant is a stream of a random convolution, pool, operation of two operands or copy in which one register
moves or resizes what the unit touches, is missing or is set twice, or in which an operation runs that nothing
waits for. By the functional model it has another result.

Exits 1 if a graph is wrong, or if the checker accepts a mutant. Without ethos-u-vela nothing is judged.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path

import onnx

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS / folder) for folder in (".", "ethos_u", "ops", "deploy", "..")]

from fuzzing.flat import DrawnFile, draw_flat  # noqa: E402
from fuzzing.generate import draw  # noqa: E402
from fuzzing.running import BAD, Subject, examine  # noqa: E402
from fuzzing.units import on_unit, runs_on_unit  # noqa: E402

MACS = (64, 128, 256)
_BATCH = 20
_Drawn = tuple[str, int, onnx.ModelProto | DrawnFile]


def _graphs(first: int, folder: Path) -> Iterator[_Drawn]:
    """Yield the graphs with an operator that a unit computes, from a seed on."""
    for seed in count(first):
        drawn = draw_flat(seed) if seed % 2 else draw(seed)
        if drawn.kind == "float32":
            continue
        model = drawn if isinstance(drawn, DrawnFile) else drawn.model
        path = folder / (f"f{seed}.tflite" if seed % 2 else f"g{seed}.onnx")
        path.write_bytes(model.content if isinstance(model, DrawnFile) else model.SerializeToString())
        if runs_on_unit(path):
            yield path.stem, seed, model
        path.unlink()


def _examined(drawn: list[_Drawn], macs: int, keep: Path | None) -> tuple[Counter[str], int]:
    """Return the verdicts of graphs, and the number of their programs."""
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mcudeploy-npu-") as folder, on_unit(macs):
        subjects = examine(drawn, Path(folder))
        for subject in subjects:
            verdicts[subject.verdict] += 1
            if subject.verdict in BAD:
                _report(subject, macs, keep)
    return verdicts, sum(len(subject.plans) for subject in subjects)


def _report(subject: Subject, macs: int, keep: Path | None) -> None:
    for each in subject.findings:
        print(f"{subject.name}, {macs} MACs, {each.kind} ({each.way}): {each.text.strip()}", flush=True)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(subject.path, keep / subject.path.name)


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", type=int, default=0)
    parser.add_argument("--mutants", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    if find_spec("ethosu") is None:
        print("nothing judged: ethos-u-vela is not installed", file=sys.stderr)
        return
    from stream_mutants import accepted  # noqa: PLC0415

    start, total, programs, last = time.monotonic(), Counter[str](), 0, arguments.seed
    with tempfile.TemporaryDirectory() as folder:
        graphs = _graphs(arguments.seed, Path(folder))
        for batch, first in enumerate(range(0, arguments.graphs, _BATCH)):
            drawn = list(islice(graphs, min(_BATCH, arguments.graphs - first)))
            verdicts, built = _examined(drawn, MACS[batch % len(MACS)], arguments.keep)
            total, programs, last = total + verdicts, programs + built, drawn[-1][1]
            counts = ", ".join(f"{number} {verdict}" for verdict, number in sorted(total.items()))
            print(f"{time.monotonic() - start:.0f} s, to seed {last}: {counts}", file=sys.stderr, flush=True)
    if arguments.graphs:
        print(f"graphs: {dict(sorted(total.items()))} with {programs} programs, to seed {last}")
    missed = accepted(arguments.mutants, arguments.seed)
    if arguments.mutants:
        print(f"mutants: {arguments.mutants}, of which the checker accepts {len(missed)}")
    for each in missed:
        print(f"accepted: {each}")
    sys.exit(bool(missed) or any(total[kind] for kind in BAD))


if __name__ == "__main__":
    main()
