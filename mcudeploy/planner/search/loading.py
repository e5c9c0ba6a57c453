"""Constants that are loaded from flash into free bytes of an arena before they are used.

Everything else keeps its place. Operators follow each other in the order of their first steps. Each transfer
begins as early as its engine is free and the arena has room until the operator's last step. It is kept if the
waits for flash that it saves are longer than the wait for it. A step that computes a vector may load its
constants itself, in pieces of some output channels: where the arena has no room for all of them, or where the
core then waits less.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mcudeploy.boards.board import Board
from mcudeploy.costs.estimate import CoreCosts, estimated
from mcudeploy.costs.stalls import piece_ticks, run_in_pieces
from mcudeploy.costs.tiles import CopyCost, move_price, step_ticks
from mcudeploy.costs.timeline import Clock
from mcudeploy.ir.constant_block import ConstantBlock, is_loadable
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Layout, LoadedConstants, Pieces, Plan, Residence, Transfer, constants_name
from mcudeploy.ops.move.constant_pieces import PieceLoads, channels_unit
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.search.load_destination import Destination, capacity, destination
from mcudeploy.planner.search.placing import with_estimates
from mcudeploy.planner.search.tile_times import shared_costs
from mcudeploy.tiling.blocks import TiledGraph

_LEAST_GAIN = 0.01
"""If all loads together save less than this share of the latency, all constants stay in flash."""

_LEAST_SHARE = 0.0005
"""If loading an operator's constants saves less than this share of the latency, they stay in flash."""

_QUEUE = 8
"""The most transfers that wait for the engine or are under way: a driver's queue has room for as many."""

_MOST_PIECE_BYTES = 8192
"""The most bytes of a piece: larger ones have fewer transfers, but two of them need room in the arena."""

_TRIALS = 40
"""The most operators that are left out on trial."""


def loading_constants(plan: Plan, model: Model, board: Board, costs: CoreCosts, options: Options) -> Plan:
    """Return the plan with constants loaded ahead of use if that saves time, else the plan itself.

    Without an engine that reads flash the core loads them, if the options say so. Arenas keep their size, or
    grow up to the limit of RAM.
    """
    target = destination(plan, board, by_core=options.load_constants == "core")
    if costs.flash_reads is None or target is None or plan.layout.constants or plan.lanes or plan.functions:
        return plan
    task = _Loading.of(plan, model, target, costs, capacity(plan, board, target, options.ram_limit))
    loads = task.best()
    if not loads:
        return plan
    changed = replace(plan, layout=task.laid_out(loads))
    changed = with_estimates(changed, model, board, costs)
    gains = changed.estimate.latency_ticks < (1 - _LEAST_GAIN) * plan.estimate.latency_ticks
    return changed if gains else plan


@dataclass(frozen=True, slots=True)
class _Loadable:
    """An operator with its steps, the bytes of its constants, and the ticks that it waits for flash.

    `pieces`: those in which its step can load them, in a place of `pieces_bytes`.
    """

    operator: str
    steps: tuple[int, ...]
    size_bytes: int
    saved: float
    pieces: Pieces | None = None
    pieces_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Load:
    """Constants that are loaded from step `life.lo` on, to an offset.

    `wait`: ticks of the core for it; `calls`: those of starts and waits; `end`: when its engine is free.
    """

    loadable: _Loadable
    life: Interval
    offset: int
    wait: float
    calls: float
    end: float
    pieces: Pieces | None = None

    @property
    def size_bytes(self) -> int:
        """The bytes of its place."""
        return self.loadable.size_bytes if self.pieces is None else self.loadable.pieces_bytes


@dataclass(frozen=True, slots=True, eq=False)
class _Occupancy:
    """The loads so far, in the order of their transfers, with the times and bytes that they leave.

    `starts`: of each step, in ticks, and the end of the last one. `taken`: as in `_Loading`, with the loads.
    """

    starts: NDArray[np.float64]
    taken: NDArray[np.int64]
    loads: Sequence[_Load]

    @property
    def engine_free(self) -> float:
        """When the engine has ended all transfers, in ticks."""
        return max((it.end for it in self.loads), default=0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Loading:
    """A plan with the times of its steps, and the bytes of the target that are taken.

    `ticks`, `waits`: of each step without its waits for flash, and these waits. `taken`: a row for each
    residence with its first step, end, offset and end of bytes.
    """

    plan: Plan
    target: Destination
    capacity: int
    price: CopyCost
    ticks: NDArray[np.float64]
    waits: NDArray[np.float64]
    taken: NDArray[np.int64]
    loadable: tuple[_Loadable, ...]

    @classmethod
    def of(cls, plan: Plan, model: Model, target: Destination, costs: CoreCosts, capacity: int) -> _Loading:
        """Return the task of a plan by the kernels of `model`."""
        tiled, steps = TiledGraph.of(plan), plan.schedule.steps
        able = {
            name for name, call in model.calls.items() if is_loadable(call) and name not in model.replaceable
        }
        sources = (estimated(costs, model.in_ram), estimated(costs, {*model.in_ram, *able}))
        whole, bare = (
            np.array(step_ticks(tiled, steps, shared_costs(model, tiled.flow, source(plan.graph, ()))))
            for source in sources
        )
        steps_of: dict[str, list[int]] = {}
        for at, step in enumerate(steps):
            steps_of.setdefault(plan.graph.operators[step.operator].name, []).append(at)
        waits, loadable = whole - bare, []
        for name, own in steps_of.items():
            if name in able and (saved := float(waits[own].sum())) > 0:
                size = align_up(ConstantBlock.of(model.calls[name]).size_bytes, target.alignment)
                loadable.append(_Loadable(name, tuple(own), size, saved))
        taken = np.array(list(_taken(plan, tiled, model, target.memory.name)), np.int64).reshape(-1, 4)
        price = move_price(sources[0])
        loadable = [_in_pieces(it, model, target, price) for it in loadable]
        return cls(plan, target, capacity, price, bare, waits, taken, tuple(loadable))

    def best(self) -> list[_Load]:
        """Return the loads with the least time in total, some operators left out on trial."""
        least, loads = self._placed(())
        left_out: set[str] = set()
        trials = sorted((it for it in loads if it.wait), key=lambda it: -it.wait)[:_TRIALS]
        for trial in trials:
            total, others = self._placed({*left_out, trial.loadable.operator})
            if total < least:
                least, loads = total, others
                left_out.add(trial.loadable.operator)
        return loads

    def _placed(self, left_out: Collection[str]) -> tuple[float, list[_Load]]:
        """Return the time of all steps with loads, and the loads in the order of their transfers."""
        steps = self.ticks + self.waits
        taken, loads = self.taken, list[_Load]()
        least = _LEAST_SHARE * steps.sum()
        for each in self.loadable:
            if each.operator in left_out:
                continue
            occupancy = _Occupancy(np.concatenate(([0.0], np.cumsum(steps))), taken, loads)
            possible = self._whole(each, occupancy), self._pieces(each, occupancy)
            load = min((it for it in possible if it), key=lambda it: it.wait + it.calls, default=None)
            if load is None or each.saved - load.wait - load.calls <= least:
                continue
            loads.append(load)
            steps[list(each.steps)] -= self.waits[list(each.steps)]
            steps[each.steps[0]] += load.wait + load.calls
            row = (load.life.lo, load.life.hi, load.offset, load.offset + load.size_bytes)
            taken = np.vstack([taken, np.array([row], np.int64)])
        return float(steps.sum()), loads

    def _whole(self, each: _Loadable, occupancy: _Occupancy) -> _Load | None:
        """Return the earliest load of all constants at once; None without room."""
        place = self._begin(each, occupancy)
        if place is None:
            return None
        begin, offset = place
        cost = self.target.copy_ticks(each.size_bytes, self.price)
        end = max(occupancy.starts[begin], occupancy.engine_free) + cost
        wait = cost if self.target.link is None else max(0.0, end - occupancy.starts[each.steps[0]])
        calls = 0.0 if self.target.link is None else 2 * self.price.move
        return _Load(each, Interval(begin, each.steps[-1] + 1), offset, wait, calls, end)

    def _pieces(self, each: _Loadable, occupancy: _Occupancy) -> _Load | None:
        """Return the load in pieces; None without room."""
        pieces, link, first = each.pieces, self.target.link, each.steps[0]
        if pieces is None or link is None:
            return None
        life = Interval(first, first + 1)
        offset = self._offset(each.pieces_bytes, occupancy.taken, life)
        if offset is None:
            return None
        core, engine = Clock(occupancy.starts[first]), Clock(occupancy.engine_free)
        cost = piece_ticks(pieces, link, self.target.flash, self.target.memory)
        wait = run_in_pieces(core, engine, pieces.count, cost, float(self.ticks[first]))
        calls = 2 * self.price.move * pieces.transfers
        return _Load(each, life, offset, wait, calls, engine.now, pieces)

    def _begin(self, each: _Loadable, occupancy: _Occupancy) -> tuple[int, int] | None:
        """Return the earliest step before which its transfer may begin, and an offset; None without room."""
        starts, taken, loads = occupancy.starts, occupancy.taken, occupancy.loads
        first, end = each.steps[0], each.steps[-1] + 1
        offset = self._offset(each.size_bytes, taken, Interval(first, end))
        if offset is None:
            return None
        # Queued after another transfer, it begins as soon as that ends.
        lo = max(0, int(np.searchsorted(starts, occupancy.engine_free, side="right")) - 1)
        if len(loads) >= _QUEUE:
            lo = max(lo, int(np.searchsorted(starts, loads[-_QUEUE].end)))
        # A transfer that begins before a step that loads pieces would delay these.
        lo = max(lo, *(it.life.hi for it in loads if it.pieces is not None), 0)
        lo, hi = (first, first) if self.target.link is None else (min(lo, first), first)
        while lo < hi:
            middle = (lo + hi) // 2
            earlier = self._offset(each.size_bytes, taken, Interval(middle, end))
            if earlier is None:
                lo = middle + 1
            else:
                hi, offset = middle, earlier
        return hi, offset

    def _offset(self, size: int, taken: NDArray[np.int64], life: Interval) -> int | None:
        """Return the lowest offset that is free during some steps; None without room."""
        there = taken[(taken[:, 0] < life.hi) & (life.lo < taken[:, 1])]
        at = 0
        for lo, hi in sorted((int(lo), int(hi)) for lo, hi in there[:, 2:]):
            if lo - at >= size:
                return at
            at = max(at, align_up(hi, self.target.alignment))
        return at if at + size <= self.capacity else None

    def laid_out(self, loads: Sequence[_Load]) -> Layout:
        """Return the layout with the loads; their transfers follow others that begin before the same step."""
        layout, name, home = self.plan.layout, self.target.memory.name, 0
        constants: dict[str, LoadedConstants] = {}
        transfers = [(layout.begin(it), it) for it in layout.transfers]
        for load in loads:
            each = load.loadable
            place = Residence(load.life, name, load.offset)
            if load.pieces is not None:
                constants[each.operator] = LoadedConstants(load.size_bytes, 0, place, load.pieces)
                continue
            constants[each.operator] = LoadedConstants(each.size_bytes, home, place)
            home += each.size_bytes
            end = load.life.lo if self.target.link is None else each.steps[0]
            transfer = Transfer(self.target.engine, constants_name(each.operator), 0, 0, 1, end)
            transfers.append((load.life.lo, transfer))
        ends = (it.place.offset + it.size_bytes for it in constants.values())
        size = max(layout.arenas[name], *(align_up(end, ARENA_GRAIN_BYTES) for end in ends))
        ordered = tuple(it for _, it in sorted(transfers, key=lambda each: each[0]))
        return replace(layout, arenas={**layout.arenas, name: size}, transfers=ordered, constants=constants)


def _in_pieces(each: _Loadable, model: Model, target: Destination, price: CopyCost) -> _Loadable:
    """Return an operator with the pieces in which its step can load its constants.

    The transfer of a piece takes as many ticks as all starts and waits: the step waits for the first piece.
    """
    call = model.calls[each.operator]
    output = next(model.graph.tensors[it.output] for it in model.graph.operators if it.name == each.operator)
    unit = channels_unit(call, output)
    if target.link is None or unit == 0 or len(each.steps) > 1:
        return each
    smallest = PieceLoads.of(call, output, unit)
    calls = 2 * price.move * len(smallest.arrays)
    size = min(_MOST_PIECE_BYTES, (each.size_bytes * calls / target.flash.read_cost) ** 0.5)
    units = max(1, int(size / sum(it.piece_bytes for it in smallest.arrays)))
    if units * unit >= output.shape[2]:
        return each
    loads = PieceLoads.of(call, output, units * unit)
    size_bytes = align_up(2 * loads.half_bytes, target.alignment)
    return replace(each, pieces=loads.pieces(target.link.engine), pieces_bytes=size_bytes)


def _taken(plan: Plan, tiled: TiledGraph, model: Model, memory: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield the first step, the end, the offset and the end of the bytes of all residences in a memory."""
    for name, blocks in plan.layout.blocks.items():
        for number, block in enumerate(blocks):
            size = tiled.block_bytes(name, number)
            for it in block:
                if it.memory == memory:
                    yield it.life.lo, max(it.life.hi, it.life.lo + 1), it.offset, it.offset + size
    for name, steps in plan.layout.scratch.items():
        for it in (it for step in steps for it in step):
            if it.memory == memory:
                yield it.life.lo, it.life.hi, it.offset, it.offset + sum(model.work[name])
