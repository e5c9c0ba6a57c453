"""The time of a cut: the sum of its tiles' times, measured if known, else estimated.

One block of an operator stands for all blocks that are alike; see `timed_blocks`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Step
from mcudeploy.ops.move.transfer import Copy
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow

STEP_TICKS = 25
"""Instructions of the tape per step: decoding, division into blocks, the call."""

SYNC_TICKS = 90
"""Instructions of a core for its slice of a step: the tape entry, a wait, signalling the others."""

TileTime = Callable[[Operator, Interval], float]
"""The ticks of one tile: an operator and iteration rows that are one block of a cut."""

TileShare = Callable[[Operator, Interval], float]
"""The fraction of a tile's work that the busiest core does, above 0 and at most 1."""

CallTime = Callable[[Operator, KernelCall, Interval], float]
"""The ticks of a tile of an operator by one of the calls that compute it."""

KnownTime = Callable[[Operator, KernelCall, Interval], float | None]
"""The ticks of a tile by a call, or None if unknown."""

KnownSource = Callable[[Graph], KnownTime]
"""A source of times of a graph's tiles that were measured earlier."""


def nothing_known(_: Graph) -> KnownTime:
    """A KnownSource without any times."""
    return lambda *_: None


CallTile = tuple[Operator, KernelCall, Interval]
"""A tile: an operator, a call that computes it, and iteration rows."""

TileSource = Callable[[Graph, Iterable[CallTile]], CallTime]
"""A source of times of a graph's tiles: a device, or an estimate.

It receives the tiles that will be needed, as far as they are known.
"""


@dataclass(frozen=True, slots=True)
class CopyCost:
    """Ticks of a copy: a fixed cost, a cost per piece that is copied at once, and a cost per byte."""

    move: float
    piece: float
    byte: float

    def ticks(self, size_bytes: int, distance: int) -> float:
        """Return the ticks of moving a block by `distance` bytes, in pieces if its two places overlap."""
        return self.move + self.piece * -(-size_bytes // distance) + self.byte * size_bytes


FREE = CopyCost(0.0, 0.0, 0.0)
_NARROW_BYTES = 256
"""Bytes of a narrow row. Its time and that of a row twice as wide determine the cost of copies."""


def move_price(tiles: TileSource) -> CopyCost:
    """Return the cost of copies; a piece costs as much as a row of the operator Copy."""
    narrow, wide = _copying(_NARROW_BYTES), _copying(2 * _NARROW_BYTES)
    rows = Interval(0, 1), Interval(0, 2)

    def times(graph: Graph) -> list[float]:
        (operator,) = graph.operators
        call = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors[operator.output])
        wanted = [(operator, call, each) for each in rows]
        time = tiles(graph, wanted)
        return [time(*each) for each in wanted]

    (one, two), (twice_as_wide, _) = times(narrow), times(wide)
    byte = max(0.0, (twice_as_wide - one) / _NARROW_BYTES)
    piece = max(0.0, two - one - byte * _NARROW_BYTES)
    return CopyCost(STEP_TICKS + max(0.0, one - piece - byte * _NARROW_BYTES), piece, byte)


def _copying(row_bytes: int) -> Graph:
    shape = (2, 1, row_bytes)
    source, target = (Tensor(name, shape, DType.INT8, Quantization(1.0, 0)) for name in ("x", "y"))
    io = GraphIO("x", "x", shape, "int8", np.arange(source.elements, dtype=np.int32))
    copying = Operator("copy", Copy(), ("x",), "y")
    return Graph("copy", {"x": source, "y": target}, (copying,), (io,), (replace(io, tensor="y"),))


def by_calls(time: CallTime, calls: Mapping[str, KernelCall]) -> TileTime:
    """Return the times of tiles that are computed by `calls`."""
    return lambda operator, rows: time(operator, calls[operator.name], rows)


def timed_blocks(flow: Dataflow, position: int, block_rows: BlockRows) -> Iterator[tuple[Interval, int]]:
    """Yield one representative block per group of alike blocks, and the group's size.

    Blocks are alike if they have equally many rows, and their windows reach into the same padding. If the
    operator accumulates, the first and the last block differ from the others. After a lead, the
    representative is a block of a cut without leads, if it is alike: one time then serves both cuts.
    """
    total = flow.iteration_rows[position]
    kinds = defaultdict[tuple[int, tuple[object, ...]], list[Interval]](list)
    accumulates = flow.graph.operators[position].op.accumulates

    def beyond(rows: Interval) -> tuple[tuple[bool, bool], ...]:
        return tuple(reading.beyond(rows.lo, rows.hi) for reading in flow.readings[position])

    for block in range(block_rows.count(total)):
        rows = block_rows.interval(block, total)
        edge: tuple[object, ...] = (rows.lo == 0, rows.hi == total) if accumulates else beyond(rows)
        kinds[len(rows), edge].append(rows)
    for (size, kind), alike in kinds.items():
        rows = alike[len(alike) // 2]
        aligned = Interval(rows.lo - rows.lo % size, rows.hi - rows.lo % size)
        same = block_rows.lead and not accumulates and beyond(aligned) == kind
        yield aligned if same else rows, len(alike)


@dataclass(frozen=True, slots=True)
class UnitStarts:
    """A unit that runs one stream for consecutive steps: its operators, and the ticks to start a stream."""

    operators: frozenset[str]
    ticks: float


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Times of all operators of a dataflow under any cut, by a source of tile times.

    If several cores share each step, `share` is the largest fraction that one core computes; the others wait
    for it. With `starts`, every tile of the core includes the start of a stream, as if one followed.
    `step_ticks` replaces these by the starts that occur.
    """

    flow: Dataflow
    tile_time: TileTime
    share: TileShare | None = None
    starts: UnitStarts | None = None
    _known: dict[tuple[int, BlockRows], float] = field(default_factory=dict)

    def operator_ticks(self, position: int, block_rows: BlockRows) -> float:
        """Return the ticks of an operator whose steps compute blocks of its iteration rows."""
        key = (position, block_rows)
        if key not in self._known:
            self._known[key] = self._ticks(position, block_rows)
        return self._known[key]

    def _ticks(self, position: int, block_rows: BlockRows) -> float:
        operator = self.flow.graph.operators[position]
        if operator.op.is_view:
            return 0.0
        return sum(
            count * self._tile_ticks(operator, rows)
            for rows, count in timed_blocks(self.flow, position, block_rows)
        )

    def _tile_ticks(self, operator: Operator, rows: Interval) -> float:
        ticks = self.tile_time(operator, rows)
        if self.starts is not None and operator.inputs:
            by_unit = operator.name in self.starts.operators
            return ticks + (0.0 if by_unit else STEP_TICKS + self.starts.ticks)
        if self.share is None:
            return ticks + STEP_TICKS
        return ticks * self.share(operator, rows) + SYNC_TICKS

    def ticks(self, block_rows: Sequence[BlockRows]) -> float:
        """Return the ticks of the whole graph, given the blocks of every operator by position."""
        return sum(self.operator_ticks(position, rows) for position, rows in enumerate(block_rows))


class BlockTimes(Protocol):
    """Times of all operators of a graph under any cut. `starts`: those that tiles include, as in `Costs`."""

    @property
    def starts(self) -> UnitStarts | None: ...

    def operator_ticks(self, position: int, block_rows: BlockRows) -> float:
        """Return the ticks of an operator whose steps compute blocks of its iteration rows."""
        ...

    def ticks(self, block_rows: Sequence[BlockRows]) -> float:
        """Return the ticks of the whole graph, given the blocks of every operator by position."""
        ...


def step_ticks(tiled: TiledGraph, steps: Sequence[Step], costs: BlockTimes) -> list[float]:
    """Return the ticks of each step; steps of one operator count as equal.

    The start of a unit counts for the first one of its consecutive steps.
    """
    per_step = [
        costs.operator_ticks(position, rows) / max(count, 1)
        for position, (rows, count) in enumerate(zip(tiled.step_rows, tiled.step_counts, strict=True))
    ]
    ticks = [per_step[step.operator] for step in steps]
    starts, operators = costs.starts, tiled.graph.operators
    if starts is None:
        return ticks
    for at, step in enumerate(steps):
        if operators[step.operator].name not in starts.operators:
            ticks[at] -= starts.ticks if operators[step.operator].inputs else 0
        elif not at or operators[steps[at - 1].operator].name not in starts.operators:
            ticks[at] += starts.ticks
    return ticks


def schedule_ticks(tiled: TiledGraph, steps: Sequence[Step], costs: BlockTimes) -> float:
    """Return the ticks of all steps."""
    return sum(step_ticks(tiled, steps, costs))
