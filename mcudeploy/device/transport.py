"""Byte pipes to a measurer: a serial port, a socket (an emulator's UART is one), or a local process."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import serial

from mcudeploy.common.errors import PortError, ProtocolError
from mcudeploy.common.programs import empty_folder, start
from mcudeploy.common.system.locks import unlock_file
from mcudeploy.common.system.serial_ports import JOIN_PORTS, why_port_not_open
from mcudeploy.common.system.streams import PipeEnds, local_socket, pipe_ends
from mcudeploy.toolchain.ports import list_serial_ports, port_with

_UNIX = "unix://"
USB = "usb:"
"""Prefix of a port that is named by its USB id, because the system does not show it yet."""
_CHUNK_BYTES = 65536
_CONNECT_S, _HANGS_S = 5.0, 10.0
_RFC2217_READ_S = 0.02
_HEAD_LINES, _TAIL_LINES = 12, 3
_QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)
_KEEP_ALIVE = [
    (getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 3), ("TCP_KEEPCNT", 3))
    if hasattr(socket, name)
]


class RefusedError(PortError):
    """Nothing listens at a TCP port: its server has not started yet, or has ended."""


class Transport(Protocol):
    """A two-way stream of bytes that may lose or damage some."""

    name: str
    """The user's name of the line: `/dev/ttyACM0`, `socket://127.0.0.1:4000`, the file of a process."""
    bytes_per_second: float
    """The line's rate, infinite without a limit."""

    def write(self, data: bytes) -> None:
        """Send all of `data`. Raises ProtocolError if the other end is gone or accepts nothing for long."""

    def read(self, timeout_s: float) -> bytes:
        """Return the received bytes, waiting up to `timeout_s` for the first one; empty if none came."""

    def close(self) -> None:
        """Close the line. A process is ended."""


class _Stream:
    """The common part of pipes and sockets."""

    bytes_per_second = float("inf")
    _hangs = False

    def __init__(self, name: str, ends: PipeEnds) -> None:
        self.name = name
        self._ends = ends

    def write(self, data: bytes) -> None:
        try:
            sent = self._ends.send(data, _HANGS_S)
        except OSError:
            raise self._closed_error() from None
        if not sent:
            self._hangs = True
            raise ProtocolError(
                f"{self.name} has taken no bytes for {_HANGS_S:g} s: the measurer hangs. Start it again."
            )

    def read(self, timeout_s: float) -> bytes:
        try:
            data = self._ends.receive(max(0.0, timeout_s))
        except OSError:
            raise self._closed_error() from None
        if data is None:
            return b""
        if not data:
            raise self._closed_error()
        return data

    def _closed_error(self) -> ProtocolError:
        return ProtocolError(
            f"{self.name} closed the connection. Is the emulator still running, or who serves the port?"
        )


def _address(url: str) -> tuple[str, int]:
    """Return host and port of a URL. Raises PortError if either is missing."""
    try:
        parts = urlsplit(url)
        if parts.hostname and parts.port:
            return parts.hostname, parts.port
        fault = "no host" if not parts.hostname else "no port"
    except ValueError as error:
        fault = str(error)
    raise PortError(f"{url} is not an address: {fault}. Write {url.partition(':')[0]}://host:port.")


def _connect(url: str) -> socket.socket:
    if not url.startswith(_UNIX):
        return socket.create_connection(_address(url), _CONNECT_S)
    connection = local_socket()
    try:
        connection.settimeout(_CONNECT_S)
        connection.connect(url.removeprefix(_UNIX))
    except BaseException:
        connection.close()
        raise
    return connection


@dataclass(frozen=True, slots=True)
class _SocketEnds:
    connection: socket.socket

    def receive(self, timeout_s: float) -> bytes | None:
        self.connection.settimeout(timeout_s)
        try:
            return self.connection.recv(_CHUNK_BYTES)
        except (TimeoutError, BlockingIOError):
            return None

    def send(self, data: bytes, timeout_s: float) -> bool:
        self.connection.settimeout(timeout_s)
        try:
            self.connection.sendall(data)
        except TimeoutError:
            return False
        return True


class SocketTransport(_Stream):
    """The UART of a board that a server serves at `socket://host:port`, or of a local emulator at
    `unix://PATH`.

    Raises RefusedError if nothing listens, PortError for any other fault.
    """

    def __init__(self, url: str) -> None:
        try:
            self._socket = _connect(url)
        except (OSError, UnicodeError) as error:  # a name may be invalid
            kind = RefusedError if isinstance(error, ConnectionRefusedError) else PortError
            raise kind(
                f"cannot connect to {url}: {error}. Is the emulator running, or who serves the port?"
            ) from None
        self._remote = not url.startswith(_UNIX)
        if self._remote:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEP_ALIVE:  # a computer that is gone is detected while a program runs
                self._socket.setsockopt(socket.IPPROTO_TCP, option, value)
        super().__init__(url, _SocketEnds(self._socket))

    def read(self, timeout_s: float) -> bytes:
        data = super().read(timeout_s)
        if self._remote and _QUICK_ACK is not None:
            # an emulator sends single bytes and, by Nagle's rule, waits for our delayed acknowledgement
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICK_ACK, 1)
        return data

    def close(self) -> None:
        with suppress(OSError):  # it may be gone already
            self._socket.shutdown(socket.SHUT_RDWR)  # a thread that waits for bytes wakes up
        self._socket.close()


class ProcessTransport(_Stream):
    """The measurer as a process of this machine, on its standard input and output.

    The process inherits `descriptors`. If it dies, the error shows the end of its standard error (reports of
    the sanitizers). Raises PortError if it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the transport)
        self._folder = empty_folder()
        try:
            self._process = start(
                [str(part) for part in command],
                self._folder.name,
                None if environment is None else {**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                pass_fds=descriptors,
            )
        except OSError as error:
            self._stderr.close()
            self._folder.cleanup()
            raise PortError(f"cannot start {command[0]}: {error.strerror}") from None
        assert self._process.stdin is not None and self._process.stdout is not None
        ends = pipe_ends(self._process.stdout.fileno(), self._process.stdin.fileno())
        super().__init__(str(command[0]), ends)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def stderr_text(self) -> str:
        """Return the standard error of the process, without the middle of a long report."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").splitlines()
        if len(lines) > _HEAD_LINES + _TAIL_LINES:
            lines = [*lines[:_HEAD_LINES], "...", *lines[-_TAIL_LINES:]]
        return "\n".join(lines)

    def _closed_error(self) -> ProtocolError:
        try:
            code = self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            return ProtocolError(f"the process {self.name} closed its output but is still running")
        how = (
            f"was killed by signal {-code}"
            if isinstance(code, int) and code < 0
            else f"ended with code {code}"
        )
        tail = self.stderr_text()
        return ProtocolError(f"the process {self.name} {how}" + (f":\n{tail}" if tail else ""))

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        if self._hangs:  # on Windows a pipe is not closed while a thread writes it
            self._process.kill()
        self._process.stdin.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._stderr.close()
        self._folder.cleanup()


class SerialTransport:
    """A serial port of this machine, opened exclusively, or one that a server serves by RFC 2217.

    Raises PortError if it does not exist, is not allowed, or is in use.
    """

    def __init__(self, port: str, baud: int = 115200) -> None:
        self.name = port
        self.bytes_per_second = baud / 10
        self._served = port.startswith("rfc2217://")
        if self._served:
            _address(port)
        # each change of the time-out would send all settings to a server again
        waits = {"timeout": _RFC2217_READ_S} if self._served else {"timeout": 0, "write_timeout": 10}
        try:
            self._port = serial.serial_for_url(port, baudrate=baud, exclusive=True, **waits)
            self._port.reset_input_buffer()
        except (OSError, ValueError, NotImplementedError) as error:
            raise PortError(_why_not_open(port, error)) from None

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except (serial.SerialException, OSError) as error:
            raise self._closed_error(error) from None

    def read(self, timeout_s: float) -> bytes:
        try:
            first = self._first_byte(max(0.0, timeout_s))
            return bytes(first + self._port.read(self._port.in_waiting)) if first else b""
        except (serial.SerialException, OSError, TypeError) as error:
            raise self._closed_error(error) from None

    def _first_byte(self, timeout_s: float) -> bytes:
        if not self._served:
            self._port.timeout = timeout_s
            return bytes(self._port.read(1))
        deadline = time.monotonic() + timeout_s
        while not (byte := self._port.read(1)) and time.monotonic() < deadline:
            continue
        return bytes(byte)

    def _closed_error(self, error: Exception) -> ProtocolError:
        hint = "Is its server still running?" if is_url(self.name) else "Was the board unplugged?"
        return ProtocolError(f"lost {self.name}: {error}. {hint}")

    def close(self) -> None:
        """Close the port; unlock it first: a child between fork and exec has a copy of its descriptor."""
        with suppress(OSError):  # closed already, or a URL without a descriptor
            unlock_file(self._port.fileno())
        self._port.close()


def is_url(port: str) -> bool:
    """Whether a port is named by a URL, not by a device of this machine."""
    return "://" in port


def host_of(port: str) -> str:
    """Return the computer that serves a port; "" for a device of this machine."""
    return _address(port)[0] if port.startswith(("socket://", "rfc2217://")) else ""


def _why_not_open(port: str, error: Exception) -> str:
    text = str(error).rstrip(".")
    if is_url(port):
        return f"cannot open {port}: {text}. Is its server running, and free?"
    why = why_port_not_open(error)
    if why == "denied":
        hint = f"you may not open it. Join its group ({JOIN_PORTS}) and log in again."
    elif why == "busy":
        hint = "another program holds it. Close serial monitors and other mcudeploy runs."
    elif why == "absent":
        names = ", ".join(attached.name for attached in list_serial_ports())
        hint = f"there is no such port; this machine has {names or 'no serial ports'}."
    else:
        hint = f"{text}."
    return f"cannot open {port}: {hint}"


def open_transport(url_or_port: str, baud: int = 115200, wires: Sequence[int | None] = ()) -> Transport:
    """Open a transport for `socket://host:port`, `unix://PATH`, `process:FILE`, or a serial port by name,
    URL, or `usb:VENDOR:PRODUCT`.

    A process inherits the descriptors `wires` as its ports to other processes.
    """
    if url_or_port.startswith(("socket://", _UNIX)):
        return SocketTransport(url_or_port)
    if url_or_port.startswith("process:"):
        by_variable = {f"MCUD_PORT{number}": wire for number, wire in enumerate(wires) if wire is not None}
        environment = {name: str(wire) for name, wire in by_variable.items()}
        return ProcessTransport(
            [url_or_port.removeprefix("process:")], environment, list(by_variable.values())
        )
    if url_or_port.startswith(USB):
        return SerialTransport(port_with(url_or_port.removeprefix(USB)), baud)
    return SerialTransport(url_or_port, baud)
