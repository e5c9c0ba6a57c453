"""Inner loops of searches: numba compiles them where it is installed, else their text runs as plain Python.

Both forms give the same plans, since they have one text. A loop therefore uses only what both forms have:
vectors (arrays if compiled; lists otherwise, whose elements Python reads several times faster), integers
below 2**63, the functions of this module, and no arithmetic on whole vectors. Types are those of the compiled
form.

Import this module lazily: numba is slow to load, and its cache does not see changes of this file.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

_LOG = logging.getLogger(__name__)

njit: Any = None
try:
    from numba import njit
except ImportError as error:
    if error.name != "numba":
        _LOG.warning("warning: numba cannot be loaded, so the search runs as plain Python: %s", error)

COMPILED = njit is not None

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_Loop = TypeVar("_Loop", bound=Callable[..., Any])
_Named = TypeVar("_Named", bound=NamedTuple)
_Vector = TypeVar("_Vector", Ints, Floats, Flags)


def compiled(loop: _Loop) -> _Loop:
    """Decorate a function that numba compiles, for the types of its first call."""
    return cast("_Loop", njit(cache=True)(loop)) if COMPILED else loop


def compiled_as(signature: str) -> Callable[[_Loop], _Loop]:
    """Return a decorator like `compiled` for one signature in numba's notation: a recursion needs it."""
    return njit(signature, cache=True) if COMPILED else lambda loop: loop


def vector(array: _Vector) -> _Vector:
    """Return an array, of one or two dimensions, as loops take it."""
    return array if COMPILED else cast("_Vector", array.tolist())


def vectors(arrays: _Named) -> _Named:
    """Return a named tuple with its arrays as loops take them."""
    if COMPILED:
        return arrays
    return arrays._make(it.tolist() if isinstance(it, np.ndarray) else it for it in arrays)


def arrays(vectors: _Named) -> _Named:
    """Return a named tuple of a loop with its vectors as arrays."""
    if COMPILED:
        return vectors
    return vectors._make(np.array(it) if isinstance(it, list) else it for it in vectors)


if COMPILED:

    @compiled
    def ints(count: int, value: int) -> Ints:
        """Return a vector of integers, all of this value."""
        return np.full(count, value, np.int64)

    @compiled
    def floats(count: int, value: float) -> Floats:
        """Return a vector of numbers, all of this value."""
        return np.full(count, value, np.float64)

    @compiled
    def flags(count: int, value: bool) -> Flags:
        """Return a vector of flags, all of this value."""
        return np.full(count, value, np.bool_)

    @compiled
    def numbers_from(first: int, count: int) -> Ints:
        """Return a vector of successive numbers."""
        return np.arange(first, first + count)

    @compiled
    def ascending(values: Ints | Floats) -> Ints:
        """Return the indices of values in ascending order of the values; a stable sort."""
        return np.argsort(values, kind="mergesort")

    @compiled
    def seed_noise(seed: int) -> None:
        """Begin the sequence of `noise` again."""
        np.random.seed(seed)

    @compiled
    def noise() -> float:
        """Return the next number of numpy's Mersenne Twister, from 0 to below 1."""
        return np.random.random()

else:

    def ints(count: int, value: int) -> Ints:
        """As above."""
        return cast("Ints", [value] * count)

    def floats(count: int, value: float) -> Floats:
        """As above."""
        return cast("Floats", [value] * count)

    def flags(count: int, value: bool) -> Flags:
        """As above."""
        return cast("Flags", [value] * count)

    def numbers_from(first: int, count: int) -> Ints:
        """As above."""
        return cast("Ints", list(range(first, first + count)))

    def ascending(values: Ints | Floats) -> Ints:
        """As above."""
        return cast("Ints", sorted(range(len(values)), key=values.__getitem__))

    _NOISE = np.random.RandomState()  # a state of our own: numpy's belongs to the user

    def seed_noise(seed: int) -> None:
        """As above."""
        _NOISE.seed(seed)

    def noise() -> float:
        """As above."""
        return _NOISE.random_sample()


@contextmanager
def recursion_of(levels: int) -> Iterator[None]:
    """Let loops call themselves `levels` deep in the block: plain Python has a limit of some 1,000."""
    limit = sys.getrecursionlimit()
    if not COMPILED:
        sys.setrecursionlimit(limit + levels)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
