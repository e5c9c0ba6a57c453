"""The flow of `graph pipeline`: from a model and a topology to regions on units, and their simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf
from pathlib import Path
from typing import Literal

from mcudeploy.common.errors import FitError, UsageError
from mcudeploy.costs.estimate import estimated, load_costs
from mcudeploy.costs.tiles import by_calls, nothing_known
from mcudeploy.extensions.several_boards.pipeline.best import best
from mcudeploy.extensions.several_boards.pipeline.cost import (
    FREE,
    Communication,
    OperatorTicks,
    core_operators,
    systolic_operators,
)
from mcudeploy.extensions.several_boards.pipeline.exact_regions import exact
from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine, OperatorBytes, Units, line_of
from mcudeploy.extensions.several_boards.pipeline.groups import Group, kinds_of_groups
from mcudeploy.extensions.several_boards.pipeline.misfit import misfit, no_partition
from mcudeploy.extensions.several_boards.pipeline.simulate import Simulation, simulate
from mcudeploy.extensions.several_boards.pipeline.topology import Topology
from mcudeploy.extensions.several_boards.pipeline.unit_regions import (
    Decision,
    Objective,
    Region,
    first_admissible,
    greedy,
    worth,
)
from mcudeploy.extensions.several_boards.pipeline.workgraph import WorkGraph, work_graph
from mcudeploy.ir.isa import Isa
from mcudeploy.planner.model.model import Model, read_model
from mcudeploy.planner.plan_options import TRADEOFFS, Options
from mcudeploy.planner.search.kernels import alternatives, fastest
from mcudeploy.planner.tape.footprint import weights_bytes
from mcudeploy.tiling.dataflow import Dataflow

Mode = Literal["best", "first", "greedy", "exact"]
_EXACT_S = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class PipelineTask:
    """A model's graph, and its operators' costs and bytes on the units of a topology."""

    graph: WorkGraph
    topology: Topology
    ticks: OperatorTicks
    needs: OperatorBytes

    def line(self, groups: Sequence[Group], link: Communication | None = None) -> GroupLine:
        """Return the graph as a line of these groups. With a `link` in place of the topology's, units have no
        limits.
        """
        units = self.topology.units if link is None else Units(self.topology.count)
        costs = self.ticks, link or self.topology.ticks_link
        return line_of(self.graph, groups, units, costs, self.needs)

    def groups(self, mode: Mode) -> tuple[tuple[Group, ...], ...]:
        """Return the kinds of groups among which a mode searches."""
        merged, by_depth, single = kinds_of_groups(self.graph)
        return {"greedy": (single,), "first": (merged,)}.get(mode, (merged, by_depth, single))

    @property
    def single_ticks(self) -> float:
        """Return the ticks of all operators on one unit."""
        return sum(self.ticks(operator, 1) for operator in range(len(self.graph.names)))


@dataclass(frozen=True, slots=True)
class Division:
    """Regions of a line of groups.

    `decisions`: the cuts that mode "first" considered; `proven`: mode "exact" proved the regions optimal.
    """

    regions: tuple[Region, ...]
    decisions: tuple[Decision, ...] = ()
    proven: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """Regions of a line of groups on the units of a topology.

    `bound_ratio`: the throughput ratio of the best partition if links cost nothing and everything fitted.
    """

    model: Model
    task: PipelineTask
    line: GroupLine
    division: Division
    mode: Mode
    objective: Objective
    bound_ratio: float

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions, in the order of the line."""
        return self.division.regions

    @property
    def places(self) -> tuple[tuple[Place, ...], ...]:
        """The units of each region."""
        return place(self.regions, self.task.topology.width, self.task.topology.height)

    @property
    def stages(self) -> tuple[float, ...]:
        """Ticks of each region for a frame."""
        return tuple(float(self.line.stages[it.first, it.end, it.units]) for it in self.regions)

    @property
    def transfers(self) -> tuple[float, ...]:
        """Ticks of each transfer between two regions."""
        return tuple(float(self.line.transfers[it.first]) for it in self.regions[1:])

    def simulation(self, frames: int = 0) -> Simulation:
        """Simulate frames through the regions; 0 frames: enough for a steady state."""
        return simulate(self.stages, self.transfers, frames)


def plan_pipeline(
    path: Path, topology: Topology, mode: Mode, objective: Objective, options: Options
) -> Pipeline:
    """Read a model with these options, and divide it among the units of a topology.

    Raises FitError if the regions do not fit the units.
    """
    board = topology.unit_board
    model, task = task_of(read_model(path, options, isa=Isa.ANY if board is None else board.isa), topology)
    return divided(model, task, mode, objective)


def task_of(model: Model, topology: Topology) -> tuple[Model, PipelineTask]:
    """Return the model with the fastest kernels of the unit's core, and the task of dividing it."""
    if topology.systolic is None:
        board = topology.unit_board
        core = board.core if board else str(topology.core)
        flash = board.constants_room if board else inf
        costs = unit_costs(model, core, flash)
        return costs.model, PipelineTask(costs.graph, topology, costs.ticks, costs.needs)
    flow = Dataflow.of(model.graph)
    graph, positions = work_graph(flow)
    weights = tuple(weights_bytes({"": model.calls[name]}) for name in graph.names)
    needs = OperatorBytes(weights, (0,) * len(weights))
    return model, PipelineTask(graph, topology, systolic_operators(flow, positions, topology.systolic), needs)


@dataclass(frozen=True, slots=True, eq=False)
class UnitCosts:
    """A model with the fastest kernels of a core, its graph, and the ticks and bytes of the operators."""

    model: Model
    graph: WorkGraph
    ticks: OperatorTicks
    needs: OperatorBytes


def unit_costs(
    model: Model, core: str, flash: float, flash_percent: float = TRADEOFFS["balanced"].flash_percent
) -> UnitCosts:
    """Return the costs on a core with `flash` bytes for constants; `flash_percent`: as in `Options`."""
    flow = Dataflow.of(model.graph)
    graph, positions = work_graph(flow)
    source = estimated(load_costs(core))
    times = source(model.graph, alternatives(model))
    model = fastest(model, times, nothing_known(model.graph), flash, flash_percent)
    ticks = core_operators(flow, positions, by_calls(source(model.graph, ()), model.calls))
    calls = [model.calls[name] for name in graph.names]
    weights = tuple(weights_bytes({"": call}) for call in calls)
    work = tuple(call.scratch_bytes + call.state_bytes for call in calls)
    return UnitCosts(model, graph, ticks, OperatorBytes(weights, work))


def divided(model: Model, task: PipelineTask, mode: Mode, objective: Objective) -> Pipeline:
    """Return the pipeline of a task: the best division that the mode finds over all kinds of groups.

    Raises FitError if a region or every partition does not fit, UsageError if mode "exact" finds none.
    """
    lines = [task.line(groups) for groups in task.groups(mode)]
    results = [(line, _divided(line, mode, objective)) for line in lines]
    divisions = [(line, division) for line, division in results if division is not None]
    if not divisions:
        if mode == "exact" and any(best(line, objective) for line in lines):
            raise UsageError("--mode exact finds no partition of this number of groups: take --mode best")
        raise FitError(no_partition(lines[-1]))
    other: Objective = "latency" if objective == "throughput" else "throughput"
    line, division = min(
        divisions,
        key=lambda it: (worth(it[0], it[1].regions, objective), worth(it[0], it[1].regions, other)),
    )
    short = misfit(line, division.regions)
    if short:
        raise FitError(f"{short} Try --mode best, which looks for regions that fit.")
    return Pipeline(model, task, line, division, mode, objective, _free_ratio(task))


def _divided(line: GroupLine, mode: Mode, objective: Objective) -> Division | None:
    """Divide a line by a mode; None if it finds nothing."""
    if mode == "first":
        return Division(*first_admissible(line, objective))
    if mode == "greedy":
        return Division(greedy(line))
    if mode == "exact":
        solved = exact(line, objective, _EXACT_S)
        return Division(solved.regions, proven=solved.optimal) if solved else None
    regions = best(line, objective)
    return Division(regions) if regions else None


def _free_ratio(task: PipelineTask) -> float:
    """Return the throughput ratio of the best partition if links cost nothing and everything fitted."""
    lines = [task.line(groups, FREE) for groups in task.groups("best")]
    ticks = [worth(line, best(line, "throughput") or (), "throughput") for line in lines]
    return task.single_ticks / min(ticks)


Place = tuple[int, int]
"""Column and row of a unit."""


def boustrophedon(width: int, height: int) -> tuple[Place, ...]:
    """Return the units of a grid row by row, every other row in reverse: the order in which regions fill it.
    """
    return tuple(
        (col, row)
        for row in range(height)
        for col in (range(width) if row % 2 == 0 else reversed(range(width)))
    )


def place(regions: Sequence[Region], width: int, height: int) -> tuple[tuple[Place, ...], ...]:
    """Return the units of each region, which fill the grid in the order of `boustrophedon`.

    Raises ValueError if the regions need more units than the grid has.
    """
    path = boustrophedon(width, height)
    ends = [0, *accumulate(region.units for region in regions)]
    if ends[-1] > len(path):
        raise ValueError(f"{ends[-1]} units wanted, {width} x {height} are {len(path)}")
    return tuple(path[start:end] for start, end in pairwise(ends))
