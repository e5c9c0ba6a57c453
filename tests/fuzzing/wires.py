"""Wires between boards of a chain that lose, change, repeat and hold back bytes."""

from __future__ import annotations

import random
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal, get_args

from mcudeploy.device.target import open_device
from mcudeploy.extensions.several_boards.chain_firmware import ChainBoard, built
from mcudeploy.extensions.several_boards.frames import RunningBoard
from mcudeploy.extensions.several_boards.link import UartLink
from mcudeploy.extensions.several_boards.run import resend_us

Fault = Literal["drop", "flip", "repeat", "delay", "insert"]


class FaultyWire:
    """A two-way wire, whose ends are `left` and `right`. One of `mean_bytes` bytes, on average, begins a
    fault. `faults`: the faults so far.
    """

    def __init__(self, seed: int, mean_bytes: int) -> None:
        self.left, mine = socket.socketpair()
        other, self.right = socket.socketpair()
        self.faults: Counter[str] = Counter()
        self._random, self._mean = random.Random(seed), mean_bytes
        self._to = {mine: other, other: mine}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._pump)
        self._thread.start()

    def close(self) -> None:
        """Cut it."""
        self._ends.set()
        self._thread.join()
        for end in (self.left, self.right, *self._to):
            end.close()

    def _pump(self) -> None:
        while not self._ends.is_set():
            for origin in select.select(list(self._to), [], [], 0.05)[0]:
                try:
                    data = origin.recv(4096)
                    self._to[origin].sendall(self._changed(data))
                except OSError:
                    return
                if not data:
                    return

    def _changed(self, data: bytes) -> bytes:
        if self._random.random() > len(data) / self._mean:
            return data
        kind: Fault = self._random.choice(get_args(Fault))
        at = self._random.randrange(len(data))
        length = min(len(data) - at, self._random.choice((1, 2, 10, 300)))
        part = data[at : at + length]
        self.faults[kind] += 1
        if kind == "delay":
            time.sleep(self._random.uniform(0.0, 0.1))
            return data
        if kind == "flip":
            part = bytes([part[0] ^ 1 << self._random.randrange(8)]) + part[1:]
        new = {"drop": b"", "flip": part, "repeat": part * 2, "insert": self._random.randbytes(length) + part}
        return data[:at] + new[kind] + data[at + length :]


@contextmanager
def over_wires(
    members: Sequence[ChainBoard], line: UartLink, wires: Sequence[FaultyWire], *, sanitize: bool = True
) -> Iterator[list[RunningBoard]]:
    """The boards of a chain, started, with these wires between them, which are cut at the end."""
    with ExitStack() as stack:
        for wire in wires:
            stack.callback(wire.close)
        nodes = []
        for number, member in enumerate(members):
            before = wires[number - 1].right.fileno() if number else None
            after = wires[number].left.fileno() if number < len(wires) else None
            firmware = built(member, len(members), line, sanitize=sanitize)
            device = open_device(member.target, firmware, wires=(before, after))
            nodes.append(
                RunningBoard(member.title, stack.enter_context(device), resend_us(member.target, line))
            )
        yield nodes
