"""Times without a device: instructions of every kernel as a linear function of what a tile does.

The factors come with the package, one table for each core, fitted by benchmarks/cost_table.py to instruction
counts of the emulator. Instructions are not cycles: they compare kernels and cuts of one core.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from functools import cache
from math import prod
from pathlib import Path

from mcudeploy.errors import ConfigError
from mcudeploy.graph import Graph, Operator
from mcudeploy.interval import Interval
from mcudeploy.ops.opdef import KernelCall, LoopNest
from mcudeploy.simulator.cost import CallTile, CallTime, TileSource, TileTime, by_calls

COSTS = Path(__file__).resolve().parent.parent / "costs"
STAND_INS = {
    "cortex-m0plus": "cortex-m0",
    "cortex-m7": "cortex-m4",
    "native": "rv32imafc",
    "xtensa-lx7": "rv32imafc",
}
"""Cores without a table, and the one whose code is most like theirs (of the last two: portable C, an FPU)."""
_REMAKE = "benchmarks/cost_table.py makes it from the emulator"


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel does in one call, or the instructions that each of it costs.

    `pixels` are of the output; `windows` the input values that these look at, for each of their channels
    counted once; `iterations` those of all loops, for operators that multiply their multiply-accumulates. An
    operator that accumulates has rows and pixels of its input, and every call touches all its outputs.
    """

    calls: float
    rows: float
    pixels: float
    windows: float
    outputs: float
    iterations: float

    def times(self, each: Work) -> float:
        """The sum of all products."""
        products = (count * cost for count, cost in zip(astuple(self), astuple(each), strict=True))
        return float(sum(products))


def work_of(graph: Graph, operator: Operator, loops: LoopNest, rows: Interval) -> Work:
    """What a call does that computes iteration rows `rows` of an operator whose loops are `loops`."""
    output = graph.tensors[operator.output]
    accumulates = operator.op.accumulates
    walked = graph.tensors[operator.inputs[0]] if accumulates else output
    iterations = prod(axis.size for axis in loops.axes) * len(rows) / walked.shape[0]
    outputs = output.elements * (1 if accumulates else len(rows) / output.shape[0])
    windows = iterations / output.shape[2]
    return Work(1, len(rows), len(rows) * walked.shape[1], windows, outputs, iterations)


@dataclass(frozen=True, slots=True)
class CoreCosts:
    """Instructions of every kernel variant on a core."""

    core: str
    kernels: Mapping[str, Work]

    def of(self, variant: str) -> Work:
        """The costs of one. Raises ConfigError where the table lacks it."""
        if variant not in self.kernels:
            raise ConfigError(f"the costs of {self.core} lack {variant}: the table is older; {_REMAKE}")
        return self.kernels[variant]


@cache
def load_costs(core: str) -> CoreCosts:
    """The shipped table of a core, or of the one that stands in for it.

    Raises ConfigError for a core without either, and for a table that is damaged.
    """
    name = STAND_INS.get(core, core)
    path = COSTS / f"{name}.csv"
    if not path.is_file():
        known = ", ".join(sorted(one.stem for one in COSTS.glob("*.csv")))
        raise ConfigError(f"no costs of kernels on {core}; there are those of {known}. {_REMAKE}")
    return CoreCosts(name, read_costs(path))


def read_costs(path: Path) -> dict[str, Work]:
    """A table: a line for each variant, a column for each field of `Work`. Raises ConfigError."""
    names = [field.name for field in fields(Work)]
    table: dict[str, Work] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            try:
                cost = Work(*(float(line[name]) for name in names))
            except (KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"{path.name}: {line.get('variant')} has no costs: {error}") from error
            if not all(0 <= each < float("inf") for each in astuple(cost)) or not any(astuple(cost)):
                raise ConfigError(f"{path.name}: costs of {line['variant']} are no positive numbers")
            if line["variant"] in table:
                raise ConfigError(f"{path.name}: {line['variant']} stands there twice")
            table[line["variant"]] = cost
    return table


def estimated(costs: CoreCosts) -> TileSource:
    """Times by a table. They raise ConfigError for a kernel that it lacks."""

    def source(graph: Graph, _: Iterable[CallTile]) -> CallTime:
        loops = {operator.name: graph.loops(operator) for operator in graph.operators}

        def time(operator: Operator, call: KernelCall, rows: Interval) -> float:
            if not operator.inputs:
                return 0.0  # a feed: the application's time
            return work_of(graph, operator, loops[operator.name], rows).times(costs.of(call.variant))

        return time

    return source


def estimated_tile_time(graph: Graph, calls: Mapping[str, KernelCall], core: str) -> TileTime:
    """The times of a graph's tiles on a core, computed by `calls`."""
    return by_calls(estimated(load_costs(core))(graph, ()), calls)
