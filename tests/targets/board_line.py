"""The small program of these tests, and the host's end of its serial line."""

from __future__ import annotations

import time
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.device.transport import open_transport

CONFIG = """\
#include <stdint.h>
typedef uint32_t mcud_offset;
typedef uint32_t mcud_code;
#define MCUD_ALIGN 4
"""
_FIRMWARE = Path(__file__).parent / "firmware"
LINE = (_FIRMWARE / "line.h").read_text(encoding="utf-8")
BOOT = (_FIRMWARE / "boot.c").read_text(encoding="utf-8")
FILES = {"mcud_config.h": CONFIG, "line.h": LINE, "boot.c": BOOT}


class Line:
    """The small program's end of the serial line."""

    def __init__(self, url: str) -> None:
        self.port = open_transport(url)
        self._arrived = b""
        self._synchronise()

    def ask(self, letter: bytes, *words: int, answers: int = 0) -> list[int]:
        """Send a request with its arguments; return its 32-bit answers."""
        self.send(letter, *words)
        data = self.read(4 * answers)
        return [int.from_bytes(data[at : at + 4], "little") for at in range(0, 4 * answers, 4)]

    def send(self, letter: bytes, *words: int, data: bytes = b"") -> None:
        """Send a request, its arguments and raw bytes."""
        self.port.write(letter + b"".join(word.to_bytes(4, "little") for word in words) + data)

    def read(self, count: int) -> bytes:
        """Exactly `count` bytes."""
        until = time.monotonic() + 10
        while len(self._arrived) < count and time.monotonic() < until:
            self._arrived += self.port.read(0.5)
        data, self._arrived = self._arrived[:count], self._arrived[count:]
        assert len(data) == count, f"{len(data)} of {count} bytes came"
        return data

    def instructions(self, board: Board, rounds: int) -> int:
        """Instructions of `rounds` rounds of the known loop, the measurement's own included."""
        return board.instructions(self.ask(b"T", rounds, answers=1)[0])

    def close(self) -> None:
        """Hang up."""
        self.port.close()

    def _synchronise(self) -> None:
        """Bytes that come before the UART is enabled are lost: repeat until one is answered."""
        until = time.monotonic() + 10
        while not self.port.read(0.05):
            assert time.monotonic() < until, "the program does not answer"
            self.port.write(b"?")
        while self.port.read(0.3):  # answers to the others
            pass
