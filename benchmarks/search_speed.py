"""How fast the search is, and whether it keeps its time limit, for models and made-up graphs.

    python benchmarks/search_speed.py [MODEL.onnx ...] [--time-limit 60] [--stream-input]

Times of tiles are estimated. `candidates` are states that were judged, each once; `wall` has the packing of
what the search handed on for models, and the candidates' schedules for made-up graphs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np

from mcudeploy.graph import Border, DType, Graph, Operator, Quantization, Shape, Tensor
from mcudeploy.model import kernel_variants, load_model
from mcudeploy.ops.concat import Concat
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.elementwise import Binary
from mcudeploy.optimizer.apply import in_form
from mcudeploy.optimizer.cuts import Space
from mcudeploy.optimizer.search import Budget, search
from mcudeploy.plan import Form
from mcudeploy.scheduler.rpo import reverse_post_order
from mcudeploy.simulator.blocks import whole
from mcudeploy.simulator.cost import Costs
from mcudeploy.simulator.estimate import estimated_tile_time
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.live import work_bytes

SIZES = (60, 120, 250, 500)
COLUMNS = (
    "graph", "operators", "unsplit peak", "peak", "steps", "candidates", "a second", "search s", "wall s",
)  # fmt: skip


class Builder:
    """A graph that grows operator by operator, with weights of zeros."""

    def __init__(self, image: Shape) -> None:
        self._shapes = {"image": image}
        self.operators: list[Operator] = []
        self._names = (f"t{number}" for number in count())

    def conv(
        self, source: str, channels: int, kernel: int = 1, stride: int = 1, depthwise: bool = False
    ) -> str:
        """A convolution that keeps rows and columns, but for the stride."""
        rows, cols, inputs = self._shapes[source]
        pads = (kernel // 2,) * 4
        groups = inputs if depthwise else 1
        op = Conv2d(channels, (kernel, kernel), (stride, stride), pads=pads, groups=groups)
        constants = {
            "weights": np.zeros((channels, kernel, kernel, inputs // groups), np.int8),
            "bias": np.zeros(channels, np.int32),
            "weight_scale": np.full(channels, 0.01, np.float32),
        }
        shape = (rows - 1) // stride + 1, (cols - 1) // stride + 1, channels
        return self._add(Operator(name := next(self._names), op, (source,), name, constants), shape)

    def sum(self, one: str, other: str) -> str:
        """The sum of two tensors of one shape."""
        name = next(self._names)
        return self._add(Operator(name, Binary("add"), (one, other), name), self._shapes[one])

    def concat(self, *sources: str) -> str:
        """Channels behind channels."""
        name = next(self._names)
        rows, cols, _ = self._shapes[sources[0]]
        channels = sum(self._shapes[source][2] for source in sources)
        return self._add(Operator(name, Concat(2), sources, name), (rows, cols, channels))

    def _add(self, operator: Operator, shape: Shape) -> str:
        self.operators.append(operator)
        self._shapes[operator.output] = shape
        return operator.output

    def graph(self, name: str, output: str) -> Graph:
        """All of it; `output` is what the application reads."""
        scale = Quantization(0.05, 0)
        tensors = {one: Tensor(one, shape, DType.INT8, scale) for one, shape in self._shapes.items()}
        inputs, outputs = (_border(one, self._shapes[one]) for one in ("image", output))
        return Graph(name, tensors, tuple(self.operators), (inputs,), (outputs,))


def _border(name: str, shape: Shape) -> Border:
    rows, cols, channels = shape
    order = np.arange(rows * cols * channels, dtype=np.int32).reshape(shape).transpose(2, 0, 1).ravel()
    return Border(name, name, (1, channels, rows, cols), "int8", order)


def mobile_net(operators: int) -> Graph:
    """Inverted residual blocks; rows are halved at three places spread over the depth."""
    builder = Builder((96, 96, 3))
    at, channels = builder.conv("image", 8, 3, stride=2), 8
    halved = [operators * share // 8 for share in (1, 2, 4)]
    while len(builder.operators) < operators - 4:
        stride = 2 if halved and len(builder.operators) >= halved[0] else 1
        if stride == 2:
            halved.pop(0)
        wide = builder.conv(at, 6 * channels)
        deep = builder.conv(wide, 6 * channels, 3, stride, depthwise=True)
        channels *= stride
        narrow = builder.conv(deep, channels)
        at = narrow if stride == 2 else builder.sum(narrow, at)
    while len(builder.operators) < operators:
        at = builder.conv(at, channels, 3, depthwise=True)
    return builder.graph(f"mobile_net_{operators}", at)


def cells(operators: int) -> Graph:
    """Cells of three branches that are joined, and an edge around each; rows are halved twice."""
    builder = Builder((64, 64, 3))
    at, channels = builder.conv("image", 8, 3, stride=2), 8
    halved = [operators // 3, 2 * operators // 3]
    while len(builder.operators) < operators - 9:
        if halved and len(builder.operators) >= halved[0]:
            halved.pop(0)
            channels *= 2
            at = builder.conv(at, channels, 3, stride=2)
        left = builder.conv(builder.conv(at, channels), channels, 3, depthwise=True)
        middle = builder.conv(builder.conv(at, channels), channels, 5, depthwise=True)
        joined = builder.conv(builder.concat(left, middle, builder.conv(at, channels)), channels)
        at = builder.sum(joined, at)
    while len(builder.operators) < operators:
        at = builder.conv(at, channels, 3, depthwise=True)
    return builder.graph(f"cells_{operators}", at)


def row(graph: Graph, seconds: float, overhead: float) -> tuple[str, ...]:
    """Searches one graph; one line of the table."""
    begin = time.monotonic()
    flow = Flow.of(graph)
    order = tuple(step.operator for step in reverse_post_order(whole(graph)).steps)
    calls = {name: variants[0] for name, variants in kernel_variants(graph).items()}
    costs = Costs(flow, estimated_tile_time(graph, calls, "cortex-m4"))
    work = work_bytes(calls)
    found = search(Space.of(flow, order), costs, work, Budget(seconds, overhead), lambda *_: None)
    best, searched = found.best[0], found.search
    return (
        graph.name,
        f"{len(order)}",
        f"{found.unsplit.peak_bytes:,}",
        f"{best.peak_bytes:,}",
        f"{len(best.schedule.steps):,}",
        f"{searched.candidates:,}",
        f"{searched.candidates / searched.seconds:,.0f}",
        f"{searched.seconds:.1f}",
        f"{time.monotonic() - begin:.1f}",
    )


def graphs(models: list[Path], streamed: bool) -> Iterator[Graph]:
    """The models, then what is made up."""
    for path in models:
        yield load_model(path).in_form(Form(streamed, accumulating=True)).graph
    for make in (mobile_net, cells):
        for size in SIZES:
            yield in_form(make(size), Form(), Form(streamed, accumulating=True))


def main() -> None:
    """Search all, print each line as it comes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--max-overhead", type=float, default=5.0)
    parser.add_argument("--stream-input", action="store_true")
    arguments = parser.parse_args()
    for line in (COLUMNS, ["---"] * len(COLUMNS)):
        print("| " + " | ".join(line) + " |")
    for graph in graphs(arguments.models, arguments.stream_input):
        line = row(graph, arguments.time_limit, arguments.max_overhead)
        print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
