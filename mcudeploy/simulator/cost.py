"""What a cut costs in time: the sum of its tiles, measured where they were, else estimated.

An operator cut into blocks takes as long as one block from its middle, times the number of blocks; the
last, shorter block counts by its rows. Blocks at an edge do a little less or more than that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mcudeploy.graph import Operator
from mcudeploy.interval import Interval
from mcudeploy.simulator.flow import Flow

STEP_TICKS = 21
"""Instructions of the tape for each step: reading its code, the division into blocks, the call."""

TileTime = Callable[[Operator, Interval], float]
"""Ticks of one tile: an operator and iteration rows that are one block of a cut."""

_PER_MAC = {
    "conv2d_s8": 2.9,
    "conv2d_s8_1x1": 3.0,
    "conv2d_s8_to_rows": 3.0,
    "conv2d_s8_by_rows": 2.8,
    "dwconv2d_s8": 8.0,
    "conv2d_f32": 1.4,
    "conv2d_f32_gathered": 1.6,
    "conv2d_f32_1x1": 1.5,
    "conv2d_f32_to_rows": 1.5,
    "conv2d_f32_by_rows": 1.4,
}
_PER_MAC_ELSE, _PER_ELEMENT, _PER_CALL = 4.0, 12.0, 150.0


def timed_block(total: int, block_rows: int) -> Interval:
    """The block that stands for all when `total` rows are cut into blocks: one from the middle."""
    middle = total // block_rows // 2 * block_rows
    return Interval(middle, middle + block_rows)


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Times of all operators of a flow under any cut, by a source of tile times."""

    flow: Flow
    tile_time: TileTime
    _known: dict[tuple[int, int], float] = field(default_factory=dict)

    def operator_ticks(self, position: int, block_rows: int) -> float:
        """Ticks of an operator that takes `block_rows` iteration rows in a step."""
        key = (position, block_rows)
        if key not in self._known:
            self._known[key] = self._ticks(position, block_rows)
        return self._known[key]

    def _ticks(self, position: int, block_rows: int) -> float:
        operator, total = self.flow.graph.operators[position], self.flow.iteration_rows[position]
        if operator.op.is_view:
            return 0.0
        count, rest = divmod(total, block_rows)
        tile = self.tile_time(operator, timed_block(total, block_rows))
        steps = count + (1 if rest else 0)
        return tile * (count + rest / block_rows) + STEP_TICKS * steps

    def ticks(self, block_rows: Sequence[int]) -> float:
        """Ticks of the whole graph, given the rows of every operator's steps by position."""
        return sum(self.operator_ticks(position, rows) for position, rows in enumerate(block_rows))


def estimated_tile_time(flow: Flow) -> TileTime:
    """Tile times without a device: by multiply-accumulates, elements and calls.

    The factors are instructions on Cortex-M4, rounded from what benchmarks/verify_models.py prints; those of
    layers that make or take rows of channels keep the ratio that was measured to the plain layer. They serve
    to compare cuts of one model, not to foretell its latency.
    """
    totals = {
        operator.name: (flow.graph.loops(operator).macs(), flow.iteration_rows[position])
        for position, operator in enumerate(flow.graph.operators)
    }
    kernels = {
        operator.name: operator.op.kernel(
            operator, flow.graph.input_tensors(operator), flow.graph.tensors[operator.output]
        ).kernel
        for operator in flow.graph.operators
        if not operator.op.is_view
    }

    def tile_time(operator: Operator, rows: Interval) -> float:
        macs, total = totals[operator.name]
        share = len(rows) / total
        elements = flow.graph.tensors[operator.output].elements
        per_mac = _PER_MAC.get(kernels[operator.name], _PER_MAC_ELSE)
        return _PER_CALL + share * (macs * per_mac + elements * _PER_ELEMENT)

    return tile_time
