"""Frames through a chain: the host feeds the first board, reads the last, and watches all of them."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mcudeploy.common.errors import ProtocolError
from mcudeploy.device.replies import within
from mcudeploy.device.requests import Request
from mcudeploy.device.session import Session
from mcudeploy.device.target import Device

_STATE = struct.Struct("<IIIQQIIIB")
_POLL_S = 0.002
_CHANGES = 4
"""State changes of a board for a payload: received, started, done, and sent."""
_CHECK_S = 2.0
"""Seconds without progress after which the states of all boards are checked."""


@dataclass(frozen=True, slots=True)
class BoardStatus:
    """Status report of a board of a chain.

    `taken`, `done`: numbers of payloads begun and finished; `ticks`: of all runs and copies of payloads,
    without the links; `link_ticks`: of the links, with interrupts; `last`: the counter, which wraps around,
    when the last payload was done; `resends`, `damaged`: numbers of packets.
    """

    session: int
    taken: int
    done: int
    ticks: int
    link_ticks: int
    last: int
    resends: int
    damaged: int
    flags: int

    @classmethod
    def of(cls, data: bytes) -> BoardStatus:
        """Parse the data of a STATE reply. Raises FieldError for a field out of its bounds."""
        state = cls(*_STATE.unpack(data))
        within("payloads done", state.done, 0, state.taken)
        within("ticks", state.ticks, 0, 2**63 - 1)
        within("flags", state.flags, 0, 7)
        return state

    @property
    def received(self) -> bool:
        """Whether the board has a received payload that it does not compute yet."""
        return bool(self.flags & 1)

    @property
    def ready(self) -> bool:
        """Whether a payload waits to be sent, or is being sent."""
        return bool(self.flags & 2)


@dataclass(frozen=True, slots=True, eq=False)
class RunningBoard:
    """A running board of a chain, and its name in messages.

    `resend_us`: the board resends a packet that is not confirmed within this time; later resends wait longer.
    """

    title: str
    device: Device
    resend_us: int

    @property
    def session(self) -> Session:
        return self.device.session

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the board in errors of the communication with it."""
        try:
            yield
        except ProtocolError as error:
            raise ProtocolError(f"{self.title}: {error}") from error

    def state(self) -> BoardStatus:
        """Read the board's status."""
        with self.named():
            data = self.session.request(Request.STATE, reply_bytes=_STATE.size)
            return self.session.parsed(Request.STATE, BoardStatus.of, data)

    def start(self, number: int) -> None:
        """Begin session `number`, in which the board has no payloads."""
        with self.named():
            self.session.request(Request.START, struct.pack("<II", number, self.resend_us))

    def put(self, payload: bytes) -> None:
        """Send a payload to the first board."""
        size = self.session.info.max_data_bytes - 4
        with self.named():
            for first in range(0, len(payload), size):
                self.session.request(Request.PUT, struct.pack("<I", first) + payload[first : first + size])

    def take(self, count: int) -> bytes:
        """Read a payload of `count` bytes from the last board."""
        size, payload = self.session.info.max_data_bytes, bytearray()
        with self.named():
            while len(payload) < count:
                part = min(size, count - len(payload))
                request = struct.pack("<IH", len(payload), part)
                payload += self.session.request(Request.TAKE, request, reply_bytes=part)
            self.session.request(Request.NEXT)
        return bytes(payload)


@dataclass(slots=True)
class ChainRecord:
    """For each frame, the host's seconds when it was put and when it was taken.

    `states`: of all boards when the frame was taken.
    """

    put: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)
    states: list[tuple[BoardStatus, ...]] = field(default_factory=list)


class Chain:
    """A chain of running boards.

    `patience_s`: time without progress after which the chain counts as stuck. Progress is a change of a
    board's state for a payload; a run has a known number of such changes.
    """

    def __init__(self, nodes: Sequence[RunningBoard], patience_s: float) -> None:
        self.nodes = tuple(nodes)
        self.record = ChainRecord()
        self._patience_s = patience_s

    def run(
        self, payloads: Sequence[bytes], result_bytes: int, report: Callable[[int], None] = lambda done: None
    ) -> list[bytes]:
        """Send payloads to the first board, several in flight, and return the results of the last board.

        Raises ProtocolError, which names the board, if a board is silent, was reset, or makes no progress.
        """
        number = int.from_bytes(os.urandom(4), "little") | 1
        for node in reversed(self.nodes):
            node.start(number)
        results: list[bytes] = []
        self.record = ChainRecord()
        sent = 0
        last_progress = last_check = time.monotonic()
        last_states: list[BoardStatus] = []
        changes_left = _CHANGES * len(payloads) * len(self.nodes)

        def state_of(node: RunningBoard) -> BoardStatus:
            return self._checked_state(node, number, len(payloads))

        while len(results) < len(payloads):
            progress = False
            if sent < len(payloads) and not state_of(self.nodes[0]).received:
                self.nodes[0].put(payloads[sent])
                self.record.put.append(time.monotonic())
                sent, progress = sent + 1, True
            if state_of(self.nodes[-1]).ready:
                results.append(self.nodes[-1].take(result_bytes))
                self.record.taken.append(time.monotonic())
                self.record.states.append(tuple(map(state_of, self.nodes)))
                report(len(results))
                progress = True
            now = time.monotonic()
            if progress:
                last_progress = last_check = now
                continue
            if now - last_check > _CHECK_S:
                states = list(map(state_of, self.nodes))
                if not _alike(last_states, states) and changes_left > 0:
                    last_states, last_progress, changes_left = states, now, changes_left - 1
                elif now - last_progress > self._patience_s:
                    raise self._stuck(states, now - last_progress)
                last_check = time.monotonic()
            time.sleep(_POLL_S)
        return results

    def _checked_state(self, node: RunningBoard, number: int, payloads: int) -> BoardStatus:
        """Return the status of a node. Raises ProtocolError unless it is of session `number`."""
        state = node.state()
        if state.session != number:
            raise ProtocolError(
                f"{node.title} was started by another program meanwhile. Close the other one."
            )
        with node.named():
            node.session.parsed(Request.STATE, within, "payloads begun", state.taken, 0, payloads)
        return state

    def _stuck(self, states: Sequence[BoardStatus], waited_s: float) -> ProtocolError:
        """Return the error for a chain in which no frame advances."""
        for node, following, state, after in zip(
            self.nodes, self.nodes[1:], states, states[1:], strict=False
        ):
            if state.ready and not after.received:
                return ProtocolError(
                    f"nothing goes from {node.title} to {following.title}: {state.resends} packets were sent "
                    f"again, {state.damaged + after.damaged} came damaged. Check wires, ground and rate"
                )
        return ProtocolError(f"no frame came out of the chain for {waited_s:.0f} s, though all boards answer")


def _alike(before: Sequence[BoardStatus], now: Sequence[BoardStatus]) -> bool:
    """Whether states differ at most in resent packets, and in the time that links take."""
    return _without_links(before) == _without_links(now)


def _without_links(states: Sequence[BoardStatus]) -> list[BoardStatus]:
    return [replace(state, link_ticks=0, resends=0, damaged=0) for state in states]
