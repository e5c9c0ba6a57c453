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
    low enough. `fit_bytes`: up to this peak, less flash is worth a higher peak.
    """

    ticks: float
    flash_bytes: float
    peak_bytes: float = 0.0
    fit_bytes: float = inf


class _Variant(NamedTuple):
    """A variant of an operator: time, scratch, number, constants, kernel, and the peak that it needs."""

    ticks: float
    scratch_bytes: int
    number: int
    constants: float
    kernel: str
    level: int = 0


Variants = Mapping[str, Sequence[_Variant]]


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
    variants: dict[str, list[_Variant]] = {}
    for name, tried in tiles.items():
        times = [each for each in (known(*tile) for tile in tried) if each is not None]
        if len(times) < len(tried):
            times = [time(*tile) for tile in tried]
        variants[name] = [
            _Variant(ticks, call.scratch_bytes, at, sizes[name, call.variant], call.kernel)
            for at, (ticks, (_, call, _)) in enumerate(zip(times, tried, strict=True))
        ]
    price = _price(model, variants, sizes, flash_percent)
    fixed = sum(sizes[name, call.variant] for name, call in model.calls.items() if name not in variants)
    picked = _picked(variants, price, flash_bytes - fixed)
    calls = {name: tiles[name][variant.number][1] for name, variant in picked.items()}
    return replace(model.with_calls(calls), constant_prices=ConstantPrices(sizes, price))


def _picked(variants: Variants, price: float, room: float) -> Mapping[str, _Variant]:
    """Return the cheapest variants that keep the constants to `room`, or those with the fewest constants."""
    picked: Mapping[str, _Variant] = {}
    for picked in _ever_smaller(variants, price):
        if round(sum(variant.constants for variant in picked.values())) <= room:  # shares of equal constants
            break
    return picked


def _ever_smaller(variants: Variants, price: float) -> Iterator[Mapping[str, _Variant]]:
    """Yield the cheapest variant of each operator, then choices with ever fewer constants.

    In turn, the operator that loses least time for a byte takes a smaller variant.
    """
    picked = _cheapest(variants, price)
    yield picked
    while True:
        smaller = [
            ((it.ticks - picked[name].ticks) / (picked[name].constants - it.constants), name, it)
            for name, options in variants.items()
            for it in options
            if it.constants < picked[name].constants
        ]
        if not smaller:
            return
        _, name, variant = min(smaller)
        picked = picked | {name: variant}
        yield picked


def _cheapest(variants: Variants, price: float) -> dict[str, _Variant]:
    """Return the cheapest variant of each operator.

    A kernel that none of the fastest variants has must also save the bytes that its code takes.
    """

    def cost(variant: _Variant) -> float:
        return variant.ticks + price * variant.constants

    def best(options: Iterable[_Variant]) -> _Variant:
        return min(options, key=lambda variant: (cost(variant), *variant))

    picked = {name: best(options) for name, options in variants.items()}
    present = {min(options).kernel for options in variants.values()}  # others are charged for their code
    for kernel in sorted({variant.kernel for variant in picked.values()} - present):
        without = {
            name: best(variant for variant in variants[name] if variant.kernel in present)
            for name, variant in picked.items()
            if variant.kernel == kernel
        }
        if sum(cost(it) - cost(picked[name]) for name, it in without.items()) < price * _KERNEL_BYTES:
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
    variants, peak = _variants_of_steps(model, tiled, steps, time)
    floor = max(peak, limits.peak_bytes)
    higher = {variant.level for options in variants.values() for variant in options if variant.level > floor}
    levels = sorted({floor, *higher})
    byte_ticks = model.constant_prices.byte_ticks
    best = fast = _within(variants, levels[-1], 0.0, limits)
    fewest = byte_ticks * sum(min(variant.constants for variant in options) for options in variants.values())
    least = inf
    for level in levels:
        peak_ticks = fast.ticks * level / floor
        beyond = level > limits.fit_bytes or bool(limits.peak_bytes)
        if peak_ticks + fewest >= least or (beyond and least < inf):
            break
        picked = _within(variants, level, byte_ticks, limits)
        if picked.ticks > limits.ticks:
            continue
        price = peak_ticks + byte_ticks * picked.constants
        if price < least:
            best, least = picked, price
    calls = {name: model.variants[name][variant.number] for name, variant in best.variants.items()}
    return model.with_calls(calls), best.ticks


class _Pick(NamedTuple):
    """A variant of each operator, and the sums of their ticks and constants."""

    variants: Mapping[str, _Variant]
    ticks: float
    constants: float

    @classmethod
    def of(cls, variants: Mapping[str, _Variant]) -> _Pick:
        constants, ticks = _spent(variants)
        return cls(variants, ticks, constants)


def _within(variants: Variants, level: float, byte_ticks: float, limits: KernelLimits) -> _Pick:
    """Return the variants up to a level of the peak whose constants cost least, at most `byte_ticks` a byte.

    The price falls until the ticks keep to the limit.
    """
    within = {name: [it for it in options if it.level <= level] for name, options in variants.items()}
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
    variants, floor = _variants_of_steps(sized, tiled, steps, time)
    own = {
        name: next((it for it in options if model.variants[name][it.number] is model.calls[name]), options[0])
        for name, options in variants.items()
    }
    peak = max([floor, *(variant.level for variant in own.values())])
    within = {name: [it for it in options if it.level <= peak] for name, options in variants.items()}
    size, ticks = _spent(own)
    for picked in _ever_smaller(within, model.constant_prices.byte_ticks):
        other_size, other_ticks = _spent(picked)
        yield other_size - size, other_ticks - ticks


def _spent(picked: Mapping[str, _Variant]) -> tuple[float, float]:
    """Return the constants and the ticks of a choice."""
    return sum(it.constants for it in picked.values()), sum(it.ticks for it in picked.values())


def _price(
    model: Model, variants: Variants, sizes: Mapping[tuple[str, str], float], flash_percent: float
) -> float:
    """Return the ticks that a byte of constants counts.

    1 % of the ticks of the fastest variants is worth `flash_percent` of the program with them.
    """
    best = {name: min(options) for name, options in variants.items()}
    program = CODE_BYTES + sum(
        best[name].constants if name in best else sizes[name, call.variant]
        for name, call in model.calls.items()
    )
    return sum(variant.ticks for variant in best.values()) / (flash_percent * program)


def _variants_of_steps(
    model: Model, tiled: TiledGraph, steps: tuple[Step, ...], time: CallTime
) -> tuple[dict[str, list[_Variant]], int]:
    """Return the variants of each operator in a schedule, and the peak with the least scratch."""
    lean = model.min_scratch
    loads = list(live_loads(tiled, steps, lean.work))
    highest: dict[int, int] = {}
    for step, load in zip(steps, loads, strict=False):
        highest[step.operator] = max(highest.get(step.operator, 0), load)
    counts = Counter(step.operator for step in steps)
    variants = {}
    for position, load in highest.items():
        name = tiled.graph.operators[position].name
        least = lean.calls[name]
        variants[name] = [
            _Variant(
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
    return variants, max(loads, default=0)


def _step_ticks(model: Model, tiled: TiledGraph, position: int, call: KernelCall, time: CallTime) -> float:
    """Return the ticks of one step of an operator by a call; all its steps count as equal."""
    costs = shared_costs(model.with_calls({tiled.graph.operators[position].name: call}), tiled.flow, time)
    return costs.operator_ticks(position, tiled.step_rows[position]) / tiled.step_counts[position]
