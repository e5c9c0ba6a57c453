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
_LOOK_S = 2.0
"""Seconds without progress after which the states of all boards are checked."""


@dataclass(frozen=True, slots=True)
class BoardStatus:
    """Status report of a board of a chain.

    `ticks`: of all its runs with the copies of payloads, without its links; `link_ticks`: of the links, work
    and interrupts; `last`: the counter when the last payload was done, which wraps around.
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
        """Whether a received payload is not computed yet."""
        return bool(self.flags & 1)

    @property
    def ready(self) -> bool:
        """Whether a payload waits to be sent, or is being sent."""
        return bool(self.flags & 2)


@dataclass(frozen=True, slots=True, eq=False)
class RunningBoard:
    """A running board of a chain, and its name in messages.

    `resend_us`: time of the board until it resends an unconfirmed packet; later resends wait longer.
    """

    title: str
    device: Device
    resend_us: int

    @property
    def session(self) -> Session:
        return self.device.session

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the board in errors of its line."""
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
        """Make the board forget all payloads."""
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
    """Times and states of frames: the host's seconds when each was put and taken.

    `states`: of all boards when it was taken.
    """

    put: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)
    states: list[tuple[BoardStatus, ...]] = field(default_factory=list)


class Chain:
    """Boards in a row that have started.

    `patience_s`: time without any progress after which the chain counts as stuck. Progress is another payload
    that a board has started, computed or passed on: a run has a known number of them.
    """

    def __init__(self, nodes: Sequence[RunningBoard], patience_s: float) -> None:
        self.nodes = tuple(nodes)
        self.record = ChainRecord()
        self._patience_s = patience_s

    def run(
        self, payloads: Sequence[bytes], result_bytes: int, report: Callable[[int], None] = lambda done: None
    ) -> list[bytes]:
        """Send the first board's payloads in order, several in flight; return those of the last board.

        Raises ProtocolError, which names the board, if a board is silent, was reset, or makes no progress.
        """
        number = int.from_bytes(os.urandom(4), "little") | 1
        for node in reversed(self.nodes):
            node.start(number)
        results: list[bytes] = []
        self.record = ChainRecord()
        sent = 0
        moved = looked = time.monotonic()
        seen: list[BoardStatus] = []
        changes = _CHANGES * len(payloads) * len(self.nodes)
        while len(results) < len(payloads):
            progress = False
            if sent < len(payloads) and not self._known(self.nodes[0], number, len(payloads)).received:
                self.nodes[0].put(payloads[sent])
                self.record.put.append(time.monotonic())
                sent, progress = sent + 1, True
            if self._known(self.nodes[-1], number, len(payloads)).ready:
                results.append(self.nodes[-1].take(result_bytes))
                self.record.taken.append(time.monotonic())
                self.record.states.append(
                    tuple(self._known(node, number, len(payloads)) for node in self.nodes)
                )
                report(len(results))
                progress = True
            now = time.monotonic()
            if progress:
                moved = looked = now
                continue
            if now - looked > _LOOK_S:
                states = [self._known(node, number, len(payloads)) for node in self.nodes]
                if not _alike(seen, states) and changes > 0:
                    seen, moved, changes = states, now, changes - 1
                elif now - moved > self._patience_s:
                    raise self._still(states, now - moved)
                looked = time.monotonic()
            time.sleep(_POLL_S)
        return results

    def _known(self, node: RunningBoard, number: int, payloads: int) -> BoardStatus:
        """Return the status of a node in this session."""
        state = node.state()
        if state.session != number:
            raise ProtocolError(
                f"{node.title} was started by another program meanwhile. Close the other one."
            )
        with node.named():
            node.session.parsed(Request.STATE, within, "payloads begun", state.taken, 0, payloads)
        return state

    def _still(self, states: Sequence[BoardStatus], waited_s: float) -> ProtocolError:
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
    """Whether the only changes are resent packets, and the time that links take."""
    return _without_links(before) == _without_links(now)


def _without_links(states: Sequence[BoardStatus]) -> list[BoardStatus]:
    return [replace(state, link_ticks=0, resends=0, damaged=0) for state in states]
