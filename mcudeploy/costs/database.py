"""Measurements kept between runs: tile times and whole runs, in one SQLite file.

Several processes may use it at once. The key of a measurement is everything it depends on: the board, the
firmware with its compiler flags (one hash), the kernel, its parameters and shapes, and the rows it computes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from mcudeploy.common.errors import ConfigError
from mcudeploy.common.resources import cache_dir
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Measurement, OperatorTime

_LOG = logging.getLogger(__name__)

SCHEMA = 2
_BUSY_MS = 20_000
_CREATE = (
    "DROP TABLE IF EXISTS tiles",  # of schema 1, whose keys no longer occur
    """CREATE TABLE IF NOT EXISTS tiles (
        board TEXT NOT NULL, kernels TEXT NOT NULL, kernel TEXT NOT NULL, shape TEXT NOT NULL,
        rows TEXT NOT NULL, ticks INTEGER NOT NULL,
        PRIMARY KEY (board, kernels, kernel, shape, rows)) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS runs (
        model TEXT NOT NULL, board TEXT NOT NULL, firmware TEXT NOT NULL, plan TEXT NOT NULL,
        latency INTEGER NOT NULL, unit TEXT NOT NULL, stack_bytes INTEGER NOT NULL, operators TEXT NOT NULL,
        PRIMARY KEY (model, board, firmware, plan)) WITHOUT ROWID""",
)


@cache
def warn_of_database(consequence: str, error: str) -> None:
    """Warn that the database cannot be used, once for each consequence: a command may try many times."""
    _LOG.warning("warning: %s: %s", consequence, error)


@dataclass(frozen=True, slots=True)
class TileKey:
    """The key of a tile's time.

    `kernels`: the digest of all kernel sources and of their compiler. `shape`: a `shape_key`. `rows`: those
    that the tile computes.
    """

    board: str
    kernels: str
    kernel: str
    shape: str
    rows: str


@dataclass(frozen=True, slots=True)
class RunKey:
    """The key of a whole run: hashes of the model file, the firmware and the plan."""

    model: str
    board: str
    firmware: str
    plan: str


def shape_key(call: KernelCall, shapes: Iterable[Sequence[int]]) -> str:
    """Return a short digest of a kernel's scalars, the sizes of its constants, and the shapes of its tensors.

    Values of constants are excluded, except positions (unsigned tables).
    """
    sizes = [[int(size) for size in shape] for shape in shapes]
    facts: list[object] = [call.kernel, call.scratch_bytes, sizes]
    for number, each in enumerate(call.every_call()):
        if number:
            facts.append(each.kernel)
        for name, value in each.params.items():
            if isinstance(value, np.ndarray):
                content = hashlib.sha256(value.tobytes()).hexdigest() if value.dtype.kind == "u" else ""
                facts.append([name, value.dtype.name, list(value.shape), content])
            else:
                facts.append([name, float(value) if isinstance(value, int | float) else None])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]


def default_path() -> Path:
    """Return the path of `measurements.sqlite` in the cache."""
    return cache_dir() / "measurements.sqlite"


class Database:
    """Measurements on disk. Use it as a context manager, one per process; threads take turns.

    Raises ConfigError if the file cannot be read or written, with the file's name and the way out.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        run = self._connection.execute
        run(f"PRAGMA busy_timeout = {_BUSY_MS}")
        run("PRAGMA synchronous = NORMAL")  # does not wait for the disk: only a power cut can lose a time
        version = run("PRAGMA user_version").fetchone()[0]
        if version == SCHEMA:
            return
        if version > SCHEMA:
            raise ConfigError(
                f"{self.path} was written by a newer mcudeploy (schema {version}, this one knows {SCHEMA}). "
                f"Set MCUDEPLOY_CACHE_DIR to another folder."
            )
        self._use_wal()
        with self._transaction():
            if run("PRAGMA user_version").fetchone()[0] == SCHEMA:  # another process was faster
                return
            for statement in _CREATE:
                run(statement)
            run(f"PRAGMA user_version = {SCHEMA}")

    def _use_wal(self) -> None:
        """Switch to WAL: readers then never wait for a writer. SQLite does not retry this change itself."""
        deadline = time.monotonic() + _BUSY_MS / 1000
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:  # a full disk has already ended it
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigError(f"cannot create {self.path.parent}: {error.strerror}. {_ELSEWHERE}") from error
        except sqlite3.Error as error:
            raise ConfigError(self._explain(error)) from error
        except (ArithmeticError, RecursionError, TypeError, ValueError) as error:  # raised by stored values
            raise ConfigError(f"{self.path} is damaged: {error}. {_DELETE}") from error

    def _explain(self, error: sqlite3.Error) -> str:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return f"{self.path} is damaged: {error}. {_DELETE}"
        if code == sqlite3.SQLITE_FULL:
            return f"no space left for {self.path}. Free some, or: {_ELSEWHERE}"
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return f"cannot write {self.path}: {error}. {_ELSEWHERE}"
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return f"{self.path} has been locked for {_BUSY_MS // 1000} s by another process."
        if code == sqlite3.SQLITE_ERROR:  # tables are missing or different
            return f"{self.path} is damaged: {error}. {_DELETE}"
        return f"cannot use {self.path}: {error}. {_ELSEWHERE}"

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def tile(self, key: TileKey) -> int | None:
        """Return the ticks of a tile; None if it was never measured."""
        with self._explained():
            row = self._connection.execute(
                "SELECT ticks FROM tiles WHERE board=? AND kernels=? AND kernel=? AND shape=? AND rows=?",
                (key.board, key.kernels, key.kernel, key.shape, key.rows),
            ).fetchone()
            return None if row is None else _ticks(row[0])

    def tiles(self, board: str, kernels: str) -> dict[TileKey, int]:
        """Return all tile times of a board with kernels of a digest."""
        with self._explained():
            rows = self._connection.execute(
                "SELECT kernel, shape, rows, ticks FROM tiles WHERE board=? AND kernels=?", (board, kernels)
            ).fetchall()
            return {TileKey(board, kernels, *key): _ticks(ticks) for *key, ticks in rows}

    def has_tiles(self, board: str) -> bool:
        """Return whether any tile of a board was timed, with any kernels."""
        return self._has("SELECT 1 FROM tiles WHERE board=? LIMIT 1", board)

    def has_runs(self, model: str, board: str, plan: str) -> bool:
        """Return whether a plan of a model was measured on a board, with any firmware."""
        query = "SELECT 1 FROM runs WHERE model=? AND board=? AND plan=? LIMIT 1"
        return self._has(query, model, board, plan)

    def _has(self, query: str, *key: str) -> bool:
        with self._explained():
            return self._connection.execute(query, key).fetchone() is not None

    def add_tiles(self, times: Mapping[TileKey, int]) -> None:
        """Store tile times; existing keys are replaced."""
        values = [(k.board, k.kernels, k.kernel, k.shape, k.rows, ticks) for k, ticks in times.items()]
        with self._explained(), self._transaction():
            self._connection.executemany("INSERT OR REPLACE INTO tiles VALUES (?, ?, ?, ?, ?, ?)", values)

    def run(self, key: RunKey) -> Measurement | None:
        """Return the measurement of a whole run; None if it was never measured."""
        with self._explained():
            row = self._connection.execute(
                "SELECT latency, unit, stack_bytes, operators FROM runs "
                "WHERE model=? AND board=? AND firmware=? AND plan=?",
                (key.model, key.board, key.firmware, key.plan),
            ).fetchone()
            if row is None:
                return None
            latency, unit, stack_bytes, text = row
            times = tuple(
                OperatorTime(str(name), int(steps), _ticks(ticks)) for name, steps, ticks in json.loads(text)
            )
            return Measurement(_ticks(latency), str(unit), times, int(stack_bytes))

    def add_run(self, key: RunKey, measured: Measurement) -> None:
        """Store a whole run; an existing key is replaced."""
        operators = json.dumps([[each.operator, each.steps, each.ticks] for each in measured.operators])
        with self._explained(), self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*(key.model, key.board, key.firmware, key.plan), measured.latency, measured.unit,
                 measured.stack_bytes, operators),
            )  # fmt: skip


def _ticks(value: object) -> int:
    """Return a stored time. Raises ValueError for anything else."""
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a time")
    return value


_DELETE = "Delete it; measurements will be repeated."
_ELSEWHERE = "MCUDEPLOY_CACHE_DIR chooses another folder."
