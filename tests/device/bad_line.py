"""A bad serial line: loses, damages, inserts, repeats and delays bytes, both ways, from a seed."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

import numpy as np

from mcudeploy.device.session import Timing
from mcudeploy.device.transport import Transport

HASH = 0xC0FFEE11
"""Of the tests' firmware."""
PATIENT = Timing(answer_s=20.0, resend_s=0.03, busy_resend_s=0.1)


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities: of each byte, and (repeat, delay, lose) of each chunk that is sent or received."""

    drop: float = 0.0
    corrupt: float = 0.0
    insert: float = 0.0
    repeat: float = 0.0
    lose: float = 0.0
    delay: float = 0.0
    delay_s: float = 0.05


class BadLine:
    """A transport that passes everything through `faults`; the order of what is left stays."""

    def __init__(self, inner: Transport, faults: Faults, seed: int) -> None:
        self._inner, self._faults = inner, faults
        self._rng = np.random.default_rng(seed)
        self._late: deque[tuple[float, bytes]] = deque()
        self.name = inner.name
        self.bytes_per_second = inner.bytes_per_second
        self.sent = self.damaged = 0

    def write(self, data: bytes) -> None:
        self.sent += 1
        self._inner.write(self._spoil(data))

    def read(self, timeout_s: float) -> bytes:
        until = time.monotonic() + timeout_s
        while True:
            now = time.monotonic()
            if self._late and self._late[0][0] <= now:
                return self._late.popleft()[1]
            wait_s = min(until, self._late[0][0]) - now if self._late else until - now
            data = self._spoil(self._inner.read(max(0.0, wait_s)))
            if data and (self._late or self._rng.random() < self._faults.delay):
                self._late.append((time.monotonic() + self._faults.delay_s * self._rng.random(), data))
            elif data:
                return data
            if time.monotonic() >= until and not self._late:
                return b""

    def close(self) -> None:
        self._inner.close()

    def _spoil(self, data: bytes) -> bytes:
        if not data:
            return data
        faults, rng = self._faults, self._rng
        out = bytearray()
        for byte, (drop, corrupt, insert) in zip(data, rng.random((len(data), 3)), strict=True):
            if insert < faults.insert:
                out.append(int(rng.integers(0, 256)))
            if drop >= faults.drop:
                out.append(byte ^ int(rng.integers(1, 256)) if corrupt < faults.corrupt else byte)
        if rng.random() < faults.lose:
            out.clear()
        if rng.random() < faults.repeat:
            out *= 2
        self.damaged += bytes(out) != data
        return bytes(out)
