"""Byte streams to other programs: pipes, sockets, and lines that an emulator serves."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mcudeploy.common.system import WINDOWS

if TYPE_CHECKING:
    import socket

PASSES_DESCRIPTORS = not WINDOWS
"""Whether a program that we start can inherit a socket."""


class PipeEnds(Protocol):
    """Two pipes to a program as a stream: its output is read, its input written."""

    def receive(self, timeout_s: float) -> bytes | None:
        """Return bytes, b"" at the end of the stream, None if none came in time. Raises OSError."""

    def send(self, data: bytes, timeout_s: float) -> bool:
        """Write all bytes; return False if the other end takes none for that long. Raises OSError."""


def pipe_ends(reader: int, writer: int) -> PipeEnds:
    """Return the stream of two descriptors. Windows cannot wait for pipes: threads read and write them."""
    if sys.platform == "win32":
        return _ThreadedPipes(reader, writer)
    return _PolledPipes(reader, writer)


_CHUNK_BYTES = 65536

if sys.platform != "win32":

    class _PolledPipes:
        def __init__(self, reader: int, writer: int) -> None:
            import select  # noqa: PLC0415

            self._reader, self._writer = reader, writer
            os.set_blocking(reader, False)
            os.set_blocking(writer, False)
            self._readable, self._writable = select.poll(), select.poll()
            self._readable.register(reader, select.POLLIN)
            self._writable.register(writer, select.POLLOUT)

        def receive(self, timeout_s: float) -> bytes | None:
            if not self._readable.poll(timeout_s * 1000):
                return None
            try:
                return os.read(self._reader, _CHUNK_BYTES)
            except BlockingIOError:
                return None

        def send(self, data: bytes, timeout_s: float) -> bool:
            view, deadline = memoryview(data), time.monotonic() + timeout_s
            while view:
                try:
                    view = view[os.write(self._writer, view) :]
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        return False
                    self._writable.poll(100)
            return True


class _ThreadedPipes:
    def __init__(self, reader: int, writer: int) -> None:
        from queue import SimpleQueue  # noqa: PLC0415

        self._received: SimpleQueue[bytes | OSError] = SimpleQueue()
        self._to_send: SimpleQueue[bytes] = SimpleQueue()
        self._sent: SimpleQueue[OSError | None] = SimpleQueue()
        self._start(self._read, reader)
        self._start(self._write, writer)

    @staticmethod
    def _start(work: Callable[[int], None], pipe: int) -> None:
        import threading  # noqa: PLC0415

        threading.Thread(target=work, args=(pipe,), daemon=True).start()

    def receive(self, timeout_s: float) -> bytes | None:
        from queue import Empty  # noqa: PLC0415

        try:
            content = self._received.get(timeout=timeout_s)
        except Empty:
            return None
        if isinstance(content, OSError) or not content:
            self._received.put(content)  # for each later call, too
        if isinstance(content, OSError):
            raise content
        return content

    def send(self, data: bytes, timeout_s: float) -> bool:
        from queue import Empty  # noqa: PLC0415

        self._to_send.put(data)
        try:
            error = self._sent.get(timeout=timeout_s)
        except Empty:
            return False
        if error is not None:
            raise error
        return True

    def _read(self, pipe: int) -> None:
        content: bytes | OSError = b"first"
        while not isinstance(content, OSError) and content:
            try:
                content = os.read(pipe, _CHUNK_BYTES)
            except OSError as error:
                content = error
            self._received.put(content)

    def _write(self, pipe: int) -> None:
        while True:
            view = memoryview(self._to_send.get())
            try:
                while view:
                    view = view[os.write(pipe, view) :]
            except OSError as error:
                self._sent.put(error)
                return
            self._sent.put(None)


@dataclass(frozen=True, slots=True)
class ServedLine:
    """A serial line that QEMU serves: its name here, QEMU's options, and descriptors that QEMU inherits."""

    url: str
    options: str
    descriptors: tuple[int, ...]


@contextmanager
def line_to_serve(folder: Path) -> Iterator[ServedLine]:
    """Yield a line for QEMU, which is started inside of the block.

    It is a socket in a private folder, that listens here before QEMU inherits it: connecting is never too
    early. On Windows it is a port of this computer, which its other users reach as well.
    """
    import socket  # noqa: PLC0415

    if sys.platform == "win32":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        yield ServedLine(f"socket://127.0.0.1:{port}", f"host=127.0.0.1,port={port}", ())
        return
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "line"))
        listener.listen(1)
        yield ServedLine(f"unix://{folder / 'line'}", f"fd={listener.fileno()}", (listener.fileno(),))


def local_socket() -> socket.socket:
    """Return a socket for the path of another one. Raises OSError where there are none."""
    import socket  # noqa: PLC0415

    if sys.platform == "win32":
        raise OSError("Python has no sockets in files on Windows: serve socket://host:port")
    return socket.socket(socket.AF_UNIX)
