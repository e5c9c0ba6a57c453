"""The kernel variant of each operator: the fastest, or the fastest for which RAM and flash have room.

Variants differ in their constants too: weights in another order, wider or transformed. Their bytes have a
price in ticks, so a little time is not bought with much flash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from mcudeploy.boards.board import CODE_BYTES
from mcudeploy.costs.tiles import CallTile, CallTime, KnownTime
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Step
from mcudeploy.planner.model.model import ConstantPrices, Model
from mcudeploy.planner.plan_options import TRADEOFFS
from mcudeploy.planner.search.tile_times import shared_costs
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import live_loads

_KERNEL_BYTES = 3 * 1024
"""Code of a kernel, which a program has once: that of convolutions takes 2.6 to 3.1 KB."""

_PRICE_PARTS = 1, 1 / 2, 1 / 4, 1 / 8
"""Parts of the price of a byte that are tried until a choice keeps the latency limit."""


class KernelLimits(NamedTuple):
    """`ticks`: those that a schedule may take. `flash_bytes`: for its constants. `peak_bytes`: a peak that is
    low enough. `roomy_bytes`: the highest peak that is worth less flash.
    """

    ticks: float
    flash_bytes: float
    peak_bytes: float = 0.0
    roomy_bytes: float = inf


class _Way(NamedTuple):
    """A variant of an operator: time, scratch, number, constants, kernel, and the peak that it needs."""

    ticks: float
    scratch_bytes: int
    number: int
    constants: float
    kernel: str
    level: int = 0


Ways = Mapping[str, Sequence[_Way]]


def alternatives(model: Model) -> Iterator[CallTile]:
    """Yield the tiles that `fastest` compares: operators with several variants, whole, by each of them."""
    graph = model.graph
    for operator, rows in zip(graph.operators, Dataflow.of(graph).iteration_rows, strict=True):
        variants = model.variants.get(operator.name, ())
        if len(variants) > 1:
            yield from ((operator, call, Interval(0, rows)) for call in variants)


def constant_bytes(model: Model) -> dict[tuple[str, str], float]:
    """Return the bytes of constants in flash by operator and variant.

    Operators share the bytes of equal constants, which are stored once.
    """
    arrays_of: dict[tuple[str, str], list[tuple[str, bytes]]] = {}
    users = Counter[tuple[str, bytes]]()
    for name, variants in model.variants.items():
        for call in variants:
            arrays_of[name, call.variant] = [(value.dtype.name, value.tobytes()) for value in call.arrays()]
        users.update({array for call in variants for array in arrays_of[name, call.variant]})
    return {key: sum(len(one[1]) / users[one] for one in arrays) for key, arrays in arrays_of.items()}


def least_constants(model: Model) -> float:
    """Return the bytes of constants in flash if every operator has the variant that needs least."""
    sizes = constant_bytes(model)
    return sum(
        min(sizes[name, call.variant] for call in variants) for name, variants in model.variants.items()
    )


def fastest(
    model: Model,
    time: CallTime,
    known: KnownTime,
    flash_bytes: float,
    flash_percent: float = TRADEOFFS["balanced"].flash_percent,
) -> Model:
    """Return the model with the fastest variants, operator by operator, all rows at once.

    Constants keep to `flash_bytes` if the least do, and have a price: 1 % of time is worth `flash_percent` of
    the program. Ties take less scratch. Times of an operator are `known` ones if all of them are known, else
    they come from `time`: the two may have different units.
    """
    tiles: dict[str, list[CallTile]] = {}
    for tile in alternatives(model):
        tiles.setdefault(tile[0].name, []).append(tile)
    if not tiles:
        return model
    sizes = constant_bytes(model)
    ways: dict[str, list[_Way]] = {}
    for name, tried in tiles.items():
        before = [known(*way) for way in tried]
        times = [each for each in before if each is not None]
        if len(times) < len(tried):
            times = [time(*way) for way in tried]
        ways[name] = [
            _Way(ticks, call.scratch_bytes, at, sizes[name, call.variant], call.kernel)
            for at, (ticks, (_, call, _)) in enumerate(zip(times, tried, strict=True))
        ]
    price = _price(model, ways, sizes, flash_percent)
    fixed = sum(sizes[name, call.variant] for name, call in model.calls.items() if name not in ways)
    picked = _picked(ways, price, flash_bytes - fixed)
    calls = {name: tiles[name][way.number][1] for name, way in picked.items()}
    return replace(model.with_calls(calls), constant_prices=ConstantPrices(sizes, price))


def _picked(ways: Ways, price: float, room: float) -> Mapping[str, _Way]:
    """Return the cheapest way of each operator that keeps the constants to `room`, or the smallest ones."""
    picked: Mapping[str, _Way] = {}
    for picked in _ever_smaller(ways, price):
        if round(sum(way.constants for way in picked.values())) <= room:  # shares of equal constants
            break
    return picked


def _ever_smaller(ways: Ways, price: float) -> Iterator[Mapping[str, _Way]]:
    """Yield the cheapest way of each operator, then choices with ever fewer constants.

    In turn, the operator that loses least time for a byte takes a smaller way.
    """
    picked = _cheapest(ways, price)
    yield picked
    while True:
        smaller = [
            ((way.ticks - picked[name].ticks) / (picked[name].constants - way.constants), name, way)
            for name, options in ways.items()
            for way in options
            if way.constants < picked[name].constants
        ]
        if not smaller:
            return
        _, name, way = min(smaller)
        picked = picked | {name: way}
        yield picked


def _cheapest(ways: Ways, price: float) -> dict[str, _Way]:
    """Return the cheapest way of each operator.

    A kernel that none of the fastest ways has must also save the bytes that its code takes.
    """

    def cost(way: _Way) -> float:
        return way.ticks + price * way.constants

    def best(options: Iterable[_Way]) -> _Way:
        return min(options, key=lambda way: (cost(way), *way))

    picked = {name: best(options) for name, options in ways.items()}
    present = {min(options).kernel for options in ways.values()}  # others are charged for their code
    for kernel in sorted({way.kernel for way in picked.values()} - present):
        without = {
            name: best(way for way in ways[name] if way.kernel in present)
            for name, way in picked.items()
            if way.kernel == kernel
        }
        if sum(cost(way) - cost(picked[name]) for name, way in without.items()) < price * _KERNEL_BYTES:
            picked |= without
        else:
            present.add(kernel)
    return picked


def choose_kernels(
    model: Model, tiled: TiledGraph, steps: tuple[Step, ...], time: CallTime, limits: KernelLimits
) -> tuple[Model, float]:
    """Return the model with the variants that suit a schedule, and the ticks of the schedule.

    The peak is the least that keeps the ticks, but at least `limits.peak_bytes`, or a higher one that saves
    flash: 1 % of the peak is worth as much flash as 1 % of the time. If none keeps the ticks, it is that of
    the fastest variants. Below the peak every operator has its cheapest variant. Scratch lives for one
    step, so operators do not interact: if the flash has room, the choice is exact for each peak.
    """
    ways, peak = _ways_of_steps(model, tiled, steps, time)
    floor = max(peak, limits.peak_bytes)
    higher = {way.level for options in ways.values() for way in options if way.level > floor}
    levels = sorted({floor, *higher})
    byte_ticks = model.constant_prices.byte_ticks
    best = fast = _within(ways, levels[-1], 0.0, limits)
    fewest = byte_ticks * sum(min(way.constants for way in options) for options in ways.values())
    least = inf
    for level in levels:
        peak_ticks = fast.ticks * level / floor
        beyond = level > limits.roomy_bytes or bool(limits.peak_bytes)
        if peak_ticks + fewest >= least or (beyond and least < inf):
            break
        picked = _within(ways, level, byte_ticks, limits)
        if picked.ticks > limits.ticks:
            continue
        price = peak_ticks + byte_ticks * picked.constants
        if price < least:
            best, least = picked, price
    calls = {name: model.variants[name][way.number] for name, way in best.ways.items()}
    return model.with_calls(calls), best.ticks


class _Pick(NamedTuple):
    """A way of each operator, and the sums of their ticks and constants."""

    ways: Mapping[str, _Way]
    ticks: float
    constants: float

    @classmethod
    def of(cls, ways: Mapping[str, _Way]) -> _Pick:
        constants, ticks = _spent(ways)
        return cls(ways, ticks, constants)


def _within(ways: Ways, level: float, byte_ticks: float, limits: KernelLimits) -> _Pick:
    """Return the ways up to a level of the peak whose constants cost least, at most `byte_ticks` a byte.

    The price falls until the ticks keep to the limit.
    """
    within = {name: [way for way in options if way.level <= level] for name, options in ways.items()}
    fast = _Pick.of(_picked(within, 0.0, limits.flash_bytes))
    if not byte_ticks or fast.ticks > limits.ticks:
        return fast
    prices = (part * byte_ticks for part in _PRICE_PARTS)
    cheap = (_Pick.of(_picked(within, price, limits.flash_bytes)) for price in prices)
    return next((it for it in cheap if it.ticks <= limits.ticks), fast)


def within_flash(model: Model, flash_bytes: float) -> Model:
    """Return the model without variants that have more constants than the chosen ones, if flash is scarce.

    It is scarce if the largest variants of all operators do not fit. A search with them would underestimate
    latencies.
    """
    sizes, variants = model.constant_prices.sizes, model.variants

    def size(name: str, call: KernelCall) -> float:
        return sizes.get((name, call.variant), 0.0)

    if sum(max(size(name, call) for call in calls) for name, calls in variants.items()) <= flash_bytes:
        return model
    chosen = {name: size(name, call) for name, call in model.calls.items()}
    small = {
        name: tuple(call for call in calls if size(name, call) <= chosen[name])
        for name, calls in variants.items()
    }
    return replace(model, variants=small)


def smaller_constants(
    model: Model, tiled: TiledGraph, steps: tuple[Step, ...], time: CallTime
) -> Iterator[tuple[float, float]]:
    """Yield the bytes of constants and the ticks that other variants add to a schedule, in falling bytes.

    The first pair is of the variants without a flash limit. The scratch of all fits below the peak of the
    model's own calls.
    """
    prices = ConstantPrices(constant_bytes(model), model.constant_prices.byte_ticks)
    sized = replace(model, constant_prices=prices)
    ways, floor = _ways_of_steps(sized, tiled, steps, time)
    own = {
        name: next((it for it in options if model.variants[name][it.number] is model.calls[name]), options[0])
        for name, options in ways.items()
    }
    peak = max([floor, *(way.level for way in own.values())])
    within = {name: [way for way in options if way.level <= peak] for name, options in ways.items()}
    size, ticks = _spent(own)
    for picked in _ever_smaller(within, model.constant_prices.byte_ticks):
        other_size, other_ticks = _spent(picked)
        yield other_size - size, other_ticks - ticks


def _spent(picked: Mapping[str, _Way]) -> tuple[float, float]:
    """Return the constants and the ticks of a choice."""
    return sum(way.constants for way in picked.values()), sum(way.ticks for way in picked.values())


def _price(model: Model, ways: Ways, sizes: Mapping[tuple[str, str], float], flash_percent: float) -> float:
    """Return the ticks that a byte of constants counts.

    1 % of the ticks of the fastest variants is worth `flash_percent` of the program with them.
    """
    best = {name: min(options) for name, options in ways.items()}
    program = CODE_BYTES + sum(
        best[name].constants if name in best else sizes[name, call.variant]
        for name, call in model.calls.items()
    )
    return sum(way.ticks for way in best.values()) / (flash_percent * program)


def _ways_of_steps(
    model: Model, tiled: TiledGraph, steps: tuple[Step, ...], time: CallTime
) -> tuple[dict[str, list[_Way]], int]:
    """Return the ways of each operator in a schedule, and the peak with the least scratch."""
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
            _Way(
                counts[position] * _step_ticks(model, tiled, position, call, time),
                call.scratch_bytes,
                number,
                model.constant_prices.sizes.get((name, call.variant), 0.0),
                call.kernel,
                load - model.scratch_bytes(least) + model.scratch_bytes(call),
            )
            for number, call in enumerate(model.variants[name])
            if call.state_bytes == least.state_bytes
        ]
    return ways, max(loads, default=0)


def _step_ticks(model: Model, tiled: TiledGraph, position: int, call: KernelCall, time: CallTime) -> float:
    """Return the ticks of one step of an operator by a call; all its steps count as equal."""
    costs = shared_costs(model.with_calls({tiled.graph.operators[position].name: call}), tiled.flow, time)
    return costs.operator_ticks(position, tiled.step_rows[position]) / tiled.step_counts[position]
