"""The peak of a cut graph with the scratch of the kernels that it needs to keep a latency.

Fast kernels take scratch, which counts while their operator runs. The search therefore compares states by the
least peak at which the fastest kernels below it keep the latency limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mcudeploy.planner.search.tile_times import VariantTime


@dataclass(frozen=True, slots=True)
class Level:
    """A peak in bytes, the place of an operator that reaches it, and the ticks by variants that keep it."""

    peak_bytes: float
    place: int
    ticks: float


def level_of(
    loads: Mapping[int, int],
    times_of: Callable[[int], Sequence[VariantTime]],
    least: Level,
    most_ticks: float,
) -> Level:
    """Return the least peak, not below `least`, at which the fastest variants keep `most_ticks`.

    `loads`: the most bytes while each operator runs, by place, with the least scratch. `times_of`: its
    variants by rising scratch. `least.ticks`: those of the fastest variants of all operators.
    """
    place, ticks = least.place, least.ticks
    gains: list[tuple[int, int, float]] = []
    for at, load in loads.items():
        times = times_of(at)
        if not times or load + times[-1].scratch_bytes <= least.peak_bytes:
            continue
        fitting = times[0].ticks
        for scratch_bytes, faster in times[1:]:
            if load + scratch_bytes > least.peak_bytes:
                gains.append((load + scratch_bytes, at, fitting - faster))
                ticks += fitting - faster
            fitting = faster
    peak_bytes = least.peak_bytes
    for level, at, gain in sorted(gains):
        if ticks <= most_ticks and level > peak_bytes:
            break
        peak_bytes, place, ticks = level, at, ticks - gain
    return Level(peak_bytes, place, ticks)


def ticks_within(
    loads: Mapping[int, int], times_of: Callable[[int], Sequence[VariantTime]], bound: float
) -> float | None:
    """Return the ticks of operators by the fastest variants that keep a bound; None if an operator has none.

    `bound` is in bytes. `loads`, `times_of`: as for `level_of`.
    """
    ticks = 0.0
    for place, load in loads.items():
        if load > bound:
            return None
        for scratch_bytes, time in reversed(times_of(place)):
            if load + scratch_bytes <= bound:
                ticks += time
                break
    return ticks
