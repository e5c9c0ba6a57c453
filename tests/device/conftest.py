"""The real measurer as a process, with the program of program.c and a clock under control."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from measurer_program import build_program

from mcudeploy.device.session import Session
from mcudeploy.device.transport import ProcessTransport


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host firmware with program.c, under address and undefined-behaviour sanitizers."""
    return build_program(tmp_path_factory.mktemp("measurer"))


@pytest.fixture
def session(program: Path) -> Iterator[Session]:
    """A session over a line without faults."""
    with Session(ProcessTransport([program])) as opened:
        yield opened


@pytest.fixture
def pty_line(program: Path) -> Iterator[Callable[[], str]]:
    """Start the program at a pseudo terminal; return the name of the serial port to open."""
    running: list[subprocess.Popen[bytes]] = []
    opened: list[int] = []

    def start() -> str:
        import tty  # noqa: PLC0415 (POSIX only)

        device, port = os.openpty()
        tty.setraw(port)
        opened.append(port)
        running.append(subprocess.Popen([program], stdin=device, stdout=device, stderr=subprocess.DEVNULL))
        os.close(device)
        return os.ttyname(port)

    yield start
    for process in running:
        process.kill()
        process.wait()
    for port in opened:
        os.close(port)
