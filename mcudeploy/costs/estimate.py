"""Times without a device: for each kernel a weighted sum of its loop counts in a tile.

The factors come with the package, one table per core. benchmarks/cost_table.py fits them to the emulator's
counts: instructions, and cycles if the core has a cycle model. Instructions compare kernels and cuts on one
core; modelled cycles also include the costs of loads and taken branches.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path
from statistics import median
from typing import Literal

from mcudeploy.boards.board import Board
from mcudeploy.boards.facts import Flash
from mcudeploy.common.errors import ConfigError
from mcudeploy.costs.factors import KernelFactors, factors_of
from mcudeploy.costs.tiles import CallTile, CallTime, TileSource
from mcudeploy.extension import foreign_extensions, foreign_kernels
from mcudeploy.ir.clock import CALIBRATED_UNIT, unit_of_cycles
from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, KernelCall, LoopNest, StageCall

_LOG = logging.getLogger(__name__)
COSTS = Path(__file__).resolve().parent / "tables"
STAND_INS = {
    "cortex-m0plus": "cortex-m0",
    "cortex-m23": "cortex-m0",
    "cortex-m85": "cortex-m55",
    "native": "rv32imafc",
    "xtensa-lx6": "rv32imafc",
    "xtensa-lx7": "rv32imafc",
}
"""Cores without a table, and the core whose code is most similar: for the last three, portable C with FPU."""
TimeUnit = Literal["instructions", "cycles"]
"""The unit of times: executed instructions, or cycles of the core's cycle model."""
Column = Literal["instructions", "cycles", "flash_bytes"]
"""A column of a table: a time, or the bytes that a kernel reads from flash."""
_ZERO_COSTS = dict.fromkeys(("calls", "rows", "pixels", "windows", "outputs", "iterations"), 0.0)
"""Costs of the loops of `counts_of`, where a table of an extension lacks them."""
_UNIT_CYCLES = "unit_cycles"
"""The loop of kernels that wait for the NPU beside the core: one pass is one cycle of the NPU."""
_REMAKE = "benchmarks/cost_table.py makes it from the emulator"


def counts_of(
    tensors: Mapping[str, Tensor], operator: Operator, loops: LoopNest, call: KernelCall, rows: Interval
) -> Counts:
    """Return the number of passes of each loop of a call that computes iteration rows `rows`.

    If a kernel does not define `KernelCall.counts`, the loop nest determines them: `pixels` of the output,
    `windows`, the input values that they read for one channel, and `iterations` of the innermost loop. An
    operator that accumulates counts rows and pixels of its input, and every call accesses all its outputs.
    """
    output = tensors[operator.output]
    accumulates = operator.op.accumulates
    walked = tensors[operator.inputs[0]] if accumulates else output
    outputs = output.elements * (1 if accumulates else len(rows) / output.shape[0])
    writes_output = not accumulates or rows.hi == walked.shape[0]
    clipped = {"clipped": outputs} if writes_output and _is_clipped(call, output) else {}
    if call.counts is not None:
        return call.counts(rows) | clipped
    iterations = prod(axis.size for axis in loops.axes) * len(rows) / walked.shape[0]
    return {
        "calls": 1,
        "rows": len(rows),
        "pixels": len(rows) * walked.shape[1],
        "windows": iterations / output.shape[2],
        "outputs": outputs,
        "iterations": iterations,
    } | clipped


def _is_clipped(call: KernelCall, output: Tensor) -> bool:
    """Return whether a separate pass clips int8 results; see mcud_clip_s8.h."""
    if output.dtype is not DType.INT8 or "act.min" not in call.params:
        return False
    return (call.params["act.min"], call.params["act.max"]) != (-128, 127)


@dataclass(frozen=True, slots=True)
class FlashReads:
    """The flash of a board, and the bytes that one pass of each loop of a kernel variant reads from it."""

    flash: Flash
    kernels: Mapping[str, Mapping[str, float]]

    def bytes_read(self, variant: str, counts: Mapping[str, float]) -> float:
        """Return the bytes that a call of a variant reads; 0 if a table does not state them."""
        read = self.kernels.get(variant, {})
        return sum(count * read.get(name, 0.0) for name, count in counts.items())


@dataclass(frozen=True, slots=True)
class CoreCosts:
    """Times of every kernel variant on a core, in one unit: the ticks of one pass of each loop.

    `flash_reads`: the basis of waits for a board's flash. `factors`: of a calibrated board, by which `ticks`
    multiplies.
    """

    core: str
    kernels: Mapping[str, Mapping[str, float]]
    unit: TimeUnit = "instructions"
    flash_reads: FlashReads | None = None
    factors: KernelFactors | None = None

    def ticks(self, variant: str, counts: Mapping[str, float]) -> float:
        """Return the ticks of a call of a variant. Raises ConfigError if the table lacks a loop of it."""
        cost = self.kernels.get(variant, {})
        try:
            ticks = sum(count * cost[name] for name, count in counts.items() if count)
        except KeyError as missing:
            missing_costs = f"{variant} ({missing.args[0]})" if cost else variant
            kernel = variant.partition(":")[0]
            why = f"the table is older; {_REMAKE}. For a kernel of an extension, its `costs` lack the loop"
            if not cost:
                why += f", or its `kernels` have no file that defines mcud_{kernel}(const mcud_op *op, ...)"
            raise ConfigError(f"the costs of {self.core} lack {missing_costs}: {why}") from None
        return ticks * self._factor(variant)

    def _factor(self, variant: str) -> float:
        return 1.0 if self.factors is None else self.factors.of(variant)

    def stage_ticks(self, stage: StageCall) -> float:
        """Return the ticks of one of the calls that a kernel makes. Raises ConfigError as `ticks` does."""
        return self.ticks(stage.call.cost_name, _stage_counts(stage))

    def flash_waits(self, call: KernelCall, counts: Mapping[str, float], rows: Interval) -> float:
        """Return the cycles that a call waits for its constants in flash, with the calls that it makes."""
        reads = self.flash_reads
        if reads is None:
            return 0.0
        read_bytes = reads.bytes_read(call.cost_name, counts) + sum(
            stage.times(rows) * reads.bytes_read(stage.call.cost_name, _stage_counts(stage))
            for stage in call.stages
        )
        return reads.flash.stalls(read_bytes, call.constant_bytes) * self._factor(call.cost_name)


def _stage_counts(stage: StageCall) -> Counts:
    operator, tensors = stage.operator, stage.tensors
    nest = operator.op.loops(tuple(tensors[name].shape for name in operator.inputs))
    return counts_of(tensors, operator, nest, stage.call, stage.rows)


def load_costs(core: str, unit: TimeUnit = "instructions") -> CoreCosts:
    """Load the shipped table of a core, or of the core that stands in for it, and those of extensions.

    Kernels of extensions without costs have typical ones of their loops, with a warning.
    Raises ConfigError if the core has neither table, or no cycle model, or if a table is damaged.
    """
    name = STAND_INS.get(core, core)
    path = COSTS / f"{name}.csv"
    if not path.is_file():
        known = ", ".join(sorted(one.stem for one in COSTS.glob("*.csv")))
        raise ConfigError(f"no costs of kernels on {core}; there are those of {known}. {_REMAKE}")
    if unit == "cycles" and not has_cycles(core):
        known = ", ".join(sorted(one.stem for one in COSTS.glob("*.csv") if has_cycles(one.stem)))
        raise ConfigError(
            f"there is no cycle model of {core}; there are those of {known}: leave --objective cycles out"
        )
    shipped = _shipped(path, unit)
    foreign = foreign_kernels()
    return CoreCosts(
        name, {**shipped, **_foreign(shipped, foreign, name, unit)} if foreign else shipped, unit
    )


@cache
def _shipped(path: Path, unit: TimeUnit) -> dict[str, dict[str, float]]:
    return read_costs(path, unit)


def _foreign(
    shipped: Mapping[str, Mapping[str, float]], kernels: Collection[str], core: str, unit: TimeUnit
) -> dict[str, Mapping[str, float]]:
    """Return the costs of kernels of extensions: from their tables, else typical ones.

    Raises ConfigError for a damaged table, or one with a kernel that is not of an extension.
    """
    costs: dict[str, Mapping[str, float]] = {}
    for path in _foreign_tables(core, unit):
        table = read_costs(path, unit)
        if other := sorted(variant for variant in table if variant.partition(":")[0] not in kernels):
            raise ConfigError(f"{path} has costs of {other[0]}, which is not a kernel of an extension")
        costs |= {variant: {**_ZERO_COSTS, **loops} for variant, loops in table.items()}
    known = {variant.partition(":")[0] for variant in costs}
    for kernel in sorted(set(kernels) - known):
        _warn_of_typical_costs(kernel, core, unit)
        costs[kernel] = _typical_costs(shipped)
    return costs


def _foreign_tables(core: str, column: Column) -> list[Path]:
    """Return the tables of extensions for a core that have this column."""
    paths = (Path(it.costs, f"{core}.csv") for it in foreign_extensions() if it.costs)
    return [path for path in paths if path.is_file() and column in _columns(path)]


def _typical_costs(shipped: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the median costs of a call, a row and an iteration, over kernels whose loop nest counts them."""
    counted = [costs for costs in shipped.values() if "iterations" in costs]
    medians = {name: median(costs[name] for costs in counted) for name in ("calls", "rows", "iterations")}
    clipped = median(costs["clipped"] for costs in shipped.values() if "clipped" in costs)
    return {**_ZERO_COSTS, "clipped": clipped, **medians}


@cache
def _warn_of_typical_costs(kernel: str, core: str, unit: TimeUnit) -> None:
    _LOG.warning(
        "warning: no %s of kernel %s on %s: its time is guessed from the number of its iterations; "
        "`tune` measures it, and a table in the folder `costs` of its extension states it",
        unit,
        kernel,
        core,
    )


@cache
def _warn_of_unknown_reads(kernel: str, core: str) -> None:
    _LOG.warning(
        "warning: the costs of kernel %s on %s do not state how often it reads flash: its waits are left out",
        kernel,
        core,
    )


@cache
def has_cycles(core: str) -> bool:
    """Return whether the shipped table of a core, or of its stand-in, has modelled cycles."""
    path = COSTS / f"{STAND_INS.get(core, core)}.csv"
    if not path.is_file():
        return False
    return "cycles" in _columns(path)


def _columns(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file), [])


def board_costs(board: Board, unit: TimeUnit | None = None) -> CoreCosts:
    """Load the costs of a board's core, by default in the `unit_of_model`.

    If the board is calibrated, times in that unit become cycles of the chip. Raises ConfigError as
    `load_costs` does, and for a damaged file of factors.
    """
    costs = modelled_costs(board, unit)
    factors = factors_of(board) if costs.unit == unit_of_model(board) else None
    return costs if factors is None else replace(costs, unit="cycles", factors=factors)


def unit_of_model(board: Board) -> TimeUnit:
    """Return modelled cycles, or instructions if a board's core has no cycle model."""
    return "cycles" if has_cycles(board.core) else "instructions"


def unit_of_estimates(board: Board, unit: TimeUnit | None = None) -> str:
    """Return the unit of times by `board_costs`, as reports show it."""
    costs = board_costs(board, unit)
    if costs.factors is not None:
        return CALIBRATED_UNIT
    return unit_of_cycles(board.npu is not None) if costs.unit == "cycles" else costs.unit


def modelled_costs(board: Board, unit: TimeUnit | None = None) -> CoreCosts:
    """Load the costs of a board's core as `board_costs` does, without the factors of a calibration.

    Cycles include the waits for the board's flash, if its file states them.
    """
    unit = unit or unit_of_model(board)
    costs = _in_ticks_of_core(load_costs(board.core, unit), board)
    if unit == "instructions" or not board.flash.read_cost:
        return costs
    kernels = _flash_bytes(costs.core)
    if not kernels:
        return costs
    for path in _foreign_tables(costs.core, "flash_bytes"):
        kernels = {**kernels, **read_costs(path, "flash_bytes")}
    for kernel in sorted(set(foreign_kernels()) - {variant.partition(":")[0] for variant in kernels}):
        _warn_of_unknown_reads(kernel, costs.core)
    return replace(costs, flash_reads=FlashReads(board.flash, kernels))


def _in_ticks_of_core(costs: CoreCosts, board: Board) -> CoreCosts:
    """Return the costs with cycles of the NPU in ticks of the core: their clocks may differ."""
    if board.npu is None or board.npu.clock_hz is None:
        return costs
    ratio = board.clock_hz / board.npu.clock_hz
    kernels = {
        variant: {loop: cost * ratio if loop == _UNIT_CYCLES else cost for loop, cost in loops.items()}
        for variant, loops in costs.kernels.items()
    }
    return replace(costs, kernels=kernels)


@cache
def _flash_bytes(core: str) -> dict[str, dict[str, float]]:
    """Return the bytes that kernels read from flash; nothing, with a warning, if the table lacks them."""
    path = COSTS / f"{core}.csv"
    if "flash_bytes" in _columns(path):
        return read_costs(path, "flash_bytes")
    _LOG.warning(
        "warning: the costs of %s do not state how often kernels read flash: waits for it are left out", core
    )
    return {}


def read_costs(path: Path, column: Column = "instructions") -> dict[str, dict[str, float]]:
    """Read a column of a table, which has a line for each loop of each variant. Raises ConfigError."""
    table: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            try:
                variant, loop, cost = line["variant"], line["loop"], float(line[column])
            except (KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"{path.name}: {line.get('variant')} has no costs: {error}") from error
            if not 0 <= cost < float("inf"):
                raise ConfigError(f"{path.name}: {cost} {column} for {loop} of {variant}")
            loops = table.setdefault(variant, {})
            if loop in loops:
                raise ConfigError(f"{path.name}: {loop} of {variant} stands there twice")
            loops[loop] = cost
    return table


def estimated(costs: CoreCosts, in_ram: Collection[str] = ()) -> TileSource:
    """Return tile times by a table. They raise ConfigError for a kernel that the table lacks.

    `in_ram`: the operators whose constants are in RAM.
    """

    def source(graph: Graph, _: Iterable[CallTile]) -> CallTime:
        loops = {operator.name: graph.loops(operator) for operator in graph.operators}
        known: dict[tuple[str, str, Interval], float] = {}
        of_stages: dict[StageCall, float] = {}

        def stage_ticks(stage: StageCall) -> float:
            if stage not in of_stages:
                of_stages[stage] = costs.stage_ticks(stage)
            return of_stages[stage]

        def time(operator: Operator, call: KernelCall, rows: Interval) -> float:
            if not operator.inputs:
                return 0.0  # a streamed input: the application's time
            key = operator.name, call.variant, rows
            if key not in known:
                counts = counts_of(graph.tensors, operator, loops[operator.name], call, rows)
                inner = (stage.times(rows) * stage_ticks(stage) for stage in call.stages)
                known[key] = costs.ticks(call.cost_name, counts) + sum(inner)
                if operator.name not in in_ram:
                    known[key] += costs.flash_waits(call, counts, rows)
            return known[key]

        return time

    return source


def per_instruction(board: Board, unit: TimeUnit) -> Callable[[Graph], CallTime]:
    """Return the ticks per instruction of a tile, by the tables of a board's core."""
    if unit == "instructions":
        return lambda _: lambda *_: 1.0
    wanted, counted = (estimated(board_costs(board, each)) for each in (unit, "instructions"))

    def times_of(graph: Graph) -> CallTime:
        times, instructions = wanted(graph, ()), counted(graph, ())

        def ratio(operator: Operator, call: KernelCall, rows: Interval) -> float:
            count = instructions(operator, call, rows)
            return times(operator, call, rows) / count if count else 1.0

        return ratio

    return times_of
