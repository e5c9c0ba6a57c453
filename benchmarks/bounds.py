"""Bounds of instructions against counts of adversarial inputs; prints a table, exits 1 if a count is above.

    python benchmarks/bounds.py MODELS... [--random 200 --seed 0] [--board mps2-an386] [--inputs 20]

MODELS are ONNX files, or folders that are searched for model.onnx. `--random` adds random graphs of the
fuzzer. Each program runs with `--inputs` inputs: the ends of the type, zero, patterns of both ends, random
values, and floats of extreme size. Each step's instructions and cycles are compared with its bounds. The
ratio is that of the bound of a run to the largest count.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("tests", ".", "benchmarks")]

from fuzzing.generate import draw, traits_of  # noqa: E402
from kernels import print_table  # noqa: E402

from mcudeploy.boards.catalogue import load_board  # noqa: E402
from mcudeploy.commands.commands import plan_model  # noqa: E402
from mcudeploy.common.errors import DeployError  # noqa: E402
from mcudeploy.extensions.bounds.bounding import CountedProgram  # noqa: E402
from mcudeploy.extensions.bounds.program_bounds import Dependence, ProgramBounds, StepBound  # noqa: E402
from mcudeploy.ir.graph import DType, Graph  # noqa: E402
from mcudeploy.planner.plan_options import Options  # noqa: E402
from mcudeploy.verify.samples import Sample, drawn_samples  # noqa: E402

Array = NDArray[Any]
_COLUMNS = ("model", "steps", "independent", "tables", "branches", "loops", "largest count", "bound", "ratio")
_KERNEL_COLUMNS = ("kernel", "independent", "tables", "branches", "loops", "a reason")
_FLOATS = (0.0, -0.0, 1e-42, -1e-42, 1.0, -1.0, 88.0, -88.0, 1e4, -1e4, 1e18, -1e18, 3e38, -3e38)
"""Floats without NaN: zeros, denormals, arguments at which exponentials overflow, and the largest."""


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one model. `above`: steps whose count exceeds their bound, with both numbers."""

    name: str
    bounds: ProgramBounds
    largest: int
    above: tuple[str, ...]

    @property
    def ratio(self) -> float | None:
        """The bound of all steps, relative to the largest count of a run."""
        known = [step.instructions for step in self.bounds.steps]
        return None if None in known else sum(filter(None, known)) / self.largest

    @property
    def texts(self) -> tuple[object, ...]:
        """The cells of the table."""
        kinds = Counter(step.dependence for step in self.bounds.steps)
        steps = [step.instructions for step in self.bounds.steps]
        bound = "none" if None in steps else f"{sum(filter(None, steps)):,}"
        ratio = "" if self.ratio is None else f"{self.ratio:.4f}"
        counts = (kinds[kind] for kind in Dependence)
        return (self.name, len(steps), *counts, f"{self.largest:,}", bound, ratio)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--random", type=int, default=0, help="how many random graphs")
    parser.add_argument("--seed", type=int, default=0, help="of the first random graph")
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--inputs", type=int, default=20)
    parser.add_argument("--time-limit", type=float, default=1.0)
    arguments = parser.parse_args()
    rows, refused = [], Counter[str]()
    with tempfile.TemporaryDirectory(prefix="mcudeploy-bounds-") as folder:
        for path in chain(_files(arguments.models), _random(arguments, Path(folder))):
            try:
                row = examine(path, arguments)
            except DeployError as error:
                refused[str(error).splitlines()[0].partition(":")[0]] += 1
                print(f"{_name(path)} is refused: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
                continue
            rows.append(row)
            print("  ".join(map(str, row.texts)), file=sys.stderr, flush=True)
            for line in row.above:
                print(f"{row.name}: {line}", flush=True)
    _print(rows, refused.total())
    return int(any(row.above for row in rows))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("model.onnx")) if path.is_dir() else [path]


def _random(arguments: argparse.Namespace, folder: Path) -> Iterator[Path]:
    for seed in range(arguments.seed, arguments.seed + arguments.random):
        path = folder / f"random_{seed}.onnx"
        onnx.save(draw(seed, traits_of(seed)).model, path)
        yield path
        path.unlink()


def _name(path: Path) -> str:
    return path.parent.name if path.stem == "model" else path.stem


def examine(path: Path, arguments: argparse.Namespace) -> Row:
    """Count the bounds of a model, and its runs with adversarial inputs. Raises DeployError."""
    options = Options(time_limit=arguments.time_limit)
    deployment = plan_model(path, load_board(arguments.board), options)
    counted = CountedProgram.of(deployment)
    samples = adversarial(deployment.model.graph, arguments.inputs)
    bounds = counted.bounds(counted.windows(samples[-1]))
    largest, above = 0, []
    runs = [counted.counts(sample) for sample in samples]
    for number, run in enumerate(runs):
        largest = max(largest, sum(counts.total for counts in run))
        for at, (step, counts) in enumerate(zip(bounds.steps, run, strict=True)):
            if number and counts == runs[0][at]:
                continue
            cycles = counted.most_cycles(counts)
            if step.instructions is not None and counts.total > step.instructions:
                above.append(
                    f"input {number}, step {at} ({step.kernel}): {counts.total} > {step.instructions}"
                )
            if step.cycles is not None and cycles > step.cycles:
                above.append(f"input {number}, step {at} ({step.kernel}): {cycles} > {step.cycles} cycles")
    return Row(_name(path), bounds, largest, tuple(above))


def adversarial(graph: Graph, count: int) -> list[Sample]:
    """Return inputs that drive kernels to the ends of their types; a random one is the last."""
    drawn = drawn_samples(graph, 1, count)
    rng = np.random.default_rng(1)
    return [_driven(graph, sample, number, rng) for number, sample in enumerate(drawn[:-1])] + drawn[-1:]


def _driven(graph: Graph, sample: Sample, number: int, rng: np.random.Generator) -> Sample:
    stored = {
        name: _values(value, graph.tensors[name].dtype, number, rng) for name, value in sample.stored.items()
    }
    return Sample({}, stored, {})


def _values(drawn: Array, dtype: DType, number: int, rng: np.random.Generator) -> Array:
    """Return values of the pattern of that number; 32-bit integers may be indices, and stay as drawn."""
    if dtype is DType.FLOAT32:
        ends: Sequence[Any] = _FLOATS
    elif dtype in (DType.INT8, DType.INT16):
        limits = np.iinfo(drawn.dtype)
        ends = (limits.min, limits.max, 0, limits.min + 1, -1, 1)
    else:
        return drawn
    whole, rest = divmod(number, 4)
    low, high = ends[whole % len(ends)], ends[(whole + 1) % len(ends)]
    match rest:
        case 0:
            return np.full_like(drawn, low)
        case 1:  # alternating
            values = np.resize(np.array([low, high], drawn.dtype), drawn.size)
            return values.reshape(drawn.shape)
        case 2:
            return rng.choice(np.array(ends, drawn.dtype), drawn.shape)
        case _:  # a few extremes among drawn values
            return np.where(rng.random(drawn.shape) < 0.1, np.array(high, drawn.dtype), drawn)


def _kernels(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    """Yield each kernel with its steps by dependence, and a reason why one has no bound."""
    steps: dict[str, list[StepBound]] = {}
    for row in rows:
        for step in row.bounds.steps:
            steps.setdefault(step.kernel, []).append(step)
    for kernel, of_kernel in sorted(steps.items()):
        kinds = Counter(step.dependence for step in of_kernel)
        reason = next((step.reason for step in of_kernel if step.reason), "")
        yield kernel, *(kinds[kind] for kind in Dependence), reason


def _print(rows: Sequence[Row], refused: int) -> None:
    print_table(_COLUMNS, [row.texts for row in rows])
    print()
    print_table(_KERNEL_COLUMNS, _kernels(rows))
    ratios = sorted(row.ratio for row in rows if row.ratio is not None)
    above = sum(len(row.above) for row in rows)
    print(f"\n{len(rows)} models, {refused} refused; {above} counts above a bound")
    if ratios:
        print(
            f"{len(ratios)} models have a bound: {statistics.median(ratios):.4f} times the largest count in "
            f"the median, {ratios[-1]:.4f} at most"
        )


if __name__ == "__main__":
    sys.exit(main())
