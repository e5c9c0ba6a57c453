"""Cases of signal operators for the costs of kernels: each has inputs of several types."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mcudeploy.extensions.audio.filter_bank import (
    FilterBankLog,
    FilterBankRoot,
    NoiseEstimate,
    NoiseSubtract,
    Pcan,
    Smoothing,
)
from mcudeploy.extensions.audio.fourier import RealFft
from mcudeploy.extensions.audio.signal import (
    OverlapAdd,
    RunCount,
    SignalEnergy,
    SignalHeadroom,
    SignalShift,
    SignalStack,
    SignalWindow,
)
from mcudeploy.ir.graph import DType, Graph
from mcudeploy.ir.one_operator import mixed_operator
from mcudeploy.ops.move.cast import Cast

_SHORT, _WORD, _FLOAT = DType.INT16, DType.INT32, DType.FLOAT32
_LENGTHS = (8, 12, 16, 20, 32, 48, 64, 80, 128, 240, 256, 320, 400, 480, 512, 1024)


def signal_cases() -> Iterator[Graph]:
    """Yield graphs of one signal operator each."""
    yield from _samples()
    yield from _channels()
    for length in _LENGTHS:
        for dtype in (_SHORT, _WORD, _FLOAT):
            for count in (length, length * 3 // 4):
                yield mixed_operator(RealFft(length), [((2, 1, count), dtype)], dtype)
            yield mixed_operator(RealFft(length, True), [((2, 1, length + 2), dtype)], dtype)
    for shape in ((4, 1, 40), (1, 1, 257), (2, 5, 8)):
        for source, target in ((_SHORT, _WORD), (_SHORT, _FLOAT), (_WORD, _SHORT), (_WORD, DType.INT8)):
            yield mixed_operator(Cast(), [(shape, source)], target)


def _samples() -> Iterator[Graph]:
    rng = np.random.default_rng(0)
    number = ((1, 1, 1), _WORD)
    for count in (16, 40, 160, 480, 512):
        vector = ((1, 1, count), _SHORT)
        weights = {"weights": rng.integers(0, 4096, count).astype(np.int16)}
        yield mixed_operator(SignalWindow(12), [((3, 1, count), _SHORT)], _SHORT, weights)
        yield mixed_operator(SignalHeadroom(), [vector], _WORD)
        yield mixed_operator(SignalShift(), [vector, number], _SHORT)
        yield mixed_operator(SignalEnergy(1, count // 2 - 1), [vector], _WORD)
        for frames, step in ((1, count // 2), (2, count // 4), (3, count)):
            for dtype in (_SHORT, _FLOAT):
                inputs = [((1, frames, count), dtype), ((1, 1, count), dtype)]
                yield mixed_operator(OverlapAdd(step), inputs, dtype)
    for frames in (2, 3, 8):
        for channels in (10, 40, 64):
            inputs = [((1, 1, channels), _SHORT), ((1, frames, channels), _SHORT), ((1, 1, 2), DType.INT8)]
            yield mixed_operator(SignalStack(), inputs, _SHORT)
    yield mixed_operator(RunCount(2, 1), [number], DType.INT8)


def _channels() -> Iterator[Graph]:
    rng = np.random.default_rng(0)
    gains = {"gains": rng.integers(0, 1000, 125).astype(np.int16)}
    smoothing = Smoothing(409, 15975)
    for channels in (8, 20, 32, 40, 80):
        one = ((1, 1, channels), _WORD)
        estimate = NoiseEstimate(10, 14, smoothing, smoothing, False)
        for op in (estimate, NoiseSubtract(10, 819, 14)):
            yield mixed_operator(op, [one, one], _WORD)
        yield mixed_operator(Pcan(6), [one, one], _WORD, gains)
        yield mixed_operator(FilterBankLog(3, 64), [one], _SHORT)
        for width in (3, 8):
            ranges = np.arange(channels + 1, dtype=np.uint16) * width
            weights = rng.integers(0, 4096, (channels + 1) * width).astype(np.int16)
            constants = {"weights": weights, "rest": weights, "points": ranges, "places": ranges}
            constants["widths"] = np.full(channels + 1, width, np.uint16)
            spectrum = ((1, 1, (channels + 1) * width), _WORD)
            yield mixed_operator(FilterBankRoot(channels), [spectrum, ((1, 1, 1), _WORD)], _WORD, constants)
