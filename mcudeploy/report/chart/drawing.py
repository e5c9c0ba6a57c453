"""The content of a plan's picture: rectangles of bytes over steps, independent of pixels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mcudeploy.common.text import count_text
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Residence, constants_name, memories_of
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes


@dataclass(frozen=True, slots=True)
class Area:
    """Bytes that are in use for some steps."""

    steps: Interval
    bytes: Interval

    @property
    def size(self) -> int:
        """Bytes times steps."""
        return len(self.steps) * len(self.bytes)


@dataclass(frozen=True, slots=True)
class ChartGroup:
    """All blocks of one tensor, or the scratch or the loaded constants of one operator. `colour`: the number
    of a tensor's colour; -1 for the others.
    """

    name: str
    note: str
    colour: int
    areas: tuple[Area, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One memory: its content, and the live bytes at each step.

    `flights`: bytes that an engine, or the core, is copying into it or out of it, with their steps. Copies
    that are made at once have none.
    """

    memory: str
    arena_bytes: int
    groups: tuple[ChartGroup, ...]
    load: tuple[int, ...]
    flights: tuple[Area, ...] = ()

    @property
    def peak_step(self) -> int:
        """The first step with the maximum of live bytes."""
        return self.load.index(max(self.load))


@dataclass(frozen=True, slots=True)
class ChartRun:
    """Consecutive steps of one operator, in the colour of its output."""

    operator: str
    colour: int
    steps: Interval


@dataclass(frozen=True, slots=True)
class Drawing:
    """All parts of a picture. `steps` is at least 1."""

    model: str
    board: str
    steps: int
    panels: tuple[Panel, ...]
    runs: tuple[ChartRun, ...]
    facts: tuple[tuple[str, str], ...]


def draw(view: PlanView, model: str) -> Drawing:
    """Return the drawing of a plan of `model`."""
    plan, tiled = view.plan, view.tiled
    steps = max(len(plan.schedule.steps), 1)
    colours = {name: number for number, name in enumerate(tiled.first_block)}
    panels = tuple(
        Panel(
            memory,
            size,
            (
                *_tensors(plan, tiled, colours, memory),
                *_scratch(plan, view.work, memory),
                *_constants(plan, memory),
            ),
            view.loads[memory],
            tuple(_flights(plan, tiled, memory)),
        )
        for memory, size in sorted(plan.layout.arenas.items())
    )
    between = sum(old.memory != new.memory for old, new in map(plan.layout.way, plan.layout.transfers))
    facts = (
        ("model", model),
        ("board", plan.board),
        *((f"arena in {memory}", f"{size:,} B") for memory, size in sorted(plan.layout.arenas.items())),
        ("live peak", f"{plan.estimate.peak_bytes:,} B at step {plan.estimate.peak_step:,}"),
        ("steps", f"{len(plan.schedule.steps):,}"),
        *([("moves", f"{len(plan.layout.transfers):,}")] if plan.layout.transfers else ()),
        *([("between memories", f"{between:,}")] if between else ()),
    )
    return Drawing(model, plan.board, steps, panels, _runs(plan, tiled, colours), facts)


def _tensors(plan: Plan, tiled: TiledGraph, colours: dict[str, int], memory: str) -> Iterator[ChartGroup]:
    """Yield a group for each tensor in a memory, with an area for each residence there.

    Blocks that nothing writes or reads are left out.
    """
    moves_of = Counter(transfer.tensor for transfer in plan.layout.transfers)
    for name, residences in plan.layout.blocks.items():
        if memory not in memories_of(residences):
            continue
        tensor = plan.graph.tensors[name]
        areas = tuple(
            _area(each, tiled.block_bytes(name, block))
            for block, residence in enumerate(residences)
            for each in residence
            if len(each.life) and each.memory == memory
        )
        shape = "x".join(str(size) for size in tensor.shape)
        blocks = "" if len(residences) == 1 else f", {len(residences):,} blocks"
        moves = f", {count_text(moves_of[name], 'move')}" if moves_of[name] else ""
        note = f"{tensor.dtype.value} {shape}, {tensor.size_bytes:,} B{blocks}{moves}{_when(areas)}"
        yield ChartGroup(name, note, colours[name], areas)


def _flights(plan: Plan, tiled: TiledGraph, memory: str) -> Iterator[Area]:
    """Yield the bytes in this memory of each transfer to or from another, for the steps that it may take."""
    for transfer in plan.layout.transfers:
        way = plan.layout.way(transfer)
        if way[0].memory != way[1].memory and memory in {place.memory for place in way}:
            place = next(each for each in way if each.memory == memory)
            size = tiled.moved_bytes(plan.layout, transfer)
            begin = plan.layout.begin(transfer)
            yield replace(_area(place, size), steps=Interval(begin, max(begin, transfer.end)))


def _constants(plan: Plan, memory: str) -> Iterator[ChartGroup]:
    for name, it in plan.layout.constants.items():
        if it.place.memory == memory:
            areas = (_area(it.place, it.size_bytes),)
            yield ChartGroup(constants_name(name), f"{it.size_bytes:,} B{_when(areas)}", -1, areas)


def _scratch(plan: Plan, work: WorkBytes, memory: str) -> Iterator[ChartGroup]:
    for name, residences in plan.layout.scratch.items():
        if memory in memories_of(residences):
            size = sum(work[name])
            areas = tuple(_area(each, size) for residences_of in residences for each in residences_of)
            yield ChartGroup(f"scratch of {name}", f"{size:,} B{_when(areas)}", -1, areas)


def _area(residence: Residence, size_bytes: int) -> Area:
    return Area(residence.life, Interval(residence.offset, residence.offset + size_bytes))


def _when(areas: Iterable[Area]) -> str:
    spans = [area.steps for area in areas]
    return f", steps {min(s.lo for s in spans):,} to {max(s.hi for s in spans) - 1:,}" if spans else ""


def _runs(plan: Plan, tiled: TiledGraph, colours: dict[str, int]) -> tuple[ChartRun, ...]:
    runs: list[ChartRun] = []
    for time, step in enumerate(plan.schedule.steps):
        operator = plan.graph.operators[step.operator]
        if runs and runs[-1].operator == operator.name:
            runs[-1] = ChartRun(operator.name, runs[-1].colour, Interval(runs[-1].steps.lo, time + 1))
        else:
            colour = colours[tiled.flow.roots[operator.output]]
            runs.append(ChartRun(operator.name, colour, Interval(time, time + 1)))
    return tuple(runs)
