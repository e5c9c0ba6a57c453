"""A measurer at a socket, as a server of serial ports offers it: raw bytes, or RFC 2217."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

import serial
from serial.rfc2217 import PortManager


class _Wire:
    """The output of a port manager."""

    def __init__(self, connection: socket.socket) -> None:
        self.write = connection.sendall


class Served:
    """One client at a time; the measurer runs on between them. Use as a context manager."""

    def __init__(self, program: Path, scheme: str, port: int = 0) -> None:
        self._rfc2217 = scheme == "rfc2217"
        self._listener = socket.create_server(("127.0.0.1", port))
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self._process.kill()
        self._process.wait()
        self._thread.join(5)

    def cut(self) -> None:
        """The connection breaks."""
        if self._connection is not None:
            with suppress(OSError):  # it is cut already
                self._connection.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while True:
            try:
                self._connection, _ = self._listener.accept()
            except OSError:
                return
            with self._connection:
                self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    self._bridge(self._connection)
                except OSError:
                    self._connection = None
                    continue
            self._connection = None

    def _bridge(self, connection: socket.socket) -> None:
        out, into = self._process.stdout.fileno(), self._process.stdin.fileno()
        manager = None
        if self._rfc2217:
            settings = serial.serial_for_url("loop://", timeout=0)
            manager = PortManager(settings, _Wire(connection))
        while True:
            ready, _, _ = select.select([connection, out], [], [])
            if connection in ready:
                data = connection.recv(65536)
                if not data:
                    return
                os.write(into, b"".join(manager.filter(data)) if manager else data)
            if out in ready:
                data = os.read(out, 65536)
                connection.sendall(b"".join(manager.escape(data)) if manager else data)
