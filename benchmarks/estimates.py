"""Estimated against measured latency of plans; prints tables of models, operators and kernels.

    python benchmarks/estimates.py MODELS... [--random 20 --seed 1] [--board mps2-an386] [--time-limit 5]
    python benchmarks/estimates.py MODELS... --no-split [--objective instructions] [--operators 30]

MODELS are ONNX files, or folders that are searched for model.onnx. `--random` adds sequences and narrow
images: int8 convolutions, pointwise, depthwise and dilated, over rows of one to four pixels, by the seed.
Estimates ignore earlier measurements. Kernels come with the largest error first, operators with the largest
share of their model's latency first. Exit 1 if the error of a model is above --most percent.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from kernels import print_table
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import DeployError
from mcudeploy.common.progress import SILENT
from mcudeploy.costs.estimate import TimeUnit, board_costs, estimated
from mcudeploy.costs.tiles import Costs, by_calls
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.running import run_on
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.verify.samples import load_samples

COLUMNS = ("model", "arena", "splits", "estimated", "measured", "error %")
_OPERATOR_COLUMNS = (
    "model", "operator", "kernel", "steps", "estimated", "measured", "error %", "of the model %",
)  # fmt: skip
_KERNEL_COLUMNS = ("kernel", "operators", "estimated", "measured", "error %", "worst of a model %")
_SCALE = np.float32(0.03)


class _Narrow:
    """A QDQ model that grows layer by layer, all tensors of one scale."""

    def __init__(self, shape: tuple[int, int, int], rng: np.random.Generator) -> None:
        self._rng, self.shape = rng, shape
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._current = self._real("x")

    def _constant(self, value: np.ndarray | np.generic) -> str:
        self._constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self._constants)}"))
        return str(self._constants[-1].name)

    def _add(self, op: str, inputs: list[str], **attributes: object) -> str:
        output = f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [output], f"{op}_{output}", **attributes))
        return output

    def _real(self, stored: str) -> str:
        return self._add("DequantizeLinear", [stored, self._constant(_SCALE), self._constant(np.int8(0))])

    def conv(self, outputs: int, kernel: tuple[int, int], dilation: int, stride: int, *, alone: bool) -> None:
        """Add a convolution that keeps the size except for its stride (depthwise if `alone`), and a Relu."""
        channels, rows, cols = self.shape
        outputs = channels if alone else outputs
        depth = 1 if alone else channels
        scale = np.full(outputs, 1 / (40 * np.sqrt(depth * kernel[0] * kernel[1])), np.float32)
        weights = self._rng.integers(-127, 128, (outputs, depth, *kernel)).astype(np.int8)
        zeros = self._constant(np.zeros(outputs, np.int8))
        real = self._add("DequantizeLinear", [self._constant(weights), self._constant(scale), zeros], axis=0)
        reach = dilation * (kernel[0] - 1)
        pads = [reach // 2, kernel[1] // 2, reach - reach // 2, kernel[1] - 1 - kernel[1] // 2]
        names = self._add(
            "Conv", [self._current, real], pads=pads, dilations=[dilation, 1], strides=[stride, 1],
            group=channels if alone else 1,
        )  # fmt: skip
        names = self._add("Relu", [names])
        stored = self._add("QuantizeLinear", [names, self._constant(_SCALE), self._constant(np.int8(0))])
        self._current = self._real(stored)
        self.shape = outputs, (rows - 1) // stride + 1, cols

    def save(self, path: Path, source: tuple[int, int, int]) -> None:
        """Save the model; the last stored tensor is the output."""
        self._nodes.pop()
        output = self._nodes[-1].output[0]
        graph = helper.make_graph(
            self._nodes,
            "narrow",
            [helper.make_tensor_value_info("x", TensorProto.INT8, [1, *source])],
            [helper.make_tensor_value_info(output, TensorProto.INT8, [1, *self.shape])],
            self._constants,
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def narrow_model(path: Path, seed: int) -> Path:
    """Save a random sequence, one pixel wide, or an image of up to four columns."""
    rng = np.random.default_rng(seed)
    width = int(rng.choice((1, 1, 1, 2, 3, 4)))
    shape = int(rng.integers(3, 41)), int(rng.integers(30, 121)), width
    model = _Narrow(shape, rng)
    for _ in range(int(rng.integers(3, 8))):
        alone = bool(rng.random() < 0.4)
        rows = int(rng.integers(2, 8)) if alone or rng.random() < 0.4 else 1
        kernel = rows, int(rng.integers(1, min(3, width) + 1)) if rows > 1 else 1
        dilation = int(rng.choice((1, 1, 2, 4))) if rows > 1 else 1
        model.conv(int(rng.integers(4, 65)), kernel, dilation, int(rng.choice((1, 1, 1, 2))), alone=alone)
    model.save(path, shape)
    return path


def models(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and files."""
    for root in arguments.models:
        for path in [root] if root.is_file() else sorted(root.glob("**/model.onnx")):
            yield f"{path.parent.parent.name}/{path.parent.name}", path
    for number in range(arguments.random):
        seed = arguments.seed + number
        yield f"random {seed}", narrow_model(folder / f"narrow_{seed}.onnx", seed)


@dataclass(frozen=True, slots=True)
class OperatorError:
    """An operator's estimated and measured ticks, in a model that takes `latency` ticks."""

    model: str
    operator: str
    kernel: str
    steps: int
    estimated: float
    measured: int
    latency: int

    @property
    def percent_of_model(self) -> float:
        """The error in percent of the model's latency."""
        return 100 * (self.estimated - self.measured) / self.latency


@dataclass(frozen=True, slots=True)
class ModelError:
    """A model's estimated and measured latency, and its plan's arena and number of splits."""

    model: str
    arena_bytes: int
    splits: int
    estimated: float
    measured: int
    operators: tuple[OperatorError, ...]

    @property
    def percent(self) -> float:
        """The error in percent."""
        return 100 * (self.estimated / self.measured - 1)


def predicted_ticks(deployment: Deployment, unit: TimeUnit) -> dict[str, float]:
    """Return the shipped table's prediction for every operator of a plan, without views and fed rows."""
    graph, tiled = deployment.plan.graph, TiledGraph.of(deployment.plan)
    times = estimated(board_costs(deployment.board, unit))(graph, ())
    costs = Costs(tiled.flow, by_calls(times, deployment.model.calls))
    steps = Counter(step.operator for step in deployment.plan.schedule.steps)
    return {
        operator.name: costs.operator_ticks(at, tiled.step_rows[at]) * steps[at] / tiled.step_counts[at]
        for at, operator in enumerate(graph.operators)
        if operator.inputs and not operator.op.is_view
    }


def errors_of(name: str, path: Path, target: Target, options: Options) -> ModelError:
    """Plan and run a model, and return its errors. Raises DeployError."""
    model = load_model(path, isa=target.board.isa)
    planned = find_plans(model, target.board, options)
    deployment = Deployment.of(planned, planned.choices[0], target.board, options)
    samples = load_samples(deployment.model.graph, [], [], options.seed)
    _, observed = run_on(deployment, target, samples, SILENT)
    predicted = predicted_ticks(deployment, planned.objective)
    latency = observed.measurement.latency
    operators = tuple(
        OperatorError(
            name, it.operator, deployment.model.calls[it.operator].variant, it.steps, predicted[it.operator],
            it.ticks, latency,
        )
        for it in observed.measurement.operators
        if it.operator in predicted
    )  # fmt: skip
    sizes = deployment.plan.layout.arena_bytes, len(deployment.plan.splits)
    return ModelError(name, *sizes, deployment.plan.estimate.ticks, latency, operators)


def operator_rows(operators: Iterable[OperatorError], most: int) -> Iterator[tuple[object, ...]]:
    """Yield lines of the operators whose errors are the largest parts of their models' latencies."""
    worst = sorted(operators, key=lambda it: -abs(it.percent_of_model))
    for it in worst[:most]:
        figures = round(it.estimated), it.measured, f"{100 * (it.estimated / it.measured - 1):+.1f}"
        yield it.model, it.operator, it.kernel, it.steps, *figures, f"{it.percent_of_model:+.2f}"


def kernel_rows(operators: Iterable[OperatorError]) -> Iterator[tuple[object, ...]]:
    """Yield a line for each kernel, the largest error first."""
    members = defaultdict[str, list[OperatorError]](list)
    for it in operators:
        members[it.kernel].append(it)
    lines = []
    for kernel, them in members.items():
        predicted, measured = sum(it.estimated for it in them), sum(it.measured for it in them)
        worst = max((it.percent_of_model for it in them), key=abs)
        lines.append((kernel, len(them), round(predicted), measured, 100 * (predicted / measured - 1), worst))
    for *figures, error, worst in sorted(lines, key=lambda line: -abs(line[-2])):
        yield *figures, f"{error:+.1f}", f"{worst:+.2f}"


def main() -> int:
    """Print a line for each model when it is done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--max-overhead", type=float, default=5.0, help="as the option of mcudeploy")
    parser.add_argument("--no-split", action="store_true", help="unsplit plans, as the option of mcudeploy")
    parser.add_argument("--objective", choices=["instructions", "cycles"], help="as the option of mcudeploy")
    parser.add_argument("--operators", type=int, default=0, metavar="N", help="print the worst N operators")
    parser.add_argument("--most", type=float, default=2.0, help="percent")
    arguments = parser.parse_args()
    target = Target(load_board(arguments.board), emulate=True)
    options = Options(
        time_limit=arguments.time_limit,
        max_overhead=arguments.max_overhead,
        split=not arguments.no_split,
        objective=arguments.objective,
    )
    errors: list[ModelError] = []
    for line in (COLUMNS, ["---"] * len(COLUMNS)):
        print("| " + " | ".join(line) + " |")
    with tempfile.TemporaryDirectory() as folder:
        for name, path in models(arguments, Path(folder)):
            try:
                it = errors_of(name, path, target, options)
            except DeployError as error:
                print(f"| {name} |  |  |  |  | {' '.join(str(error).split())[:120]} |", flush=True)
                continue
            figures = f"{it.arena_bytes:,} | {it.splits} | {it.estimated:,.0f} | {it.measured:,}"
            print(f"| {name} | {figures} | {it.percent:+.2f} |", flush=True)
            errors.append(it)
    operators = [it for model in errors for it in model.operators]
    if arguments.operators:
        print()
        print_table(_OPERATOR_COLUMNS, operator_rows(operators, arguments.operators))
    print()
    print_table(_KERNEL_COLUMNS, kernel_rows(operators))
    worst = max(errors, key=lambda model: abs(model.percent))
    print(f"\n{len(errors)} models; worst: {worst.model}, {worst.percent:+.2f} %")
    return int(abs(worst.percent) > arguments.most)


if __name__ == "__main__":
    sys.exit(main())
