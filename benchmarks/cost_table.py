"""The shipped costs of kernels, fitted to the emulator's counts.

Counted are instructions, and modelled cycles if there is a model of the core.

    python benchmarks/cost_table.py [--core cortex-m4 ...] [--kernel dwconv2d_s8 ...]
    python benchmarks/cost_table.py --extension FILE.py [--core cortex-m4 ...]
    python benchmarks/cost_table.py --check MODEL... [--board mps2-an386 ...]

Every variant of every case in cost_cases.py is timed as a whole and by few rows, in the middle and at the
edges. Where cycles are modelled, the bytes that it reads from flash are counted too. Per variant, the fit
finds non-negative costs of its loops (`mcudeploy.costs.estimate.counts_of`) with the least sum of relative
errors (a linear program). Writes mcudeploy/costs/tables/<core>.csv, with `--kernel` only the lines of these
kernels. With `--extension` the cases and the kernels are those of a trusted file, and the tables go into its
folder `costs`.
`--check` prints predicted beside measured instructions.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from cost_cases import MOST_BYTES, cases
from estimates import predicted_ticks
from kernels import print_table
from ortools.linear_solver import pywraplp

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.bench import all_kernels, kernels_for
from mcudeploy.codegen.kernelfiles import UNIT_SUFFIX
from mcudeploy.commands.commands import measure_model, plan_model
from mcudeploy.common.errors import DeployError
from mcudeploy.costs.estimate import COSTS, Column, CoreCosts, counts_of, read_costs
from mcudeploy.device.image import build_bench
from mcudeploy.device.session import Session
from mcudeploy.device.target import Target, open_device
from mcudeploy.device.tile import FlashRegion, KernelTable, TileTimer
from mcudeploy.execution.cycles.plugin import plugin_arguments, read_windows
from mcudeploy.execution.cycles.profile import CORES, core_of, profile
from mcudeploy.extension import added, extension_files, extensions, foreign_kernels
from mcudeploy.ir.graph import DType, Graph
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import TWICE, Counts
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.disassembly import Functions

BOARDS = {
    "cortex-m0": "mps2-an385",
    "cortex-m3": "mps2-an385",
    "cortex-m4": "mps2-an386",
    "cortex-m7": "mps2-an500",
    "cortex-m33": "mps2-an505",
    "cortex-m55": "mps3-an547",
    "rv32imafc": "riscv32-virt",
    "rv32imafc-zve32x": "riscv32-virt-v",
    "rv32imc": "riscv32-virt",
}
"""The emulated board of each core. Code of a Cortex-M0 runs on a Cortex-M3, which has the memory, and code of
an RV32IMC on a core with an FPU, which it does not use.
"""

_OTHER = 2
"""The number of the region of all addresses that are neither in flash nor of float constants."""

_LEAST_COST = 1e-6
"""Costs below it are the solver's zero."""

CHECKED = (
    "model", "board", "predicted", "measured", "error %",
    "operators: median %", "worst %", "of", "share of it %",
)  # fmt: skip
"""The columns of `check`."""

Sample = tuple[Counts, dict[Column, float], dict[Column, float]]
"""Iterations of a tile's loops, its costs by column, and the estimated part of them in kernels that it calls.
"""


def board_of(core: str) -> Board:
    """Return the board that runs the code of a core."""
    board = load_board(BOARDS[core])
    if board.core == core:
        return board
    flags = {
        "cortex-m0": ("-mcpu=cortex-m0", "-mthumb"),
        "rv32imc": ("-march=rv32imc", "-mabi=ilp32", "-mcmodel=medany"),
    }
    return board.model_copy(update={"core": core, "cpu_flags": flags[core]})


def own_cases(dtype: DType) -> Iterator[Graph]:
    """Yield the cases of extensions whose results are of this type, or for int8 of any but float32."""
    for cases_of in added("cases"):
        for graph in cases_of():
            if (graph.tensors["y"].dtype is DType.FLOAT32) == (dtype is DType.FLOAT32):
                yield graph


def samples(
    board: Board, chosen: Collection[str] = (), graphs: Callable[[DType], Iterator[Graph]] = cases
) -> dict[str, list[Sample]]:
    """Return loop counts and times of every variant in each case; only `chosen` kernels, if there are any."""
    target = Target(board, emulate=True)
    firmware = build_bench(target)
    timed: list[tuple[str, Sample]] = []
    with tempfile.TemporaryDirectory() as folder:
        with open_device(target, firmware) as device:
            constants = float_constants(device.session)
        flash = [board.flash.addresses, Interval(constants.base, constants.base + constants.size_bytes)]
        counted = counting(target, firmware, Path(folder) / "counts", flash)
        with open_device(target, firmware, emulator_arguments=counted) as device:
            kernels = KernelTable.of(device.session, kernels_for(board.isa))
            timer = TileTimer(device.session, kernels, flash=FlashRegion.of(board))
            for graph in graphs(DType.INT8):
                timed += times(graph, timer, board, chosen)
            floats = RandomFloats.of(device.session)
            timer = TileTimer(device.session, kernels, flash=floats.constants)
            for graph in graphs(DType.FLOAT32):
                timed += times(graph, timer, board, chosen, floats)
        if counted:
            windows = calls_of_kernels(target, firmware, Path(folder) / "counts")
            for (_, (_, spent, _)), (cycles, flash_bytes) in zip(timed, windows, strict=True):
                spent["cycles"], spent["flash_bytes"] = cycles, flash_bytes
    by_kernel: defaultdict[str, list[Sample]] = defaultdict(list)
    for variant, sample in timed:
        by_kernel[variant].append(sample)
    return by_kernel


def counting(target: Target, firmware: Firmware, out: Path, flash: Sequence[Interval]) -> tuple[str, ...]:
    """Return arguments of an emulator that counts between all readings of the counter, if modelled.

    `flash`: where constants are.
    """
    emulator, ticks = target.board.emulator, Functions(firmware.elf).named("hal_ticks").address
    if emulator is None or target.board.core not in CORES:
        return ()
    return plugin_arguments(emulator.qemu, ticks, ticks, out, flash)


def calls_of_kernels(target: Target, firmware: Firmware, counted: Path) -> Iterator[tuple[float, float]]:
    """Yield modelled cycles of each call of a kernel, without those of the measurement itself, and the bytes
    that it reads from flash.
    """
    functions, core = Functions(firmware.elf), core_of(target)
    entries = [functions.named(f"mcud_{name}").address for name in kernels_for(target.board.isa)]
    outside = [functions.named(name) for name in ("hal_ticks", "timing_call")]
    counts = profile(target, firmware, {})
    for window in read_windows(counted, entries):
        for function in outside:
            for address in [at for at in window.executed if 0 <= at - function.address < function.size]:
                del window.executed[address]
        cycles = sum(cycles.typical for cycles in counts.cycles(window, core).values())
        yield cycles, float(sum(window.loaded.values()) - window.loaded[_OTHER])


def float_constants(session: Session) -> FlashRegion:
    """Return the middle of the arena, where constants of float kernels are."""
    arena = session.info.arenas[0]
    return FlashRegion(arena.base + arena.size_bytes // 2, MOST_BYTES)


@dataclass(frozen=True, slots=True)
class RandomFloats:
    """Normal floats for tensors and constants. Exponentials, clips and software floats take time by values.

    Values have a standard deviation of 0.5, and constants one of 0.2, so that sums of products stay near 1.
    """

    session: Session
    values: bytes
    constants: FlashRegion

    @classmethod
    def of(cls, session: Session) -> RandomFloats:
        """Write the constants."""
        constants = float_constants(session)
        values = np.random.default_rng(0).normal(0, 0.5, MOST_BYTES // 4).astype("<f4")
        offset = constants.base - session.info.arenas[0].base
        session.write(0, offset, (values * np.float32(0.4)).tobytes())
        return cls(session, values.tobytes(), constants)

    def fill(self, graph: Graph) -> None:
        """Write to the tensors of a graph; the tiles before left their results there."""
        used = sum(tensor.size_bytes for tensor in graph.tensors.values())
        self.session.write(0, 0, self.values[:used])


def times(
    graph: Graph, timer: TileTimer, board: Board, chosen: Collection[str], floats: RandomFloats | None = None
) -> Iterator[tuple[str, Sample]]:
    """Yield each variant of the graph's operator with its times on `floats`, or on any data."""
    (operator,) = graph.operators
    output, loops = graph.tensors["y"], graph.loops(operator)
    inputs = graph.input_tensors(operator)
    total = (inputs[0] if operator.op.accumulates else output).shape[0]
    variants = operator.op.kernel(operator, inputs, output).variants(board.isa)
    wanted = [call for call in variants if not chosen or call.once in chosen]
    if wanted and floats is not None:
        floats.fill(graph)
    for call in wanted:
        for rows in _blocks(total):
            ticks = timer.time(graph, operator, call, rows).ticks
            spent: dict[Column, float] = {"instructions": board.instructions(ticks)}
            inner: dict[Column, float] = {}
            for column in stated_columns(board.core) if call.stages else ():
                costs = CoreCosts(board.core, read_costs(COSTS / f"{board.core}.csv", column))
                inner[column] = sum(it.times(rows) * costs.stage_ticks(it) for it in call.stages)
            yield call.cost_name, (counts_of(graph.tensors, operator, loops, call, rows), spent, inner)


def columns(core: str) -> tuple[Column, ...]:
    """Return the columns of a core's table."""
    return ("instructions", "cycles", "flash_bytes") if core in CORES else ("instructions",)


def stated_columns(core: str) -> tuple[Column, ...]:
    """Return those that its table has: one of an earlier model of the core can lack the last ones."""
    with (COSTS / f"{core}.csv").open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file))
    return tuple(column for column in columns(core) if column in header)


def _blocks(total: int) -> list[Interval]:
    """Return the timed rows: one to three and all, from the middle, and the first and last ones."""
    sizes = {1, min(2, total), min(3, total), total}
    middle = {Interval(total // size // 2 * size, (total // size // 2 + 1) * size) for size in sizes}
    last = total - total % 2 if total % 2 and total > 2 else total - 1
    return sorted(middle | {Interval(0, 1), Interval(0, min(2, total)), Interval(last, total)}, key=str)


def fit(samples: Sequence[tuple[Counts, float, float]]) -> dict[str, float]:
    """Return the costs with the least sum of relative errors: of counts, a time, and the known part of it.

    A sample that costs nothing states that its loops do.
    """
    solver = pywraplp.Solver.CreateSolver("GLOP")
    names = sorted({name for counts, *_ in samples for name in counts})
    costs = {name: solver.NumVar(0, solver.infinity(), name) for name in names}
    for counts, measured, inner in samples:
        above, below = solver.NumVar(0, solver.infinity(), ""), solver.NumVar(0, solver.infinity(), "")
        whole = measured or 1.0
        predicted = sum(costs[name] * (count / whole) for name, count in counts.items())
        solver.Add(predicted + below - above == (measured - inner) / whole)
        solver.Objective().SetCoefficient(above, 1)
        solver.Objective().SetCoefficient(below, 1)
    unused = [name for name in names if not any(counts.get(name) for counts, *_ in samples)]
    if unused:
        raise RuntimeError(f"no case has loops {', '.join(unused)}")
    solver.Objective().SetMinimization()
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        raise RuntimeError("the fit has no optimum")
    values = {name: cost.solution_value() for name, cost in costs.items()}
    return {name: float(f"{value:.4g}") if value > _LEAST_COST else 0.0 for name, value in values.items()}


def write_table(core: str, chosen: Collection[str], foreign: Path | None = None) -> list[tuple[object, ...]]:
    """Fit and write the table of a core, or the lines of `chosen` kernels; return rows of a report on the
    fit.

    `foreign`: the folder of the tables of an extension, whose cases are measured.
    """
    by_kernel = samples(board_of(core), chosen, own_cases if foreign else cases)
    path = (foreign or COSTS) / f"{core}.csv"
    kernels = {name.removesuffix(TWICE) for name in kernels_for(board_of(core).isa)}
    wanted = kernels & set(chosen or all_kernels())
    missing = wanted - {"feed", "conv2d_s8_1x1_sums"} - {variant.partition(":")[0] for variant in by_kernel}
    if missing:
        raise RuntimeError(f"no case for {', '.join(sorted(missing))}")
    tables, report = list[dict[str, dict[str, float]]](), list[tuple[object, ...]]()
    stated = stated_columns(core)
    units = stated if chosen and foreign is None else columns(core)
    for unit in units:
        known = read_costs(path, unit) if foreign is None and unit in stated else {}
        if not chosen:  # only those that are assumed, as no core computes them
            known = {name: cost for name, cost in known.items() if name.endswith(UNIT_SUFFIX)}
        table = {name: cost for name, cost in known.items() if name.partition(":")[0] not in chosen}
        for variant in sorted(by_kernel):
            measured = [
                (counts, spent[unit], inner.get(unit, 0.0)) for counts, spent, inner in by_kernel[variant]
            ]
            try:
                table[variant] = cost = fit(measured)
            except RuntimeError as error:
                raise RuntimeError(f"{variant}: {error}") from None
            fitted = CoreCosts(core, {variant: cost})
            errors = sorted(
                abs(100 * ((fitted.ticks(variant, counts) + inner) / (real or 1) - 1))
                for counts, real, inner in measured
            )
            report.append((variant, unit, len(errors), f"{median(errors):.1f}", f"{errors[-1]:.1f}"))
        tables.append(table)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["variant", "loop", *units])
        for variant, cost in sorted(tables[0].items()):
            writer.writerows(
                [variant, loop, *(f"{table[variant][loop]:g}" for table in tables)] for loop in cost
            )
    return report


def check(models: Iterable[Path], boards: Iterable[str], *, streamed: bool) -> Iterator[tuple[object, ...]]:
    """Yield rows of predicted and measured instructions of models, and the error of their operators.

    The plans are unsplit ones, or split with inputs in parts if `streamed`: small boards have no room for
    others.
    """
    options = Options(split=streamed, stream_input=streamed, time_limit=5)
    for name in boards:
        target = Target(load_board(name), emulate=True)
        for path in models:
            report = as_json(measure_model(path, target, options))
            deployment = plan_model(path, target.board, options)
            predicted = predicted_ticks(deployment, "instructions")
            # with modelled cycles, instructions stand beside them
            real = {it["name"]: it.get("instructions", it["ticks"]) for it in report["operators"]}
            kernels = {it["name"]: it["kernel"] for it in report["operators"]}
            errors = {
                one: abs(100 * (predicted[one] / ticks - 1))
                for one, ticks in real.items()
                if predicted.get(one)
            }
            worst = max(errors, key=lambda one: errors[one])
            total, measured = sum(predicted.values()), sum(real[one] for one in errors)
            share = 100 * real[worst] / measured
            yield (
                path.parent.name, name, round(total), measured, f"{100 * (total / measured - 1):+.1f}",
                f"{median(errors.values()):.1f}", f"{errors[worst]:.1f}", kernels[worst], f"{share:.1f}",
            )  # fmt: skip


def main() -> int:
    """Write the tables, or check them; return 1 if a model or board is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--core", action="append", choices=list(BOARDS))
    parser.add_argument("--kernel", action="append", default=[])
    parser.add_argument("--extension", type=Path, help="measure the kernels of this file by its cases")
    parser.add_argument("--check", type=Path, nargs="+", default=[])
    parser.add_argument("--board", action="append", default=[])
    parser.add_argument("--stream-input", action="store_true", help="check split plans, fed in parts")
    options = parser.parse_args()
    try:
        if options.check:
            print_table(
                CHECKED,
                check(
                    options.check,
                    options.board or dict.fromkeys(BOARDS.values()),
                    streamed=options.stream_input,
                ),
            )
            return 0
        with extension_files(*filter(None, [options.extension])):
            chosen, folder = options.kernel, None
            if options.extension:
                *_, extension = extensions()
                if not (extension.cases and extension.costs):
                    parser.error(f"{options.extension} states no cases, or no folder of costs")
                chosen, folder = options.kernel or sorted(foreign_kernels()), Path(extension.costs)
            for core in options.core or BOARDS:
                print(f"\n## {core}\n")
                print_table(
                    ["variant", "unit", "tiles", "median error %", "worst %"],
                    write_table(core, chosen, folder),
                )
    except DeployError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
