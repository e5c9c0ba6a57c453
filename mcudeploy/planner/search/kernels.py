"""The kernel variant of each operator: the fastest, or the fastest for which memory has room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mcudeploy.cost.tiles import CallTile, CallTime, KnownTime
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Step
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.search.tile_times import shared_costs
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import live_loads


def alternatives(model: Model) -> Iterator[CallTile]:
    """Yield the tiles that `fastest` compares: operators with several variants, whole, by each of them."""
    graph = model.graph
    for operator, rows in zip(graph.operators, Dataflow.of(graph).iteration_rows, strict=True):
        variants = model.variants.get(operator.name, ())
        if len(variants) > 1:
            yield from ((operator, call, Interval(0, rows)) for call in variants)


def fastest(model: Model, time: CallTime, known: KnownTime) -> Model:
    """Return the model with the fastest variants, operator by operator, all rows at once.

    Ties take the variant with less scratch. Times of an operator are `known` ones if all of them are known,
    else they come from `time`: the two may have different units.
    """
    tiles: dict[str, list[CallTile]] = {}
    for tile in alternatives(model):
        tiles.setdefault(tile[0].name, []).append(tile)
    chosen: dict[str, KernelCall] = {}
    for name, ways in tiles.items():
        before = [known(*way) for way in ways]
        times = [each for each in before if each is not None]
        if len(times) < len(ways):
            times = [time(*way) for way in ways]
        ranked = [
            (ticks, way[1].scratch_bytes, at) for at, (ticks, way) in enumerate(zip(times, ways, strict=True))
        ]
        chosen[name] = ways[min(ranked)[2]][1]
    return model.with_calls(chosen)


class _VariantCost(NamedTuple):
    """One variant of an operator in a schedule: its time, its scratch, the peak that it needs."""

    ticks: float
    scratch_bytes: int
    level: int
    number: int


def choose_kernels(
    model: Model, tiled: TiledGraph, steps: tuple[Step, ...], time: CallTime, most_ticks: float
) -> tuple[Model, float]:
    """Return the model with the variants that suit a schedule, and the ticks of the schedule.

    The peak is the minimum within `most_ticks`, or that of the fastest variants if those take longer. Below
    the peak every operator has its fastest variant. Scratch lives for one step, so operators do not interact:
    for each peak the choice is exact.
    """
    lean = model.min_scratch
    loads = list(live_loads(tiled, steps, lean.work))
    highest: dict[int, int] = {}
    for step, load in zip(steps, loads, strict=False):
        highest[step.operator] = max(highest.get(step.operator, 0), load)
    counts = Counter(step.operator for step in steps)
    ways = {}
    for position, load in highest.items():
        name = tiled.graph.operators[position].name
        least = lean.calls[name]
        ways[name] = [
            _VariantCost(
                counts[position] * _step_ticks(model, tiled, position, call, time),
                call.scratch_bytes,
                load - model.scratch_bytes(least) + model.scratch_bytes(call),
                number,
            )
            for number, call in enumerate(model.variants[name])
            if call.state_bytes == least.state_bytes
        ]
    floor = max(loads, default=0)
    levels = {floor, *(way.level for options in ways.values() for way in options)}
    picked: Mapping[str, _VariantCost] = {}
    ticks = 0.0
    for level in sorted(level for level in levels if level >= floor):
        picked = {name: min(way for way in options if way.level <= level) for name, options in ways.items()}
        ticks = sum(way.ticks for way in picked.values())
        if ticks <= most_ticks:
            break
    calls = {name: model.variants[name][way.number] for name, way in picked.items()}
    return model.with_calls(calls), ticks


def _step_ticks(model: Model, tiled: TiledGraph, position: int, call: KernelCall, time: CallTime) -> float:
    """Return the ticks of one step of an operator by a call; all its steps count as equal."""
    costs = shared_costs(model.with_calls({tiled.graph.operators[position].name: call}), tiled.flow, time)
    return costs.operator_ticks(position, tiled.step_rows[position]) / tiled.step_counts[position]
