"""The boards that have room for a model, and its latency there: one search for all boards of a core."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf

from mcudeploy.boards.board import CODE_BYTES, FIRMWARE_RAM_BYTES, Board, Memory
from mcudeploy.boards.platformio import is_pio
from mcudeploy.common.effort import Effort
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import count_text
from mcudeploy.costs.estimate import (
    STAND_INS,
    CoreCosts,
    board_costs,
    estimated,
    load_costs,
    unit_of_estimates,
)
from mcudeploy.costs.tiles import move_price
from mcudeploy.extension import added
from mcudeploy.ir.clock import milliseconds
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.plan import Layout, Plan, Residences
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned, search_plans
from mcudeploy.planner.search import placing
from mcudeploy.planner.search.kernels import least_constants
from mcudeploy.planner.search.tile_times import shared_costs
from mcudeploy.planner.tape import footprint
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.blocks import TiledGraph

_LOG = logging.getLogger(__name__)
SEARCH_S, _PLACING_S = 1.0, 0.3
"""Effort of each search for the boards of a core, and of placing a plan in a board's memories.

A core has at most four searches.
"""
SLOWEST = 200.0
"""The latency overhead in percent of the slowest plans that are tried."""
_ENOUGH_BYTES = 2**31
"""The size of a memory that has room for everything."""


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A plan of a model on a board: `unsplit`, `split`, `streamed`, `input kept` or `slower`.

    A `streamed` plan is split, and its input arrives by rows. An `input kept` plan is split, and keeps only
    the input's rows of a moving window. A `slower` plan exceeds the limit of the overhead.
    `missing` contains a sentence for each limit that the plan exceeds. `overhead`: its latency in percent
    over the unsplit plan.
    """

    name: str
    plan: Plan
    model: Model
    missing: tuple[str, ...]
    overhead: float

    @property
    def options(self) -> str:
        """The options of `plan` that lead to such a plan, beside those of `fit`."""
        words = ["--stream-input"] if self.plan.form.streamed else []
        if self.name == "slower":
            words.append(f"--max-overhead {ceil(self.overhead)}")
        return " ".join(words)


@dataclass(frozen=True, slots=True, eq=False)
class Latency:
    """The latency of a plan on a board by the costs of its core, or of the core that stands in for it.

    `flash_ticks`: the part of `ticks` that the core waits for reads of constants in flash; None if
    unknown.
    """

    ticks: float
    unit: str
    costs_of: str
    clock_hz: int
    flash_ticks: float | None = 0.0

    @property
    def milliseconds(self) -> float:
        return milliseconds(self.ticks, self.unit, self.clock_hz)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The fit of a model on a board.

    `ways` ends with the first that fits, or contains all that were tried. `latency` is that of the chosen
    way, None on the host.
    """

    board: Board
    ways: tuple[Way, ...]
    latency: Latency | None

    @property
    def chosen(self) -> Way:
        """The first way that fits, or the one with the smallest arena."""
        return chosen(self.ways)

    @property
    def fits(self) -> bool:
        return not self.chosen.missing

    @property
    def ram_bytes(self) -> int:
        """The RAM of the arena, the data of the firmware, and the stack that the board reserves."""
        plan = self.chosen.plan
        arena_bytes = plan.layout.arena_bytes + plan.parameters.ram_bytes
        return arena_bytes + FIRMWARE_RAM_BYTES + self.board.stack_bytes + plan.form.stack_bytes

    @property
    def board_ram_bytes(self) -> int:
        return sum(memory.bytes for memory in self.board.memories)

    @property
    def flash_bytes(self) -> int:
        """The flash of weights and tables, without code."""
        way = self.chosen
        tables = footprint.tables_bytes(PlanView(way.plan, way.model.calls), self.board)
        return footprint.weights_bytes(way.model.calls) + tables

    @property
    def excess_bytes(self) -> int:
        """The bytes by which its arenas and its constants exceed the board, in total."""
        return self._beyond_bytes + max(0, self.flash_bytes - self.board.flash_bytes)

    @property
    def relative_excess(self) -> float:
        """The sum of two excesses: of arenas as a part of the memories' room, and of constants as a part of
        the flash's room. It is 0.0 if and only if the model fits.
        """
        if self.fits:
            return 0.0
        board = self._emptied
        room, flash_room = sum(map(board.room, board.memories)), board.flash_room
        beyond_flash = max(0, self.flash_bytes - flash_room)
        return self._beyond_bytes / max(1, room) + beyond_flash / max(1, flash_room)

    @property
    def _emptied(self) -> Board:
        """The board without what the plan takes beside its arenas."""
        board = self.board.with_more_stack(self.chosen.plan.form.stack_bytes)
        return board.reserving(self.chosen.plan.parameters.ram_bytes)

    @property
    def _beyond_bytes(self) -> int:
        board = self._emptied
        room = {memory.name: board.room(memory) for memory in board.memories}
        arenas = self.chosen.plan.layout.arenas
        return sum(max(0, size - room[name]) for name, size in arenas.items())


def chosen(ways: Sequence[Way]) -> Way:
    """Return the first way that fits, or else the one with the smallest arena."""
    least = min(ways, key=lambda way: way.plan.layout.arena_bytes)
    return next((way for way in ways if not way.missing), least)


def rank_boards(
    model: Model, boards: Sequence[Board], options: Options, progress: Progress = SILENT
) -> list[Fit]:
    """Return the fit of a model on each board, without its NPU if the package that plans for it is missing.

    Boards that fit come first, the smallest first: the least RAM, then flash, then clock. The others follow
    in the order of missing bytes. Raises ConfigError if kernels have no costs on any of the cores.
    """
    groups: dict[tuple[str, Isa], list[Board]] = {}
    boards = _with_planned_units(boards)
    for board in boards if options.dma_io else [it.with_dma_everywhere() for it in boards]:
        groups.setdefault((STAND_INS.get(board.core, board.core), board.isa), []).append(board)
    fits: list[Fit] = []
    for done, ((core, isa), alike) in enumerate(groups.items()):
        progress.stage(f"searching for {core}: {count_text(len(alike), 'board')}")
        progress.advance(done, len(groups))
        if model.isa is not isa:
            model = model.of_graph(model.graph, model.sha256, isa=isa)
        fits += _Searched(model, tuple(alike), options).fits()
    return sorted(fits, key=_rank)


def _with_planned_units(boards: Sequence[Board]) -> list[Board]:
    """Return boards without their NPUs if a package is missing that plans for these."""
    missing = [package for it in added("unit") if not it.installed() for package in it.packages]
    if missing and any(it.npu is not None for it in boards):
        _LOG.warning("note: boards with a unit are compared without it: pip install %s", " ".join(missing))
        return [it.model_copy(update={"npu": None}) for it in boards]
    return list(boards)


def _rank(fit: Fit) -> tuple[bool, int, int, int, int, bool, str]:
    """Return the sort key. Boards with a file come before those of PlatformIO with the same chip."""
    board = fit.board
    size = fit.board_ram_bytes, board.flash_bytes, board.clock_hz
    return not fit.fits, fit.excess_bytes, *size, is_pio(board.name), board.name


def unsplit_fit(model: Model, board: Board, options: Options) -> Fit:
    """Return the fit of a model's unsplit plan on a board, which takes no search."""
    board = board if options.dma_io else board.with_dma_everywhere()
    if model.isa is not board.isa:
        model = model.of_graph(model.graph, model.sha256, isa=board.isa)
    return _Searched(model, (board,), options).unsplit_fit(board)


@dataclass(frozen=True, eq=False)
class _Searched:
    """The plans of a model for boards of one core, searched on a board whose only memory has room for all."""

    model: Model
    boards: tuple[Board, ...]
    options: Options

    def fits(self) -> Iterator[Fit]:
        """Yield the fit of the model on each board."""
        for board in self.boards:
            ways: list[Way] = []
            for name, planned in self._ways():
                ways.append(_on_board(name, planned, board))
                hopeless = footprint.weights_bytes(ways[-1].model.calls) > board.flash_room
                if hopeless or not ways[-1].missing:
                    break
            best = chosen(ways)
            yield Fit(board, tuple(ways), estimated_latency(best.plan, best.model, board))

    def unsplit_fit(self, board: Board) -> Fit:
        """Return the fit of the unsplit plan on a board."""
        way = _on_board("unsplit", self._unsplit, board)
        return Fit(board, (way,), estimated_latency(way.plan, way.model, board))

    def _ways(self) -> Iterator[tuple[str, Planned]]:
        """Yield the plans to search by name, as far as the options request them."""
        yield "unsplit", self._unsplit
        yield "split", self._split
        if self.model.window is None:
            yield "streamed", self._streamed
        else:
            yield "input kept", self._input_kept
        if self.options.overhead_limit < SLOWEST:
            yield "slower", self._slower

    @cached_property
    def _unsplit(self) -> Planned:
        return self._search(replace(self.options, split=False))

    @cached_property
    def _split(self) -> Planned:
        return self._search(self.options)

    @cached_property
    def _streamed(self) -> Planned:
        return self._search(replace(self.options, stream_input=True))

    @cached_property
    def _input_kept(self) -> Planned:
        return self._search(self.options, self.model.keeping({}))

    @cached_property
    def _slower(self) -> Planned:
        streams = self.options.stream_input or self.model.window is None
        return self._search(replace(self.options, stream_input=streams, max_overhead=SLOWEST))

    def _search(self, options: Options, model: Model | None = None) -> Planned:
        model = self.model if model is None else model
        return search_plans(model, _roomy(self.boards, model), replace(options, time_limit=SEARCH_S))


def _roomy(boards: Sequence[Board], model: Model) -> Board:
    """Return the first board with one memory that has room for everything, aligned for all boards.

    Its kernels suit the smallest flash that can hold the weights.
    """
    least = least_constants(model) + CODE_BYTES
    flash_bytes = min((it.flash_room for it in boards if it.flash_room >= least), default=_ENOUGH_BYTES)
    first = boards[0]
    alignment = max(memory.alignment for board in boards for memory in board.memories)
    memory = Memory(name=first.memories[0].name, origin=0, bytes=_ENOUGH_BYTES, alignment=alignment)
    flash = first.flash.model_copy(update={"bytes": _ENOUGH_BYTES, "limit": flash_bytes})
    units = (first.units[0].model_copy(update={"memories": (), "cached": ()}),)
    return first.model_copy(update={"memories": (memory,), "flash": flash, "units": units, "links": ()})


def _on_board(name: str, planned: Planned, board: Board) -> Way:
    """Return the first plan in the memories of a board, and what that board lacks.

    Among `slower` plans, return the fastest that fits, if there is one.
    """
    if name == "unsplit":
        return _placed(name, planned, planned.baseline, board)
    first = _placed(name, planned, planned.choices[0], board)
    if name != "slower" or first.missing:
        return first
    faster = (_placed(name, planned, plan, board) for plan in planned.choices[:0:-1])
    return next((way for way in faster if not way.missing), first)


def _placed(name: str, planned: Planned, plan: Plan, whole: Board) -> Way:
    model, board = planned.model_of(plan), whole.with_more_stack(plan.form.stack_bytes)
    overhead = 100 * (plan.estimate.ticks / (planned.baseline.estimate.ticks or inf) - 1)
    memory = _memory_for(plan.layout.arena_bytes, board)
    if memory is not None:
        plan = replace(plan, board=board.name, layout=_moved_into(plan.layout, memory))
    else:
        plan = _spread(plan, model, board)
    short = footprint.missing(PlanView(plan, model.calls), whole, None)
    return Way(name, plan, model, tuple(short), overhead)


def _memory_for(arena_bytes: int, board: Board) -> Memory | None:
    """Return the first fast memory with room for an arena that may contain inputs and outputs.

    The board's first unit must reach it.
    """
    reached = board.io_memories.intersection(board.reach(board.units[0]))
    fast = (memory for memory in board.memories if memory.is_fast and memory.name in reached)
    return next((memory for memory in fast if board.room(memory) >= arena_bytes), None)


def _moved_into(layout: Layout, memory: Memory) -> Layout:
    """Return a layout in one memory as a layout in another."""

    def moved(places: Mapping[str, Residences]) -> dict[str, Residences]:
        return {
            name: tuple(tuple(replace(each, memory=memory.name) for each in block) for block in blocks)
            for name, blocks in places.items()
        }

    return replace(
        layout,
        blocks=moved(layout.blocks),
        scratch=moved(layout.scratch),
        arenas={memory.name: layout.arena_bytes},
    )


def _spread(plan: Plan, model: Model, board: Board) -> Plan:
    """Return a plan placed again in all memories of a board."""
    costs = estimated(load_costs(board.core))
    tiled = TiledGraph.of(plan)
    times = shared_costs(model, tiled.flow, costs(plan.graph, ()))
    budget = Budget(move_price(costs), Effort.of(_PLACING_S), times)
    ways = (
        placing.placed(model, board, tiled, plan.schedule, splits=plan.splits, budget=each)
        for each in (None, budget)
    )
    best = min(ways, key=lambda one: placing.cost_key(one, board))
    return placing.timed(best, model, board, costs, move_price(costs))


def estimated_latency(plan: Plan, model: Model, board: Board) -> Latency | None:
    """Return the latency of a plan by its core's costs: steps, moves, waits. None on the host."""
    if board.is_host:
        return None
    costs = board_costs(board)

    def ticks(costs: CoreCosts) -> float:
        return placing.with_estimates(plan, model, board, costs).estimate.latency_ticks

    whole = ticks(costs)
    of_flash: float | None = 0.0
    if board.flash.read_cost:
        of_flash = whole - ticks(replace(costs, flash_reads=None)) if costs.flash_reads else None
    if of_flash and model.cores > 1:  # the cores share one flash
        whole, of_flash = whole + of_flash * (model.cores - 1), of_flash * model.cores
    return Latency(whole, unit_of_estimates(board), costs.core, board.clock_hz, of_flash)


def longest_step(plan: Plan, model: Model, board: Board) -> tuple[int, Latency] | None:
    """Return the slowest step by the costs of the core, and its time. None on the host."""
    if board.is_host or not plan.schedule.steps:
        return None
    costs = board_costs(board)
    times = placing.estimated_steps(plan, model, costs)
    step = max(range(len(times)), key=times.__getitem__)
    return step, Latency(times[step], unit_of_estimates(board), costs.core, board.clock_hz)
