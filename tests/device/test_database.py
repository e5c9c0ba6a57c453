"""Measurements survive, are shared between processes, and fail with a message that helps."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.common.errors import ConfigError
from mcudeploy.costs.database import Database, RunKey, TileKey, default_path, shape_key
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Measurement, OperatorTime


def key(number: int, board: str = "b") -> TileKey:
    return TileKey(board, "f00d", "conv2d_s8", "shape", f"{number}")


def test_tiles_and_runs_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "measurements.sqlite"
    run = RunKey("sha", "b", "f00d", "plan")
    times = (OperatorTime("conv_0", 3, 2**33), OperatorTime("c", 1, 0))
    measured = Measurement(2**40, "instructions", times, 480)
    with Database(path) as database:
        assert database.tile(key(1)) is None
        assert database.run(run) is None
        database.add_tiles({key(1): 10, key(2): 2**40, key(1, "other"): 3})
        database.add_tiles({key(1): 11})
        database.add_run(run, measured)
    with Database(path) as database:
        assert database.tile(key(1)) == 11
        assert database.tiles("b", "f00d") == {key(1): 11, key(2): 2**40}
        assert database.run(run) == measured
        assert database.run(RunKey("sha", "b", "other", "plan")) is None


def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path))
    assert default_path() == tmp_path / "measurements.sqlite"
    monkeypatch.delenv("MCUDEPLOY_CACHE_DIR")
    monkeypatch.setenv("HOME", "/home/x")
    assert default_path() == Path("/home/x/.cache/mcudeploy/measurements.sqlite")


def _writer(path: Path, number: int) -> None:
    with Database(path) as database:
        for index in range(30):
            database.add_tiles({key(1000 * number + index): index, key(-1): number})
            assert database.tile(key(1000 * number + index)) == index


def test_many_processes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "measurements.sqlite"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_writer, args=(path, number)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 6
    with Database(path) as database:
        assert len(database.tiles("b", "f00d")) == 6 * 30 + 1


@pytest.mark.parametrize("content", [b"this is not a database" * 100, b"SQLite format 3\0" + b"\x07" * 5000])
def test_a_damaged_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "measurements.sqlite"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"is damaged: .*Delete it"):
        Database(path)


def test_damage_inside(tmp_path: Path) -> None:
    path = tmp_path / "measurements.sqlite"
    with Database(path) as database:
        database.add_tiles({key(number): number for number in range(3000)})
        database._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="is damaged"), Database(path) as database:
        database.tiles("b", "f00d")


@pytest.mark.parametrize("ticks", ["'abc'", "-100", "NULL"])
def test_times_that_nobody_measured(tmp_path: Path, ticks: str) -> None:
    path = tmp_path / "m.sqlite"
    with Database(path) as database:
        database.add_tiles({key(1): 10})
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        try:
            connection.execute(f"UPDATE tiles SET ticks={ticks}")
        except sqlite3.IntegrityError:
            return  # the schema refuses it
    with pytest.raises(ConfigError, match=r"is damaged: .*Delete it"), Database(path) as database:
        database.tiles("b", "f00d")


@pytest.mark.parametrize(
    "operators", ["[" * 100_000, '[["a", 1e999, 2]]', '[["a", null, 2]]', "[[]]", "1", "{"]
)
def test_runs_that_nobody_measured(tmp_path: Path, operators: str) -> None:
    path, run = tmp_path / "m.sqlite", RunKey("sha", "b", "f00d", "plan")
    with Database(path) as database:
        database.add_run(run, Measurement(1, "us", (), 480))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET operators=?", (operators,))
    with pytest.raises(ConfigError, match=r"is damaged: .*Delete it"), Database(path) as database:
        database.run(run)


def test_a_newer_schema(tmp_path: Path) -> None:
    path = tmp_path / "measurements.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigError, match=r"newer mcudeploy \(schema 99.*MCUDEPLOY_CACHE_DIR"):
        Database(path)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot create .*MCUDEPLOY_CACHE_DIR"):
        Database(tmp_path / "file" / "measurements.sqlite")
    (tmp_path / "folder.sqlite").mkdir()
    with pytest.raises(ConfigError, match=r"cannot write .*MCUDEPLOY_CACHE_DIR"):
        Database(tmp_path / "folder.sqlite")


def test_a_full_disk(tmp_path: Path) -> None:
    with Database(tmp_path / "measurements.sqlite") as database:
        pages = database._connection.execute("PRAGMA page_count").fetchone()[0]
        database._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(ConfigError, match="no space left for"):
            database.add_tiles({key(number): number for number in range(3000)})
        database.add_tiles({key(1): 1})
        assert database.tile(key(1)) == 1


def test_shape_keys_see_what_matters() -> None:
    def stored_key(stride: int = 1, scale: float = 0.5, table: int = 0, filters: int = 4) -> str:
        weights = np.full((filters, 3), table, np.int8)
        positions = np.array([table], np.uint16)
        params = {"weights": weights, "table": positions, "bias": None, "stride": stride, "scale": scale}
        return shape_key(KernelCall("k", params, 16), [(1, 2, 3), (4, 5, 6)])

    keys = {
        stored_key(),
        stored_key(stride=2),
        stored_key(scale=0.25),
        stored_key(table=1),
        stored_key(filters=5),
    }
    assert len(keys) == 5
    assert stored_key() == stored_key()
    values = [KernelCall("k", {"weights": np.full(3, value, np.int8)}) for value in (1, 2)]
    assert shape_key(values[0], []) == shape_key(values[1], [])


def test_a_table_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE tiles")
    with pytest.raises(ConfigError, match=r"is damaged: .*Delete it"), Database(path) as database:
        database.tiles("b", "f00d")
