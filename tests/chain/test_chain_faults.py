"""Boards of a chain that report impossible states."""

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
from mcudeploy.extensions.several_boards.frame_times import replayed, timed
from mcudeploy.extensions.several_boards.frames import BoardStatus, Chain, ChainRecord, RunningBoard
from mcudeploy.toolchain.firmware import Firmware, Sizes

HELLO = struct.pack("<BBBBIIIIIHBBQI", 1, 4, 2, 4, 7, 1, 1, 9, 0, 246, 15, 1, 2**29, 64) + b"\4host"
Counts = tuple[int, int, int, int]
"""Payloads begun and done, ticks, flags."""


class _Board:
    """A line to a board that has started, and reports the counts that `state` returns."""

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
                return struct.pack("<IIIQQIIIB", self._session, begun, done, ticks, 0, 0, 0, 0, flags)
        return b""

    def read(self, timeout_s: float) -> bytes:
        data, self._waiting = self._waiting, b""
        if not data:
            time.sleep(min(timeout_s, 0.01))
        return data

    def close(self) -> None:
        """There is nothing to close."""


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


def test_a_state_that_changes_for_ever_is_not_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_CHECK_S", 0.01)
    ticks = iter(range(2**40))
    start = time.monotonic()
    with pytest.raises(ProtocolError, match="no frame came out of the chain"):
        _run(lambda: cast("Counts", (1, 0, next(ticks), 1)))
    assert time.monotonic() - start < 10


def _status(done: int, ticks: int, link_ticks: int, last: int) -> BoardStatus:
    return BoardStatus(1, done, done, ticks, link_ticks, last, 0, 0, 0)


def test_a_replay_gives_frames_the_ticks_that_boards_counted() -> None:
    """The second board works 20, 20, 40 and 40 ticks on frames; two frames of the first share theirs."""
    first = [_status(done, 8 * done, 10 * done, 0) for done in (2, 3, 4, 4)]
    second = [_status(*counts, 0) for counts in ((1, 20, 15), (2, 40, 30), (3, 80, 35), (4, 120, 40))]
    record = ChainRecord([0.0] * 4, [0.0] * 4, list(zip(first, second, strict=True)))
    times = replayed(record, [1.0, 1.0], [5.0])
    assert times.method == "replay"
    assert times.latency_seconds == (8 + 10) + 5 + (20 + 10)
    assert times.frame_seconds == 40 + 10  # of the last two


def test_clocks_time_frames_though_the_counter_wraps_around() -> None:
    board = load_board("host")
    firmware = Firmware(Path("x"), board, 7, emulated=False, sizes=Sizes(0, 0, 0, 0, 0, 0))
    node = RunningBoard("board 1", Device(Session(_Board(lambda: (0, 0, 0, 0))), "line", firmware), 1000)
    node.session.hello()
    rate = node.session.info.ticks_hz
    frames = [_status(done, 0, 0, done * 3 * 2**31 % 2**32) for done in (1, 2, 3, 4, 5)]
    seconds = 3 * 2**31 / rate
    taken = [seconds * done + 0.01 * (done % 2) for done in (1, 2, 3, 4, 5)]
    times = timed(ChainRecord([0.0] * 5, taken, [(each,) for each in frames]), node)
    assert times.method == "clock"
    assert times.frame_seconds == pytest.approx(seconds)
    assert times.latency_seconds == taken[0]
    alone = timed(ChainRecord([0.0], taken[:1], [(frames[0],)]), node)
    assert alone.frame_seconds == alone.latency_seconds == taken[0]
