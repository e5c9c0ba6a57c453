"""A small program that answers over the UART, built for any board into a cache of the test run's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import serial

from mcudeploy.board import Board, load_board
from mcudeploy.targets import Firmware, build_firmware

CONFIG = """\
#include <stdint.h>
typedef uint32_t mcud_offset;
typedef uint32_t mcud_code;
#define MCUD_ALIGN 4
"""
BOOT = (Path(__file__).parent / "firmware" / "boot.c").read_text(encoding="utf-8")
FILES = {"mcud_config.h": CONFIG, "boot.c": BOOT}


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty cache folder that all builds of the session share."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCUDEPLOY_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def boot(cache: Path) -> Callable[..., Firmware]:
    """Builds the small program for a board's emulator, or with emulate=False for its hardware."""

    def build(name: str, *, emulate: bool = True) -> Firmware:
        return build_firmware(load_board(name), FILES, [], emulate=emulate, measurer=False)

    return build


class Line:
    """The small program's end of the serial line."""

    def __init__(self, url: str) -> None:
        self.port = serial.serial_for_url(url, timeout=10)
        self._synchronise()

    def ask(self, letter: bytes, *words: int, answers: int = 0) -> list[int]:
        """Sends a request with its arguments, receives its 32-bit answers."""
        self.send(letter, *words)
        data = self.read(4 * answers)
        return [int.from_bytes(data[at : at + 4], "little") for at in range(0, 4 * answers, 4)]

    def send(self, letter: bytes, *words: int, data: bytes = b"") -> None:
        """Sends a request, its arguments and raw bytes."""
        self.port.write(letter + b"".join(word.to_bytes(4, "little") for word in words) + data)

    def read(self, count: int) -> bytes:
        """Exactly `count` bytes."""
        data = bytes(self.port.read(count))
        assert len(data) == count, f"{len(data)} of {count} bytes came"
        return data

    def instructions(self, board: Board, rounds: int) -> int:
        """Instructions of `rounds` rounds of the known loop, the measurement's own included."""
        return board.instructions(self.ask(b"T", rounds, answers=1)[0])

    def close(self) -> None:
        """Hangs up."""
        self.port.close()

    def _synchronise(self) -> None:
        """Bytes that come before the UART is enabled are lost: repeat until one is answered."""
        self.port.timeout = 0.05
        until = time.monotonic() + 10
        while not self.port.read(1):
            assert time.monotonic() < until, "the program does not answer"
            self.port.write(b"?")
        while self.port.read(1):
            pass
        self.port.timeout = 10
