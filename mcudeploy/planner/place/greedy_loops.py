"""The inner loop of first fit, compiled if there is much to place and numba is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from mcudeploy.common.effort import Effort

Ints = npt.NDArray[np.int64]


Arrays = tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints]
"""Clusters and rectangles as arrays.

By cluster: the begin of its members. By member: its rectangle, and its distance from the base. By rectangle:
size, alignment, and the begin of its neighbours; then these.
"""

FirstFit = Callable[[Ints, Arrays, Ints], None]

_INTERPRETED = Effort(100_000)
"""Pairs of neighbours that pass in 65 ms without numba, which takes 250 ms to load with the compiled loop."""


def first_fit_of(pairs: int) -> FirstFit:
    """Return `first_fit` for some pairs of neighbours, compiled if all calls together are worth it."""
    _INTERPRETED.spend(pairs)
    return first_fit if _INTERPRETED.left and "numba" not in sys.modules else compiled_fit()


@cache
def compiled_fit() -> FirstFit:
    """Return `first_fit` as `compiled` decorates it."""
    from mcudeploy.common.compiled import compiled  # noqa: PLC0415 - numba is slow to load

    return compiled(first_fit)


def first_fit(order: Ints, arrays: Arrays, offsets: Ints) -> None:
    """Place clusters in this order, each at its lowest free base; `offsets` is below 0 if unplaced."""
    begin, members, distance, size, alignment, neighbours_begin, neighbours = arrays
    most = 0
    for cluster in order:
        count = 0
        for part in range(begin[cluster], begin[cluster + 1]):
            index = members[part]
            count += neighbours_begin[index + 1] - neighbours_begin[index]
        most = max(most, count)
    below, above = np.empty(most, np.int64), np.empty(most, np.int64)
    for cluster in order:
        count = 0
        for part in range(begin[cluster], begin[cluster + 1]):
            index, end = members[part], distance[part] + size[members[part]]
            for at in range(neighbours_begin[index], neighbours_begin[index + 1]):
                other = neighbours[at]
                if offsets[other] >= 0:
                    below[count] = offsets[other] - end
                    above[count] = offsets[other] + size[other] - distance[part]
                    count += 1
        base, step = np.int64(0), alignment[members[begin[cluster]]]
        for at in np.argsort(below[:count]):
            if base <= below[at]:
                break
            if base < above[at]:  # between these two, both excluded, it would share bytes
                base = -(-above[at] // step) * step
        for part in range(begin[cluster], begin[cluster + 1]):
            offsets[members[part]] = base + distance[part]
