"""Kernels of 30 layers: the variant that the costs choose beside the fastest plain one, all rows and by rows.

    python benchmarks/shapes.py [--board mps2-an386] [--only depthwise]

The plain kernels need neither Winograd's filtering, nor pairs of rows, nor weights of 16 bits. `rows` runs a
step for every row, with the variants that are best for such steps. Instructions and modelled cycles are per
multiply-accumulate, those of kernels alone. Positive percentages are losses.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cost_cases import weighted
from cost_table import calls_of_kernels, counting
from kernels import print_table

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.bench import kernels_for
from mcudeploy.common.errors import DeployError
from mcudeploy.costs.estimate import counts_of, load_costs
from mcudeploy.device.image import build_bench
from mcudeploy.device.target import Target, open_device
from mcudeploy.device.tile import FlashRegion, KernelTable, TileTimer
from mcudeploy.ir.graph import DType, Graph, Shape
from mcudeploy.ir.interval import Interval
from mcudeploy.ops.conv.conv import Conv2d

PLAIN = {
    "conv2d_s8", "conv2d_s8_deep", "conv2d_s8_1x1", "conv2d_s8_1x1_direct", "conv2d_s8_full", "dwconv2d_s8",
}  # fmt: skip
"""Kernels without Winograd's filtering, pairs of rows and weights of 16 bits."""

_BOTH = ("chosen", "instructions", "cycles", "plain", "instructions", "cycles", "loss %")
COLUMNS = ("layer", "shape", "MACs", *_BOTH, *(f"rows: {name}" for name in _BOTH), "rows to whole %")


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution over one shape; `depthwise` if each channel has its own window."""

    shape: Shape
    channels: int
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    depthwise: bool = False

    @property
    def name(self) -> str:
        """The kind of the layer, its window and its stride."""
        size = "x".join(map(str, self.kernel))
        kind = "depthwise" if self.depthwise else "dense" if self.shape[:2] == (1, 1) else "convolution"
        return f"{kind} {size}" + (f", stride {self.stride}" if self.stride > 1 else "")

    def graph(self) -> Graph:
        """Return a graph with this layer alone, its input padded to keep the size."""
        rows, cols = self.kernel
        pads = ((rows - 1) // 2, (cols - 1) // 2, rows // 2, cols // 2)
        groups = self.shape[2] if self.depthwise else 1
        op = Conv2d(self.channels, self.kernel, (self.stride, self.stride), pads=pads, groups=groups)
        weights = (self.channels, *self.kernel, self.shape[2] // groups)
        return weighted(op, self.shape, weights, DType.INT8)


def _depthwise(shape: Shape, kernel: tuple[int, int], stride: int = 1) -> Layer:
    return Layer(shape, shape[2], kernel, stride, depthwise=True)


LAYERS = (
    Layer((32, 32, 16), 16, (3, 3)),
    Layer((16, 16, 32), 32, (3, 3)),
    Layer((8, 8, 64), 64, (3, 3)),
    Layer((17, 17, 24), 24, (3, 3)),
    Layer((11, 7, 48), 40, (3, 3)),
    Layer((5, 5, 128), 64, (3, 3)),
    Layer((32, 32, 16), 32, (3, 3), 2),
    Layer((15, 15, 40), 48, (3, 3), 2),
    Layer((48, 48, 8), 16),
    Layer((40, 1, 64), 64),
    Layer((25, 5, 64), 64),
    Layer((13, 7, 36), 20),
    Layer((6, 6, 128), 128),
    Layer((3, 3, 256), 256),
    _depthwise((48, 48, 8), (3, 3)),
    _depthwise((25, 5, 64), (3, 3)),
    _depthwise((6, 6, 128), (3, 3)),
    _depthwise((13, 11, 35), (3, 3)),
    _depthwise((24, 24, 32), (3, 3), 2),
    _depthwise((12, 12, 48), (5, 5)),
    _depthwise((20, 20, 24), (5, 5), 2),
    _depthwise((10, 10, 40), (7, 7)),
    _depthwise((14, 14, 48), (7, 7), 2),
    _depthwise((49, 1, 64), (9, 1)),
    _depthwise((30, 6, 30), (5, 1)),
    Layer((96, 96, 3), 8, (3, 3), 2),
    Layer((32, 32, 3), 16, (3, 3)),
    Layer((49, 10, 1), 64, (10, 4), 2),
    Layer((1, 1, 640), 128),
    Layer((1, 1, 64), 12),
)


class Cost(NamedTuple):
    """Estimated cycles, instructions and modelled cycles of a variant."""

    variant: str
    estimate: float
    instructions: float
    cycles: float


def measured(board: Board, graphs: Sequence[Graph]) -> Iterator[dict[Interval, list[Cost]]]:
    """Yield, for every graph, the costs of each variant for all rows and for each row. Raises DeployError."""
    target, costs = Target(board, emulate=True), load_costs(board.core, "cycles")
    firmware = build_bench(target)
    runs: list[list[tuple[Interval, str, float, float]]] = []  # of each graph
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        counted = counting(target, firmware, out, [board.flash.addresses])
        with open_device(target, firmware, emulator_arguments=counted) as device:
            kernels = KernelTable.of(device.session, kernels_for(target.board.isa))
            timer = TileTimer(device.session, kernels, flash=FlashRegion.of(board))
            for graph in graphs:
                (operator,) = graph.operators
                loops = graph.loops(operator)
                runs.append([])
                usual = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"])
                for call in usual.variants(board.isa):
                    for rows in steps(graph):
                        ticks = timer.time(graph, operator, call, rows).ticks
                        counts = counts_of(graph.tensors, operator, loops, call, rows)
                        estimate = costs.ticks(call.variant, counts)
                        runs[-1].append((rows, call.variant, estimate, board.instructions(ticks)))
        cycles = calls_of_kernels(target, firmware, out)
        for calls in runs:
            costs_of: dict[Interval, list[Cost]] = {}
            for rows, variant, estimate, instructions in calls:
                costs_of.setdefault(rows, []).append(Cost(variant, estimate, instructions, next(cycles)[0]))
            yield costs_of


def steps(graph: Graph) -> list[Interval]:
    """Return all rows, then each row."""
    rows = graph.tensors["y"].shape[0]
    return [Interval(0, rows), *(Interval(row, row + 1) for row in range(rows) if rows > 1)]


def total(parts: Sequence[Sequence[Cost]]) -> list[Cost]:
    """Return the sum of all parts for each variant, which all parts list in the same order."""
    return [
        Cost(same[0].variant, *map(sum, zip(*(cost[1:] for cost in same), strict=True)))
        for same in zip(*parts, strict=True)
    ]


def table(board: Board, layers: Sequence[Layer]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each layer. Raises DeployError."""
    graphs = [layer.graph() for layer in layers]
    for layer, graph, costs_of in zip(layers, graphs, measured(board, graphs), strict=True):
        macs = graph.loops(graph.operators[0]).macs()
        whole, *by_rows = steps(graph)
        shapes = "x".join(map(str, layer.shape)) + f"->{layer.channels}"
        cells: list[object] = [layer.name, shapes, macs]
        parts = [costs_of[whole]], [costs_of[rows] for rows in by_rows or [whole]]
        chosen_cycles = []
        for each in map(total, parts):
            chosen = min(each, key=lambda cost: cost.estimate)
            others = [cost for cost in each if cost.variant.partition(":")[0] in PLAIN]
            plain = min(others, key=lambda cost: cost.cycles)
            for cost in (chosen, plain):
                cells += [cost.variant, f"{cost.instructions / macs:.2f}", f"{cost.cycles / macs:.2f}"]
            cells.append(f"{100 * (chosen.cycles / plain.cycles - 1):+.1f}")
            chosen_cycles.append(chosen.cycles)
        yield (*cells, f"{100 * (chosen_cycles[1] / chosen_cycles[0] - 1):+.1f}")


def main() -> int:
    """Print the table; return 1 if a board has no emulator or no cycle model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--only", default="", help="part of the kind of a layer")
    options = parser.parse_args()
    layers = [layer for layer in LAYERS if options.only in layer.name]
    try:
        print_table(COLUMNS, table(load_board(options.board), layers))
    except DeployError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
