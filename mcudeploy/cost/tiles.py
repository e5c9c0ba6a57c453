"""What a cut costs in time: the sum of its tiles, measured where they were, else estimated.

Of an operator cut into blocks one block stands for all that are alike; see `timed_blocks`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Step
from mcudeploy.ops.transfer import Copy
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow

STEP_TICKS = 21
"""Instructions of the tape for each step: reading its code, the division into blocks, the call."""

SYNC_TICKS = 90
"""Instructions of a core for its part of a step: the entry of its tape, a wait, telling the others."""

TileTime = Callable[[Operator, Interval], float]
"""Ticks of one tile: an operator and iteration rows that are one block of a cut."""

TileShare = Callable[[Operator, Interval], float]
"""The part of a tile's work that the busiest core does, above 0 and at most 1."""

CallTime = Callable[[Operator, KernelCall, Interval], float]
"""The same of an operator by one of the calls that compute it."""

KnownTime = Callable[[Operator, KernelCall, Interval], float | None]
"""The same where it is known; None where not."""

KnownSource = Callable[[Graph], KnownTime]
"""Where times of a graph's tiles come from that were measured before."""


def nothing_known(_: Graph) -> KnownTime:
    """No time is known."""
    return lambda *_: None


CallTile = tuple[Operator, KernelCall, Interval]
TileSource = Callable[[Graph, Iterable[CallTile]], CallTime]
"""Where the times of a graph's tiles come from: a device, or an estimate. It is told which tiles will be
asked for, as far as that is known.
"""


@dataclass(frozen=True, slots=True)
class CopyCost:
    """Ticks of a move: for itself, for each piece that is copied at once, and for each byte."""

    move: float
    piece: float
    byte: float

    def ticks(self, size_bytes: int, distance: int) -> float:
        """Of a block that goes so many bytes up or down, in pieces where its places overlap."""
        return self.move + self.piece * -(-size_bytes // distance) + self.byte * size_bytes


_COPIED = 256
"""Bytes of a narrow row whose copying, beside that of a row of twice as many, tells the price of moves."""


def move_price(tiles: TileSource) -> CopyCost:
    """The price of moves: a piece is copied as a row of the operator Copy is."""
    narrow, wide = _copying(_COPIED), _copying(2 * _COPIED)
    rows = Interval(0, 1), Interval(0, 2)

    def times(graph: Graph) -> list[float]:
        (operator,) = graph.operators
        call = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors[operator.output])
        wanted = [(operator, call, each) for each in rows]
        time = tiles(graph, wanted)
        return [time(*each) for each in wanted]

    (one, two), (twice_as_wide, _) = times(narrow), times(wide)
    byte = max(0.0, (twice_as_wide - one) / _COPIED)
    piece = max(0.0, two - one - byte * _COPIED)
    return CopyCost(STEP_TICKS + max(0.0, one - piece - byte * _COPIED), piece, byte)


def _copying(row_bytes: int) -> Graph:
    shape = (2, 1, row_bytes)
    source, target = (Tensor(name, shape, DType.INT8, Quantization(1.0, 0)) for name in ("x", "y"))
    border = GraphIO("x", "x", shape, "int8", np.arange(source.elements, dtype=np.int32))
    copying = Operator("copy", Copy(), ("x",), "y")
    return Graph("copy", {"x": source, "y": target}, (copying,), (border,), (replace(border, tensor="y"),))


def by_calls(time: CallTime, calls: Mapping[str, KernelCall]) -> TileTime:
    """The times of tiles that are computed by `calls`."""
    return lambda operator, rows: time(operator, calls[operator.name], rows)


def timed_blocks(flow: Dataflow, position: int, block_rows: int) -> Iterator[tuple[Interval, int]]:
    """The blocks that stand for all of an operator cut into blocks of so many rows, and for how many each.

    Those whose windows reach into the padding, a shorter last one, and the first and last of an operator that
    accumulates stand apart.
    """
    total, kinds = flow.iteration_rows[position], defaultdict[tuple[object, ...], list[Interval]](list)
    accumulates = flow.graph.operators[position].op.accumulates
    for first in range(0, total, block_rows):
        end = min(first + block_rows, total)
        beyond = tuple(reading.beyond(first, end) for reading in flow.readings[position])
        edge = (first == 0, end == total) if accumulates else beyond
        kinds[end - first, edge].append(Interval(first, end))
    for alike in kinds.values():
        yield alike[len(alike) // 2], len(alike)


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Times of all operators of a flow under any cut, by a source of tile times. Where several cores share
    each step, `share` is the largest part of it that one of them makes, which the others wait for.
    """

    flow: Dataflow
    tile_time: TileTime
    share: TileShare | None = None
    _known: dict[tuple[int, int], float] = field(default_factory=dict)

    def operator_ticks(self, position: int, block_rows: int) -> float:
        """Ticks of an operator that takes `block_rows` iteration rows in a step."""
        key = (position, block_rows)
        if key not in self._known:
            self._known[key] = self._ticks(position, block_rows)
        return self._known[key]

    def _ticks(self, position: int, block_rows: int) -> float:
        operator = self.flow.graph.operators[position]
        if operator.op.is_view:
            return 0.0
        return sum(
            count * self._tile_ticks(operator, rows)
            for rows, count in timed_blocks(self.flow, position, block_rows)
        )

    def _tile_ticks(self, operator: Operator, rows: Interval) -> float:
        ticks = self.tile_time(operator, rows)
        if self.share is None:
            return ticks + STEP_TICKS
        return ticks * self.share(operator, rows) + SYNC_TICKS

    def ticks(self, block_rows: Sequence[int]) -> float:
        """Ticks of the whole graph, given the rows of every operator's steps by position."""
        return sum(self.operator_ticks(position, rows) for position, rows in enumerate(block_rows))


def step_ticks(tiled: TiledGraph, steps: Sequence[Step], costs: Costs) -> list[float]:
    """The time of each step, those of an operator taken as equal."""
    per_step = [
        costs.operator_ticks(position, rows) / max(count, 1)
        for position, (rows, count) in enumerate(zip(tiled.step_rows, tiled.step_counts, strict=True))
    ]
    return [per_step[step.operator] for step in steps]


def schedule_ticks(tiled: TiledGraph, steps: Sequence[Step], costs: Costs) -> float:
    """The time of all steps."""
    return sum(step_ticks(tiled, steps, costs))
