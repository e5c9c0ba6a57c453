"""Instructions of models by operator and kernel, and of each kernel over a sweep of shapes.

    python benchmarks/kernels.py MODEL... --board mps2-an386 [--board mps3-an547]
    python benchmarks/kernels.py --sweep --board mps2-an386 [--dtype float32] [--only pointwise]

Models run unsplit in the emulator: instructions, instructions per multiply-accumulate, share of every
operator and kernel, bytes of code of every kernel; and cycles if `--timing cycles-model` has the core.
The sweep calls kernels through the measurer's bench, all rows at once and row by row. Tables are Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cost_cases import one_operator, weighted

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.bench import kernels_for
from mcudeploy.commands.commands import measure_model, plan_model
from mcudeploy.common.errors import DeployError
from mcudeploy.device.image import build_bench
from mcudeploy.device.target import Target, open_device
from mcudeploy.device.tile import FlashRegion, KernelTable, TileTimer
from mcudeploy.execution.cycles.profile import CORES
from mcudeploy.ir.graph import DType, Graph, Shape
from mcudeploy.ir.interval import Interval
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from mcudeploy.toolchain.disassembly import Functions

UNSPLIT = Options(split=False)


@dataclass(frozen=True, slots=True)
class Case:
    """One operator over one shape: its name, the shape of its inputs, and their number."""

    name: str
    shape: Shape
    op: Conv2d | Binary | MaxPool | AveragePool | Softmax
    inputs: int = 1


def _conv(name: str, shape: Shape, channels: int, kernel: int = 1, stride: int = 1) -> Case:
    pad = kernel // 2
    op = Conv2d(channels, (kernel, kernel), (stride, stride), pads=(pad, pad, pad, pad))
    return Case(name, shape, op)


def _depthwise(shape: Shape, stride: int) -> Case:
    op = Conv2d(shape[2], (3, 3), (stride, stride), pads=(1, 1, 1, 1), groups=shape[2])
    return Case("depthwise 3x3", shape, op)


def _mean(shape: Shape) -> Case:
    op = AveragePool(shape[:2], (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), count_include_pad=False)
    return Case("mean of an image", shape, op)


def _maximum(shape: Shape) -> Case:
    return Case(
        "maximum 2x2", shape, MaxPool((2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (shape[0] // 2, shape[1] // 2))
    )


CASES = (
    *(
        _conv("pointwise", shape, channels)
        for shape, channels in (
            ((48, 48, 8), 16),
            ((24, 24, 16), 16),
            ((12, 12, 32), 64),
            ((12, 12, 64), 64),
            ((6, 6, 128), 128),
            ((3, 3, 256), 256),
            ((25, 5, 64), 64),
        )
    ),
    *(_conv("3x3", shape, shape[2], 3) for shape in ((32, 32, 16), (16, 16, 32), (8, 8, 64))),
    *(_conv("3x3, stride 2", shape, 2 * shape[2], 3, 2) for shape in ((32, 32, 16), (16, 16, 32))),
    _conv("first 3x3, stride 2", (96, 96, 3), 8, 3, 2),
    _conv("first 3x3", (32, 32, 3), 16, 3),
    Case("first 10x4, stride 2", (49, 10, 1), Conv2d(64, (10, 4), (2, 2), pads=(4, 1, 5, 1))),
    *(_depthwise(shape, 1) for shape in ((48, 48, 8), (24, 24, 32), (25, 5, 64), (6, 6, 128), (3, 3, 256))),
    *(_depthwise(shape, 2) for shape in ((48, 48, 16), (12, 12, 64))),
    *(Case("fully connected", (1, 1, size), Conv2d(128)) for size in (128, 640)),
    *(Case(name, shape, Binary(name), 2) for name in ("add", "mul") for shape in ((32, 32, 16), (8, 8, 64))),
    *(_mean(shape) for shape in ((25, 5, 64), (8, 8, 64), (3, 3, 256))),
    _maximum((32, 32, 16)),
    *(Case("softmax", shape, Softmax()) for shape in ((1, 1, 12), (64, 1, 64))),
)


def graph_of(case: Case, dtype: DType) -> Graph:
    """Return a graph with this operator alone; its constants are drawn at random, always the same."""
    made_scale = 0.4 if isinstance(case.op, Conv2d | Binary) else 0.05
    if isinstance(case.op, Conv2d):
        depth = case.shape[2] // case.op.groups
        return weighted(case.op, case.shape, (case.op.out_channels, *case.op.kernel_shape, depth), dtype)
    return one_operator(case.op, (case.shape,) * case.inputs, dtype, scale=made_scale)


def sweep(board: str, cases: Iterable[Case], dtype: DType) -> Iterator[tuple[object, ...]]:
    """Yield rows of the sweep's table. Raises DeployError."""
    target = Target(load_board(board), emulate=True)
    bench = build_bench(target)
    with open_device(target, bench) as device:
        kernels = KernelTable.of(device.session, kernels_for(target.board.isa))
        timer = TileTimer(device.session, kernels, flash=FlashRegion.of(target.board))
        for case in cases:
            graph = graph_of(case, dtype)
            (operator,) = graph.operators
            output, macs = graph.tensors["y"], graph.loops(operator).macs()
            parts = [Interval(0, output.shape[0]), *(Interval(r, r + 1) for r in range(output.shape[0]))]
            cut = (1,) * case.inputs
            shapes = " -> ".join("x".join(map(str, shape)) for shape in (case.shape, output.shape))
            usual = operator.op.kernel(operator, graph.input_tensors(operator), output)
            for call in usual.variants(target.board.isa):
                whole, *by_rows = (
                    target.board.instructions(
                        timer.time(graph, operator, call, part, input_block_rows=cut).ticks
                    )
                    for part in parts
                )
                more = f"{100 * (sum(by_rows) / whole - 1):+.1f}"
                per = f"{whole / (macs or output.elements):.2f}"
                yield case.name, shapes, call.variant, call.scratch_bytes, macs, whole, per, more


def model_tables(path: Path, board: str) -> None:
    """Print the tables of one model on one board. Raises DeployError."""
    target = Target(load_board(board), emulate=True)
    cycles = target.board.core in CORES
    report = as_json(
        measure_model(path, target, UNSPLIT, timing="cycles-model" if cycles else "instructions")
    )
    functions = Functions(plan_model(path, target.board, UNSPLIT).build(target).elf)
    operators = report["operators"]
    # With cycles their instructions stand beside them, else ticks are instructions.
    instructions = {it["name"]: it.get("instructions", it["ticks"]) for it in operators}
    total, macs = sum(instructions.values()), report["macs"]
    print(f"\n## {path.parent.name} on {board}\n")
    print(f"- instructions: {total:,}, {total / macs:.2f} per multiply-accumulate ({macs:,})")
    if cycles:
        model = report["cycles_model"]
        spread = f"({model['least']:,} to {model['most']:,})"
        print(
            f"- cycles, modelled: {model['cycles']:,} {spread}, {model['cycles'] / total:.2f} per instruction"
        )
    print(f"- code {report['code_bytes']:,} B, stack {report['stack_bytes']:,} B\n")
    columns = ["operator", "kernel", "MACs", "instructions", "per MAC", "share %"]
    rows = [
        (it["name"], it["kernel"], it["macs"], instructions[it["name"]],
         _per(instructions[it["name"]], it["macs"]), f"{100 * instructions[it['name']] / total:.1f}",
         *((it["ticks"],) if cycles else ()))
        for it in operators
    ]  # fmt: skip
    print_table([*columns, "cycles"] if cycles else columns, rows)
    print()
    columns = ["kernel", "operators", "MACs", "instructions", "per MAC", "share %", "code bytes"]
    grouped: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for operator in operators:
        grouped[operator["kernel"]].append(operator)
    rows = []
    for kernel, members in grouped.items():
        spent, work = sum(instructions[it["name"]] for it in members), sum(it["macs"] for it in members)
        size = functions.named(f"mcud_{kernel}").size
        rows.append(
            (kernel, len(members), work, spent, _per(spent, work), f"{100 * spent / total:.1f}", size)
        )
    print_table(columns, sorted(rows, key=lambda row: -row[3]))


def _per(instructions: int, macs: int) -> str:
    return f"{instructions / macs:.2f}" if macs else "-"


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table, whole numbers with thousands separated."""
    print("| " + " | ".join(columns) + " |")
    print("| " + " | ".join("---" for _ in columns) + " |")
    for row in rows:
        print("| " + " | ".join(f"{it:,}" if isinstance(it, int) else str(it) for it in row) + " |")


def main() -> int:
    """Print the requested tables; return 1 if a model or board is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--board", action="append", required=True)
    parser.add_argument("--sweep", action="store_true", help="call kernels over a range of shapes")
    parser.add_argument("--dtype", choices=["int8", "float32"], default="int8", help="of the sweep")
    parser.add_argument("--only", default="", help="part of the name of a case of the sweep")
    options = parser.parse_args()
    try:
        for board in options.board:
            for path in options.models:
                model_tables(path, board)
            if options.sweep:
                cases = [case for case in CASES if options.only in case.name]
                print(f"\n## Sweep on {board}, {options.dtype}\n")
                columns = [
                    "case",
                    "shape",
                    "kernel",
                    "scratch",
                    "MACs",
                    "instructions",
                    "per MAC or element",
                    "by rows %",
                ]
                print_table(columns, sweep(board, cases, DType(options.dtype)))
    except DeployError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
