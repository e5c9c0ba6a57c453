"""Search for scales of the unit, 31 bits and a shift with ties up, that give known results."""

from __future__ import annotations

from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_SCALE_BITS, _MOST_SHIFT = 31, 63


def fitting_ratios(
    sums: NDArray[Any], wanted: Integers, clip: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest ratio by which sums [..., n], multiplied, rounded and clipped, become
    `wanted` [n]. The least is above the largest where no ratio does.
    """
    below = np.where(wanted == clip[0], -np.inf, wanted - 0.5)
    above = np.where(wanted == clip[1], np.inf, wanted + 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = below / sums, above / sums
    of_zero = np.where((below <= 0) & (above > 0), 0.0, np.inf)
    least = np.where(sums > 0, ends[0], np.where(sums < 0, ends[1], of_zero)).max(axis=-1)
    most = np.where(sums > 0, ends[1], np.where(sums < 0, ends[0], np.inf)).min(axis=-1)
    return np.maximum(least, np.finfo(np.float64).tiny), most


def scale_and_shift(ratio: float) -> tuple[int, int] | None:
    """Return the scale and shift nearest to a ratio, None if a register cannot hold them."""
    if not 0 < ratio < np.inf:
        return None
    mantissa, exponent = frexp(ratio)
    scale, shift = round(mantissa * 2**_SCALE_BITS), _SCALE_BITS - exponent
    return (scale, shift) if scale < 1 << _SCALE_BITS and 0 < shift <= _MOST_SHIFT else None


def scaled(sums: Integers, scale: int, shift: int) -> Integers:
    """Return the results of the unit before the clip."""
    return (sums * scale + (1 << shift - 1)) >> shift
