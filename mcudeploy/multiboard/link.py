"""The line between two neighbours of a chain, as the user names it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcudeploy.common.errors import UsageError

PACKET_BYTES = 236
"""Of a payload in one packet: PACKET_BYTES of firmware/chain/chain_link.c."""
_LINE_BYTES = PACKET_BYTES + 4 + 8 + 2
"""With the session, the frame around it, and its encoding."""
LINK_RAM_BYTES = 2048
"""What the firmware of links keeps beside payloads: two more receive rings, and a frame each way for both."""
WINDOW_BYTES = 4 * _LINE_BYTES
"""On the line and not confirmed at most."""
_TEXT = re.compile(r"(?P<kind>[a-z]+):(?P<number>\d+(\.\d+)?)(?P<unit>[kM]?)", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}
_LEAST_BAUD, _MOST_BAUD = 9600, 10_000_000


@dataclass(frozen=True, slots=True)
class UartLink:
    """A UART of so many bits a second, ten of them for a byte."""

    baud: int

    @property
    def bytes_per_second(self) -> float:
        """Of payloads, each way: what is left when packets have their headers."""
        return self.baud / 10 * PACKET_BYTES / _LINE_BYTES

    @property
    def text(self) -> str:
        """How a user writes it."""
        return f"uart:{self.baud}"


def line_of(text: str) -> UartLink:
    """The line that `uart:2M` and the like name. Raises UsageError."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise UsageError(f"--link {text}: write uart and a rate, such as uart:921600 or uart:2M")
    if found["kind"] != "uart":
        raise UsageError(f"--link {text}: boards are joined by uart, there is no driver for {found['kind']}")
    baud = round(float(found["number"]) * _UNITS[found["unit"]])
    if not _LEAST_BAUD <= baud <= _MOST_BAUD:
        raise UsageError(f"--link {text}: a rate is from {_LEAST_BAUD:,} to {_MOST_BAUD:,} bits a second")
    return UartLink(baud)
