"""Boards of a chain whose states are not to be believed."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import ProtocolError
from mcudeploy.device.frame import Frame, Receiver, encode
from mcudeploy.device.requests import Request
from mcudeploy.device.session import Session
from mcudeploy.device.target import Device
from mcudeploy.extensions.several_boards import frames
from mcudeploy.extensions.several_boards.frames import Chain, RunningBoard
from mcudeploy.toolchain.firmware import Firmware, Sizes

HELLO = struct.pack("<BBBBIIIIIHBBQI", 1, 4, 2, 4, 7, 1, 1, 9, 0, 246, 15, 1, 2**29, 64) + b"\4host"
Counts = tuple[int, int, int, int]
"""Payloads begun and done, ticks, flags."""


class _Board:
    """A line whose other end has started and says of itself what `state` gives."""

    name, bytes_per_second = "line", float("inf")

    def __init__(self, state: Callable[[], Counts]) -> None:
        self._state, self._receiver, self._waiting = state, Receiver(), b""
        self._session = 0

    def write(self, data: bytes) -> None:
        for request in self._receiver.feed(data):
            self._waiting += encode(Frame(request.type | 0x80, request.seq, self._reply(request)))

    def _reply(self, request: Frame) -> bytes:
        match request.type:
            case Request.HELLO:
                return request.data + HELLO
            case Request.START:
                (self._session,) = struct.unpack_from("<I", request.data)
            case Request.STATE:
                begun, done, ticks, flags = self._state()
                return struct.pack("<IIIQIIB", self._session, begun, done, ticks, 0, 0, flags)
        return b""

    def read(self, timeout_s: float) -> bytes:
        data, self._waiting = self._waiting, b""
        if not data:
            time.sleep(min(timeout_s, 0.01))
        return data

    def close(self) -> None:
        """Nothing to give back."""


def _run(state: Callable[[], Counts]) -> None:
    board = load_board("host")
    firmware = Firmware(Path("x"), board, 7, emulated=False, sizes=Sizes(0, 0, 0, 0, 0, 0))
    nodes = [
        RunningBoard(f"board {number}", Device(Session(_Board(state)), "line", firmware), 1000)
        for number in (1, 2)
    ]
    Chain(nodes, 0.1).run([bytes(8)] * 3, 8)


@pytest.mark.parametrize(
    ("counts", "field"),
    [
        ((4, 0, 0, 1), "payloads begun = 4: 0 to 3 is allowed"),
        ((1, 2, 0, 1), "payloads done = 2: 0 to 1 is allowed"),
        ((0, 0, 2**63, 1), "ticks = .*is allowed"),
        ((0, 0, 0, 8), "flags = 8: 0 to 7 is allowed"),
    ],
)
def test_fields_of_a_state_have_bounds(counts: Counts, field: str) -> None:
    with pytest.raises(ProtocolError, match=rf"board 1: line answers STATE with {field}"):
        _run(lambda: counts)


def test_a_state_that_changes_for_ever_is_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_LOOK_S", 0.01)
    ticks = iter(range(2**40))
    start = time.monotonic()
    with pytest.raises(ProtocolError, match="no frame came out of the chain"):
        _run(lambda: cast("Counts", (1, 0, next(ticks), 1)))
    assert time.monotonic() - start < 10
