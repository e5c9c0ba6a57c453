"""The serial link between two neighbours of a chain, as the user names it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import UsageError

PACKET_BYTES = 236
"""Payload bytes of a packet: PACKET_BYTES of firmware/chain/chain_link.c."""
_FRAMED_BYTES = PACKET_BYTES + 4 + 8 + 2
"""Bytes of a packet with the session, the frame around it, and its encoding."""
LINK_RAM_BYTES = 2048
"""RAM of the firmware of a board's two links beside payloads: receive rings, and a frame each way."""
WINDOW_BYTES = 4 * _FRAMED_BYTES
"""Limit of the unconfirmed bytes on a link: four packets."""
_RECEIVED_INSTRUCTIONS, _SENT_INSTRUCTIONS = 63, 30
"""Instructions of the core for a payload byte: interrupts, packets, checks and confirmations, counted on a
Cortex-M33.
"""
_TEXT = re.compile(r"(?P<kind>[a-z]+):(?P<number>\d+(\.\d+)?)(?P<unit>[kM]?)", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}
_LEAST_BAUD, _MOST_BAUD = 9600, 10_000_000


@dataclass(frozen=True, slots=True)
class UartLink:
    """A UART with a rate in bits per second; a byte takes ten bits."""

    baud: int

    @property
    def bytes_per_second(self) -> float:
        """Payload bytes per second in each direction, without the packets' headers."""
        return self.baud / 10 * PACKET_BYTES / _FRAMED_BYTES

    def core_seconds(self, board: Board, received: int, sent: int) -> float:
        """Return the time that links take from a board's core, for the payload bytes of a frame."""
        if board.is_host:
            return 0.0
        return (_RECEIVED_INSTRUCTIONS * received + _SENT_INSTRUCTIONS * sent) / board.clock_hz

    @property
    def text(self) -> str:
        """The link as a user writes it."""
        return f"uart:{self.baud}"


def parse_link(text: str) -> UartLink:
    """Return the link that a text such as `uart:2M` names. Raises UsageError."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UsageError(f"--link {text}: write uart and a rate, such as uart:921600 or uart:2M")
    if match["kind"] != "uart":
        raise UsageError(f"--link {text}: boards are joined by uart, there is no driver for {match['kind']}")
    baud = round(float(match["number"]) * _UNITS[match["unit"]])
    if not _LEAST_BAUD <= baud <= _MOST_BAUD:
        raise UsageError(f"--link {text}: a rate is from {_LEAST_BAUD:,} to {_MOST_BAUD:,} bits a second")
    return UartLink(baud)
