"""Sound with the shape of speech: voiced syllables with moving formants, hisses, pauses and noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RATE = 16_000


def speech_like(seconds: float, seed: int = 0) -> NDArray[np.int16]:
    """Samples of one channel. Syllables last 0.1 to 0.3 s; one in four is a hiss, and one in five a pause."""
    random = np.random.default_rng(seed)
    count = int(seconds * RATE)
    parts: list[NDArray[np.float64]] = []
    while sum(map(len, parts)) < count:
        parts.append(_syllable(random, int(random.uniform(0.1, 0.3) * RATE)))
    signal = np.concatenate(parts)[:count] + random.normal(0, 40, count)
    return np.clip(signal, -(2**15), 2**15 - 1).astype(np.int16)


def _syllable(random: np.random.Generator, size: int) -> NDArray[np.float64]:
    loudness = np.sin(np.linspace(0, np.pi, size)) * 10 ** random.uniform(2.5, 4)
    kind = random.random()
    if kind < 0.2:
        return np.zeros(size)
    if kind < 0.45:
        return loudness * np.diff(random.normal(0, 0.5, size + 1))
    pitch = np.linspace(*random.uniform(90, 250, 2), size)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voice = np.zeros(size)
    formants = [np.linspace(*random.uniform(low, high, 2), size) for low, high in ((250, 900), (800, 2500))]
    for harmonic in range(1, 30):
        near = sum(np.exp(-(((harmonic * pitch - formant) / 150) ** 2)) for formant in formants)
        voice += near * np.sin(harmonic * phase)
    return loudness * voice / 2
