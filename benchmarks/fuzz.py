"""Random graphs against ONNX Runtime, planned in several ways, under sanitizers. Exits 1 if one is wrong.

    python benchmarks/fuzz.py --graphs 2000 --seed 0 --jobs 2 --keep /tmp/found
    python benchmarks/fuzz.py --graphs 0 --tflite 500
    python benchmarks/fuzz.py --graphs 0 --windows 300
    python benchmarks/fuzz.py --graphs 0 --forms 1000
    python benchmarks/fuzz.py --graphs 0 --caches 100

Most graphs have traits beside the usual layers: a batch of several, operators that are decomposed, If, Loop
and Scan, recurrent operators, activations of 16 bits, values of int32 and int64.

With --keep, each graph with a defect is stored as NAME.onnx with the findings, and a reduced one beside it.
With --tflite, graphs of .tflite files are drawn as well, and compared with LiteRT's reference kernels too.
With --windows, networks over a window that moves: each run of the program by rows (--hop), with three choices
of kept rows, must equal the program of the whole window bit for bit.
With --forms, each graph and two other forms of it (initializers as Constant nodes or as inputs, Identities,
another order of nodes, other names) must have the same outputs and the same arena.
With --caches, networks with caches that are outputs and inputs run several times in turn (--state), with
attention, packed weights, and positions within the caches and outside of them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import onnx

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("tests", ".")]

from fuzzing.caches import examine_caches  # noqa: E402
from fuzzing.flat import draw_flat  # noqa: E402
from fuzzing.forms import examine_forms  # noqa: E402
from fuzzing.generate import KINDS, TRAITS, draw, traits_of  # noqa: E402
from fuzzing.hops import examine_hops  # noqa: E402
from fuzzing.reduce import reduced  # noqa: E402
from fuzzing.running import BAD, Subject, examine  # noqa: E402

_BATCH = 20


@dataclass
class Tally:
    """Counts of outcomes."""

    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_trait: Counter[tuple[str, str]] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    programs: int = 0
    found: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.verdicts += other.verdicts
        self.by_trait += other.by_trait
        self.refusals += other.refusals
        self.programs += other.programs
        self.found += other.found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", type=int, default=60)
    parser.add_argument("--tflite", type=int, default=0, help="how many .tflite files")
    parser.add_argument("--windows", type=int, default=0, help="how many networks over windows that move")
    parser.add_argument("--forms", type=int, default=0, help="how many graphs in several forms")
    parser.add_argument("--caches", type=int, default=0, help="how many networks with caches")
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; the others follow")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="graphs without traits")
    parser.add_argument("--unsplit", action="store_true", help="only the plan that is held to the references")
    parser.add_argument("--keep", type=Path, help="a folder for graphs with defects")
    arguments = parser.parse_args()
    start = time.monotonic()
    total = Tally()
    for tally in _tallies(arguments):
        total.add(tally)
        for line in tally.found:
            print(line, flush=True)
        counts = ", ".join(f"{count} {name}" for name, count in _by_verdict(total).items())
        print(f"{time.monotonic() - start:.0f} s: {counts}", file=sys.stderr, flush=True)
    _print(total, time.monotonic() - start)
    return int(any(verdict in BAD for _, verdict in total.verdicts))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Seeds of ONNX graphs, .tflite files, networks over windows, with caches, or graphs in several forms;
    `plain`: without traits; `unsplit`: only that plan.
    """

    seeds: range
    source: Literal["onnx", "tflite", "windows", "forms", "caches"]
    plain: bool
    unsplit: bool
    keep: Path | None

    def store(self, file: Path) -> None:
        """Copy a file that shows a fault to the folder `keep`, if there is one."""
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, self.keep / file.name)


def _tallies(arguments: argparse.Namespace) -> Iterator[Tally]:
    batches = [
        _Batch(
            range(first, min(end, first + _BATCH)), source, arguments.plain, arguments.unsplit, arguments.keep
        )
        for source, end in (
            ("onnx", arguments.seed + arguments.graphs),
            ("tflite", arguments.seed + arguments.tflite),
            ("windows", arguments.seed + arguments.windows),
            ("forms", arguments.seed + arguments.forms),
            ("caches", arguments.seed + arguments.caches),
        )
        for first in range(arguments.seed, end, _BATCH)
    ]
    if arguments.jobs == 1:
        yield from map(_batch, batches)
        return
    # Spawned: the solvers have threads, which do not survive a fork.
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_batch, batches)


def _batch(batch: _Batch) -> Tally:
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="mcudeploy-fuzz-") as folder:
        if batch.source == "windows":
            return _windows(batch, Path(folder))
        if batch.source == "caches":
            return _caches(batch, Path(folder))
        examine_batch = {"onnx": _onnx, "tflite": _flat, "forms": _forms}[batch.source]
        labels, subjects = examine_batch(batch, Path(folder))
        for (kind, traits), subject in zip(labels, subjects, strict=True):
            tally.verdicts[kind, subject.verdict] += 1
            tally.by_trait.update((trait, subject.verdict) for trait in traits)
            tally.programs += len(subject.plans)
            for finding in subject.findings:
                if finding.kind == "refused":
                    tally.refusals.update(set(finding.text.splitlines()))
            if subject.verdict in BAD:
                tally.found += [
                    f"{subject.name} {each.kind} ({each.way}): {each.text.strip()}"
                    for each in subject.findings
                ]
                if batch.keep is not None:
                    _keep(subject, batch.keep)
    return tally


_Label = tuple[str, tuple[str, ...]]
"""Return the kind of a graph, and its traits."""


def _drawn(batch: _Batch) -> tuple[list[_Label], list[tuple[str, int, onnx.ModelProto]]]:
    drawn = [draw(seed, () if batch.plain else traits_of(seed)) for seed in batch.seeds]
    labels = [(it.kind, tuple(it.traits) or ("plain",)) for it in drawn]
    return labels, [(f"g{it.seed}", it.seed, it.model) for it in drawn]


def _onnx(batch: _Batch, folder: Path) -> tuple[list[_Label], list[Subject]]:
    labels, models = _drawn(batch)
    return labels, examine(models, folder, [] if batch.unsplit else None)


def _forms(batch: _Batch, folder: Path) -> tuple[list[_Label], list[Subject]]:
    labels, models = _drawn(batch)
    subjects = examine_forms(models, folder)
    return [label for label in labels for _ in range(len(subjects) // len(models))], subjects


def _flat(batch: _Batch, folder: Path) -> tuple[list[_Label], list[Subject]]:
    drawn = [draw_flat(seed) for seed in batch.seeds]
    models = [(f"f{it.seed}", it.seed, it) for it in drawn]
    return [(f"{it.kind} .tflite", ()) for it in drawn], examine(
        models, folder, [] if batch.unsplit else None
    )


def _windows(batch: _Batch, folder: Path) -> Tally:
    tally = Tally()
    for findings in examine_hops(batch.seeds, folder):
        tally.verdicts["windows", findings.verdict] += 1
        tally.programs += findings.programs
        if findings.verdict == "refused":
            tally.refusals[findings.text] += 1
        elif findings.verdict != "verified":
            tally.found.append(f"h{findings.seed} {findings.verdict} (--hop {findings.hop}): {findings.text}")
            batch.store(folder / f"h{findings.seed}.onnx")
    return tally


def _caches(batch: _Batch, folder: Path) -> Tally:
    tally = Tally()
    for each in examine_caches(batch.seeds, folder):
        tally.verdicts["caches", each.verdict] += 1
        tally.programs += each.programs
        if each.verdict == "refused":
            tally.refusals[each.reason] += 1
        elif each.verdict != "verified":
            tally.found.append(f"c{each.seed} {each.verdict}: {each.reason}")
            batch.store(folder / f"c{each.seed}.onnx")
    return tally


def _keep(subject: Subject, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(subject.path, folder / subject.path.name)
    text = "\n\n".join(f"{each.kind} ({each.way}): {each.text}" for each in subject.findings)
    (folder / f"{subject.name}.txt").write_text(text + "\n", "utf-8")
    if subject.path.suffix == ".onnx":
        onnx.save(reduced(subject), folder / f"{subject.name}_reduced.onnx")


def _by_verdict(tally: Tally) -> Counter[str]:
    verdicts: Counter[str] = Counter()
    for (_, verdict), count in tally.verdicts.items():
        verdicts[verdict] += count
    return verdicts


def _print(tally: Tally, seconds: float) -> None:
    names = ("verified", "refused", "undefined", *BAD)
    print(f"{'graphs':<16}" + "".join(f"{name:>11}" for name in names))
    flat = sorted({kind for kind, _ in tally.verdicts} - set(KINDS))
    for kind in (*KINDS, *flat):
        print(f"{kind:<16}" + "".join(f"{tally.verdicts[kind, name]:>11}" for name in names))
    total = _by_verdict(tally)
    for trait in ("plain", *TRAITS):
        print(f"{trait:<16}" + "".join(f"{tally.by_trait[trait, name]:>11}" for name in names))
    print(f"{'all':<16}" + "".join(f"{total[name]:>11}" for name in names))
    graphs = sum(total.values())
    print(f"{tally.programs} programs, {seconds:.0f} s, {seconds / max(1, graphs):.2f} s for a graph")
    for reason, count in tally.refusals.most_common(15):
        print(f"  refused {count:>4}: {reason}")


if __name__ == "__main__":
    sys.exit(main())
