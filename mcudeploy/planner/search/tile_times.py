"""Times of a model's operators, distributed over the cores that run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from mcudeploy.costs.tiles import CallTime, Costs, TileShare, TileTime, UnitStarts, by_calls
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.planner.cores.parts import WorkSharing
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.model.unit_support import start_ticks
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import scratch_bytes

_NEAR = 1.25
"""Estimated times up to this multiple of the least are compared by measuring."""


def shared_costs(model: Model, flow: Dataflow, time: CallTime) -> Costs:
    """Return the times of all operators under any cut, by the kernels of the model."""
    chosen = {name: (call,) for name, call in model.calls.items()}
    return Costs(flow, by_calls(time, model.calls), _share_of(model, flow), _starts(model, chosen, 0))


@dataclass(frozen=True, slots=True, eq=False)
class Rivals:
    """The variants that may compute an operator's tiles.

    A kernel that takes several rows together is slow on one row: another one computes that. By `guess`,
    estimated times, only the variants that could be the fastest are measured.
    """

    calls: Mapping[str, Sequence[KernelCall]]
    guess: CallTime | None

    @classmethod
    def of(cls, model: Model, guess: CallTime | None) -> Rivals:
        """Return the variants of a model without more state than the chosen ones."""
        calls = {
            name: [other for other in model.variants[name] if other.state_bytes == call.state_bytes]
            for name, call in model.calls.items()
        }
        return cls(calls, guess)

    def near(self, operator: Operator, rows: Interval) -> Sequence[KernelCall]:
        """Return the variants that could be the fastest for some rows."""
        calls, guess = self.calls[operator.name], self.guess
        if len(calls) == 1 or guess is None:
            return calls
        times = [guess(operator, call, rows) for call in calls]
        return [call for call, ticks in zip(calls, times, strict=True) if ticks <= _NEAR * min(times)]

    def time_of(self, number: int, time: CallTime) -> TileTime:
        """Return the times of tiles by each operator's variant `number`.

        A variant that is not near the fastest has its estimate, times measured over estimated ticks of the
        fastest.
        """

        def tile_time(operator: Operator, rows: Interval) -> float:
            call, near, guess = self.calls[operator.name][number], self.near(operator, rows), self.guess
            if call in near or guess is None:
                return time(operator, call, rows)
            best = min(near, key=lambda other: guess(operator, other, rows))
            return guess(operator, call, rows) * time(operator, best, rows) / guess(operator, best, rows)

        return tile_time


class VariantTime(NamedTuple):
    """The scratch of a variant beyond that of the variant with the least, in bytes, and its ticks."""

    scratch_bytes: int
    ticks: float


@dataclass(frozen=True, slots=True, eq=False)
class VariantTimes:
    """The scratch and ticks of every operator's blocks by its variants; `ticks` are by the fastest.

    `by_number`: the costs by the first variants of all operators, by the second ones, and so on. `starts` are
    None, since variants may differ in them.
    """

    flow: Dataflow
    calls: Mapping[str, Sequence[KernelCall]]
    cores: int
    by_number: Sequence[Costs]
    starts: None = field(default=None, init=False)
    _known: dict[tuple[int, BlockRows], tuple[VariantTime, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, flow: Dataflow, rivals: Rivals, time: CallTime) -> VariantTimes:
        """Return the times of a model's variants. Those that are not near the fastest are not measured."""
        share, most = _share_of(model, flow), max(map(len, rivals.calls.values()), default=0)
        costs = [
            Costs(flow, rivals.time_of(number, time), share, _starts(model, rivals.calls, number))
            for number in range(most)
        ]
        return cls(flow, rivals.calls, model.cores, costs)

    def operator_ticks(self, position: int, block_rows: BlockRows) -> float:
        """Return the ticks of an operator's blocks by its fastest variant; 0 for a view."""
        times = self.of_blocks(position, block_rows)
        return times[-1].ticks if times else 0.0

    def ticks(self, block_rows: Sequence[BlockRows]) -> float:
        """Return the ticks of the whole graph, given the blocks of every operator by position."""
        return sum(self.operator_ticks(position, rows) for position, rows in enumerate(block_rows))

    def of_blocks(self, position: int, rows: BlockRows) -> tuple[VariantTime, ...]:
        """Return the variants that no other beats in scratch and time, by rising scratch and falling time."""
        key = position, rows
        if key not in self._known:
            self._known[key] = tuple(self._best(position, rows))
        return self._known[key]

    def _best(self, position: int, rows: BlockRows) -> Iterator[VariantTime]:
        calls = self.calls.get(self.flow.graph.operators[position].name, ())
        scratch = [scratch_bytes(call, self.cores) for call in calls]
        ticks = [costs.operator_ticks(position, rows) for costs in self.by_number[: len(calls)]]
        fastest = inf
        for size, time in sorted(zip(scratch, ticks, strict=True)):
            if time < fastest:
                fastest = time
                yield VariantTime(size - min(scratch), time)


def _starts(model: Model, calls: Mapping[str, Sequence[KernelCall]], number: int) -> UnitStarts | None:
    """Return the starts of a unit for the operators whose variant `number` it runs; None without a unit."""
    if not model.isa.unit:
        return None
    by_unit = (name for name, own in calls.items() if number < len(own) and own[number].isa.unit)
    return UnitStarts(frozenset(by_unit), start_ticks())


def _share_of(model: Model, flow: Dataflow) -> TileShare | None:
    """Return the largest fraction of a tile that one core computes; None if there is one core."""
    return WorkSharing.of(flow, model.calls, model.cores).largest_share if model.cores > 1 else None
