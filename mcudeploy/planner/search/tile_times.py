"""Times of a model's operators, distributed over the cores that run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcudeploy.cost.tiles import CallTime, Costs, TileShare, TileTime, by_calls
from mcudeploy.ir.graph import Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.planner.cores.parts import WorkSharing
from mcudeploy.planner.model.model import Model
from mcudeploy.tiling.dataflow import Dataflow

_NEAR = 1.25
"""Estimated times up to this multiple of the least are compared by measuring."""


def shared_costs(model: Model, flow: Dataflow, time: CallTime) -> Costs:
    """Return the times of all operators under any cut, by the kernels of the model."""
    return Costs(flow, by_calls(time, model.calls), _share_of(model, flow))


@dataclass(frozen=True, slots=True, eq=False)
class Rivals:
    """The variants that may compute an operator's tiles, and the ticks that their constants count for a row.

    A kernel that takes several rows together is slow on one row: another one computes that. By `guess`,
    estimated times, only the variants that could be the cheapest are measured.
    """

    calls: Mapping[str, Sequence[KernelCall]]
    per_row: Mapping[tuple[str, str], float]
    guess: CallTime | None

    @classmethod
    def of(cls, model: Model, flow: Dataflow, guess: CallTime | None) -> Rivals:
        """Return the variants of a model without more state than the chosen ones."""
        calls, per_row = {}, {}
        for operator, rows in zip(flow.graph.operators, flow.iteration_rows, strict=True):
            name = operator.name
            if name not in model.calls:
                continue
            state = model.calls[name].state_bytes
            calls[name] = [call for call in model.variants[name] if call.state_bytes == state]
            for call in calls[name]:
                size = model.constants.sizes.get((name, call.variant), 0.0)
                per_row[name, call.variant] = model.constants.byte_ticks * size / rows
        return cls(calls, per_row, guess)

    def near(self, operator: Operator, rows: Interval) -> Sequence[KernelCall]:
        """Return the variants that could be the cheapest for some rows."""
        calls = self.calls[operator.name]
        guess = self.guess
        if len(calls) == 1 or guess is None:
            return calls
        prices = [self._price(operator, call, rows, guess) for call in calls]
        return [call for call, price in zip(calls, prices, strict=True) if price <= _NEAR * min(prices)]

    def times(self, time: CallTime) -> TileTime:
        """Return the times of tiles, each by its cheapest variant."""

        def tile_time(operator: Operator, rows: Interval) -> float:
            calls = self.near(operator, rows)
            if len(calls) == 1:
                return time(operator, calls[0], rows)
            best = min(calls, key=lambda call: self._price(operator, call, rows, time))
            return time(operator, best, rows)

        return tile_time

    def _price(self, operator: Operator, call: KernelCall, rows: Interval, time: CallTime) -> float:
        return time(operator, call, rows) + len(rows) * self.per_row[operator.name, call.variant]


def variant_costs(model: Model, flow: Dataflow, rivals: Rivals, time: CallTime) -> Costs:
    """Return the times of all operators under any cut, each tile by its cheapest variant."""
    return Costs(flow, rivals.times(time), _share_of(model, flow))


def _share_of(model: Model, flow: Dataflow) -> TileShare | None:
    """Return the largest fraction of a tile that one core computes; None if there is one core."""
    return WorkSharing.of(flow, model.calls, model.cores).largest_share if model.cores > 1 else None
