"""Ports that several runs of mcudeploy on this computer share: one run holds a port, the next one queues.

A lease is a lock on a file. The system releases it with the process that holds it, however that ends.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mcudeploy.common.errors import ConfigError, PortError
from mcudeploy.common.resources import cache_dir
from mcudeploy.common.system.locks import lock_byte, lock_file, unlock_byte, unlock_file
from mcudeploy.common.system.serial_ports import port_identity

_LOG = logging.getLogger(__name__)
_POLL_S = 0.02
_NOTICE_S = 1.0
PATIENCE_S = 600.0
"""Seconds that a command waits for a port that another run uses."""


class Lease:
    """The right to use a port. Not for several threads at once."""

    def __init__(self, port: str) -> None:
        digest = hashlib.sha256(port_identity(port).encode()).hexdigest()[:20]
        folder = cache_dir() / "leases"
        self._held, self._next = FileLock(folder / f"{digest}.held"), FileLock(folder / f"{digest}.next")

    def take(self) -> bool:
        """Take the port and return True; otherwise queue for it if nobody else does."""
        if self._held.ours:
            return True
        if not (self._next.take() and self._held.take()):
            return False
        self._held.write(f"process {os.getpid()} on {socket.gethostname()}")
        self._next.give_back()
        return True

    def wanted(self) -> bool:
        """Whether another run waits for the port."""
        free = self._next.take()
        self._next.give_back()
        return not free

    def give_back(self) -> None:
        """Release the port, or leave the queue."""
        self._next.give_back()
        self._held.give_back()

    def holder(self) -> str:
        """Return the current or last holder."""
        return self._held.text() or "another run of mcudeploy"


@contextmanager
def leased(port: str) -> Iterator[None]:
    """Hold the port inside of the block. Waits for other runs; PortError if that takes too long."""
    lease, start = Lease(port), time.monotonic()
    reported = False
    try:
        while not lease.take():
            waited = time.monotonic() - start
            if waited > PATIENCE_S:
                raise PortError(f"{port} has been in use by {lease.holder()} for {PATIENCE_S:.0f} s.")
            if waited > _NOTICE_S and not reported:
                _LOG.warning("waiting for %s, which %s uses", port, lease.holder())
                reported = True
            time.sleep(_POLL_S)
        yield
    finally:
        lease.give_back()


class FileLock:
    """An exclusive lock on a file, which is created if missing and never removed.

    The lock ends with this process; `shared` ones exclude only exclusive ones.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    @property
    def ours(self) -> bool:
        """Whether this object holds the lock."""
        return self._file is not None

    def take(self, *, shared: bool = False) -> bool:
        """Try to take the lock without waiting; return whether it is ours."""
        if self._file is None:
            file = self._open()
            if not lock_file(file, shared=shared):
                os.close(file)
                return False
            self._file = file
        return True

    def give_back(self) -> None:
        """Release the lock, then close: a child between fork and exec has a copy of the descriptor."""
        if self._file is not None:
            unlock_file(self._file)
            os.close(self._file)
            self._file = None

    def write(self, text: str) -> None:
        """Replace the content of the file; the lock is ours."""
        assert self._file is not None
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, text.encode())

    def text(self) -> str:
        """Return the content of the file."""
        with suppress(OSError):
            return self._path.read_text("utf-8", errors="replace")
        return ""

    def _open(self) -> int:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise ConfigError(
                f"cannot write {self._path}: {error.strerror}. MCUDEPLOY_CACHE_DIR chooses another folder."
            ) from error


class Claims:
    """Claims of tiles that this process measures, so that no other process does: locks on bytes of a file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    def close(self) -> None:
        """Release all claims."""
        os.close(self._file)

    @contextmanager
    def of(self, key: str) -> Iterator[bool]:
        """Yield whether nobody else has claimed the key; then it is ours inside of the block."""
        at = int.from_bytes(hashlib.sha256(key.encode()).digest()[:7])  # the byte need not exist
        if not lock_byte(self._file, at):
            yield False
            return
        try:
            yield True
        finally:
            unlock_byte(self._file, at)
