"""Times without a device: those of every kernel as a sum over how often its loops run in a tile.

The factors come with the package, one table for each core, fitted by benchmarks/cost_table.py to what the
emulator counts: instructions, and cycles where there is a model of the core. Instructions compare kernels and
cuts of one core; modelled cycles also know what loads and taken branches cost.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Literal

from mcudeploy.common.errors import ConfigError
from mcudeploy.cost.tiles import CallTile, CallTime, TileSource, TileTime, by_calls
from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, KernelCall, LoopNest

COSTS = Path(__file__).resolve().parent / "tables"
STAND_INS = {
    "cortex-m0plus": "cortex-m0",
    "cortex-m23": "cortex-m0",
    "native": "rv32imafc",
    "rv32imc": "rv32imafc",
    "xtensa-lx6": "rv32imafc",
    "xtensa-lx7": "rv32imafc",
}
"""Cores without a table, and the one whose code is most like theirs (of the last four: portable C, an FPU,
which rv32imc lacks: its float32 takes longer).
"""
Unit = Literal["instructions", "cycles"]
"""What times are in: executed instructions, or cycles by the model of the core."""
_REMAKE = "benchmarks/cost_table.py makes it from the emulator"


def counts_of(graph: Graph, operator: Operator, loops: LoopNest, call: KernelCall, rows: Interval) -> Counts:
    """How often each loop of a kernel runs in a call that computes iteration rows `rows`.

    Where a kernel does not say (`KernelCall.counts`), they follow from the loop nest: `pixels` are of the
    output; `windows` the input values that these look at, for each of their channels counted once;
    `iterations` those of all loops. An operator that accumulates has rows and pixels of its input, and every
    call touches all its outputs.
    """
    output = graph.tensors[operator.output]
    accumulates = operator.op.accumulates
    walked = graph.tensors[operator.inputs[0]] if accumulates else output
    outputs = output.elements * (1 if accumulates else len(rows) / output.shape[0])
    made = not accumulates or rows.hi == walked.shape[0]
    clipped = {"clipped": outputs} if made and _is_clipped(call, output) else {}
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
    """Whether int8 results are narrowed by a pass over them; see mcud_clip_s8.h."""
    if output.dtype is not DType.INT8 or "low" not in call.params:
        return False
    return (call.params["low"], call.params["high"]) != (-128, 127)


@dataclass(frozen=True, slots=True)
class CoreCosts:
    """Times of every kernel variant on a core, in one unit: what a pass of each of its loops takes."""

    core: str
    kernels: Mapping[str, Mapping[str, float]]
    unit: Unit = "instructions"

    def ticks(self, variant: str, counts: Mapping[str, float]) -> float:
        """What a call of a variant takes. Raises ConfigError for a variant or loop that the table lacks."""
        cost = self.kernels.get(variant, {})
        try:
            return sum(count * cost[name] for name, count in counts.items() if count)
        except KeyError as missing:
            what = f"{variant} ({missing.args[0]})" if cost else variant
            raise ConfigError(
                f"the costs of {self.core} lack {what}: the table is older; {_REMAKE}"
            ) from None


@cache
def load_costs(core: str, unit: Unit = "instructions") -> CoreCosts:
    """The shipped table of a core, or of the one that stands in for it.

    Raises ConfigError for a core without either or without a cycle model, and for a table that is damaged.
    """
    name = STAND_INS.get(core, core)
    path = COSTS / f"{name}.csv"
    if not path.is_file():
        known = ", ".join(sorted(one.stem for one in COSTS.glob("*.csv")))
        raise ConfigError(f"no costs of kernels on {core}; there are those of {known}. {_REMAKE}")
    if unit == "cycles" and unit not in _columns(path):
        known = ", ".join(sorted(one.stem for one in COSTS.glob("*.csv") if unit in _columns(one)))
        raise ConfigError(
            f"there is no cycle model of {core}; there are those of {known}: leave --objective cycles out"
        )
    return CoreCosts(name, read_costs(path, unit), unit)


def best_costs(core: str) -> CoreCosts:
    """The costs of a core in modelled cycles where there is a cycle model of it, else in instructions.

    Raises ConfigError as `load_costs` does.
    """
    try:
        return load_costs(core, "cycles")
    except ConfigError:
        return load_costs(core)


def _columns(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file), [])


def read_costs(path: Path, unit: Unit = "instructions") -> dict[str, dict[str, float]]:
    """A table: a line for each loop of each variant, a column for each unit. Raises ConfigError."""
    table: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            try:
                variant, loop, cost = line["variant"], line["loop"], float(line[unit])
            except (KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"{path.name}: {line.get('variant')} has no costs: {error}") from error
            if not 0 <= cost < float("inf"):
                raise ConfigError(f"{path.name}: {cost} {unit} for {loop} of {variant}")
            loops = table.setdefault(variant, {})
            if loop in loops:
                raise ConfigError(f"{path.name}: {loop} of {variant} stands there twice")
            loops[loop] = cost
    return table


def estimated(costs: CoreCosts) -> TileSource:
    """Times by a table. They raise ConfigError for a kernel that it lacks."""

    def source(graph: Graph, _: Iterable[CallTile]) -> CallTime:
        loops = {operator.name: graph.loops(operator) for operator in graph.operators}

        def time(operator: Operator, call: KernelCall, rows: Interval) -> float:
            if not operator.inputs:
                return 0.0  # a feed: the application's time
            counts = counts_of(graph, operator, loops[operator.name], call, rows)
            return costs.ticks(call.variant, counts)

        return time

    return source


def per_instruction(core: str, unit: Unit) -> Callable[[Graph], CallTime]:
    """The time of a tile in a unit for each of its instructions, by the tables of a core."""
    if unit == "instructions":
        return lambda _: lambda *_: 1.0
    wanted, counted = (estimated(load_costs(core, each)) for each in (unit, "instructions"))

    def times_of(graph: Graph) -> CallTime:
        times, instructions = wanted(graph, ()), counted(graph, ())

        def ratio(operator: Operator, call: KernelCall, rows: Interval) -> float:
            count = instructions(operator, call, rows)
            return times(operator, call, rows) / count if count else 1.0

        return ratio

    return times_of


def estimated_tile_time(graph: Graph, calls: Mapping[str, KernelCall], core: str) -> TileTime:
    """The times of a graph's tiles on a core, computed by `calls`."""
    return by_calls(estimated(load_costs(core))(graph, ()), calls)
