"""The decoder of weights of an Ethos-U has what Arm's encoder was given."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.weekly import examples

Weights = NDArray[np.int16]
_PLACE_BYTES = 4096
"""More than `mcud_npu_weights` has."""


def _sparse(random: np.random.Generator, count: int) -> Weights:
    values = random.integers(-40, 40, count)
    return np.where(random.random(count) < random.random(), 0, values).astype(np.int16)


KINDS: dict[str, Callable[[np.random.Generator, int], Weights]] = {
    "all values": lambda random, count: random.integers(-255, 256, count).astype(np.int16),
    "normal": lambda random, count: np.clip(random.normal(0, 20, count), -127, 127).astype(np.int16),
    "sparse": _sparse,
    "few values": lambda random, count: random.choice(random.integers(-255, 256, 5), count).astype(np.int16),
    "one value": lambda random, count: np.full(count, random.integers(-255, 256), np.int16),
    "changing": lambda random, count: np.concatenate(
        [kind(random, count) for kind in (KINDS["all values"], _sparse, KINDS["few values"], _sparse)]
    ),
}
"""They ask for slices without a palette, with runs of zeros, of indices of one length, and for several."""


class Place:
    """A place in a stream."""

    def __init__(self, model: ctypes.CDLL, stream: bytes) -> None:
        self.model, self.stream = model, np.frombuffer(stream, np.uint8)
        self.memory = np.zeros(_PLACE_BYTES // 8, np.uint64)
        model.mcud_npu_open_weights(self._address(self.memory), self._address(self.stream), len(stream))

    @staticmethod
    def _address(array: NDArray[np.generic]) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    def take(self, count: int) -> Weights | None:
        """The next weights, or None where there are fewer."""
        weights = np.zeros(count, np.int16)
        done = self.model.mcud_npu_next_weights(self._address(self.memory), self._address(weights), count)
        return weights if done else None


@pytest.mark.parametrize("kind", KINDS)
def test_the_decoder_has_what_was_encoded(kind: str, model: ctypes.CDLL) -> None:
    codec = pytest.importorskip("ethosu.mlw_codec")
    random = np.random.default_rng(len(kind))
    for number in range(examples(25, 1000)):
        given = KINDS[kind](random, (1, 2, 13, 64, 700, 9000)[number % 6])
        place = Place(model, bytes(codec.encode(given.tolist())))
        steps = [it for it in (1, 7, given.size // 3, given.size) if it]
        taken = 0
        while taken < given.size:
            count = min(given.size - taken, steps[int(random.integers(len(steps)))])
            found = place.take(count)
            assert found is not None and (found == given[taken : taken + count]).all(), (number, taken)
            taken += count


def test_streams_one_after_another_and_their_end(model: ctypes.CDLL, tmp_path: Path) -> None:
    """The end of a stream is at a byte; filling bytes are ends, too."""
    codec = pytest.importorskip("ethosu.mlw_codec")
    first, second = (codec.encode(it) for it in ([1, 2, 0, 3], [-4, 5]))
    place = Place(model, bytes(first) + bytes(second) + b"\xff" * 5)
    found = place.take(6)
    assert found is not None and found.tolist() == [1, 2, 0, 3, -4, 5]
    assert place.take(1) is None and place.take(1) is None
    assert Place(model, b"").take(1) is None
    assert Place(model, bytes(codec.encode([7] * 100)[:3])).take(100) is None
