"""Tile times from several devices: who times what, and what is left after an error or an interrupt."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.common.errors import FitError, ProtocolError
from mcudeploy.costs.database import Database
from mcudeploy.costs.tiles import CallTile
from mcudeploy.device.measured import MeasuredTiles
from mcudeploy.device.replies import Ticks
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.pool.pool import MaxPool

DEVICE = ("board", "7")
ORDER = np.arange(48 * 40, dtype=np.int32)
ROWS = (1, 2, 3, 4, 6, 8)


@dataclass
class Fake:
    """Ten ticks a row; `before` is called ahead of each."""

    before: Callable[[], None] = lambda: None
    seen: list[tuple[str, Interval]] = field(default_factory=list)
    free: bool = True

    def ready(self) -> bool:
        return self.free

    def time(self, graph: Graph, operator: Operator, call: KernelCall, rows: Interval) -> Ticks:
        self.before()
        self.seen.append((operator.name, rows))
        return Ticks(10 * len(rows))


def graph(count: int = 4) -> Graph:
    """Poolings, of which no two are of one shape."""
    pools = [MaxPool((1, 1), (1, 1), (1, 1), (0,) * 4, (24, at + 1)) for at in range(count)]
    tensors = {
        f"{name}{at}": Tensor(f"{name}{at}", (24, at + 1, 2), DType.INT8, Quantization(0.1, 0))
        for at in range(count)
        for name in "xy"
    }
    operators = tuple(Operator(f"pool_{at}", pools[at], (f"x{at}",), f"y{at}", {}) for at in range(count))
    io = tuple(
        tuple(
            GraphIO(f"{name}{at}", f"{name}{at}", (24, at + 1, 2), "int8", ORDER[: 48 * (at + 1)])
            for at in range(count)
        )
        for name in "xy"
    )
    return Graph("g", tensors, operators, *io, {})


def call_of(graph: Graph, operator: Operator) -> KernelCall:
    return operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors[operator.output])


def tiles(of: Graph) -> list[CallTile]:
    blocks = [Interval(rows, 2 * rows) for rows in ROWS]
    return [(operator, call_of(of, operator), block) for operator in of.operators for block in blocks]


def fails() -> None:
    raise ProtocolError("/dev/ttyACM1 closed the connection")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "tiles.sqlite") as opened:
        yield opened


def stored(database: Database) -> int:
    return len(database.tiles("board", "7"))


@pytest.mark.parametrize("count", [1, 2, 3, 30])
def test_every_tile_is_timed_once_by_the_device_whose_turn_it_is(count: int, database: Database) -> None:
    built, timers, progress_calls = graph(), [Fake() for _ in range(count)], []
    measured = MeasuredTiles(DEVICE, database, timers)
    measured.prefetch(built, tiles(built) * 2, 60, lambda *done: progress_calls.append(done))
    wanted = [(operator.name, rows) for operator, _, rows in tiles(built)]
    assert [timer.seen for timer in timers] == [wanted[first::count] for first in range(count)]
    assert progress_calls == [(done, len(wanted)) for done in range(1, len(wanted) + 1)]
    time_of = measured.of(built)
    assert [time_of(*tile) for tile in tiles(built)] == [10.0 * len(rows) for *_, rows in tiles(built)]
    assert (measured.measured, measured.hits) == (len(wanted), len(wanted))
    assert stored(database) == len(wanted)


def test_stored_tiles_are_not_timed_again_and_others_are_timed_on_demand(database: Database) -> None:
    built = graph()
    measured = MeasuredTiles(DEVICE, database, [Fake()])
    measured.prefetch(built, tiles(built)[::2], 60)
    timers = [Fake(), Fake()]
    measured = MeasuredTiles(DEVICE, database, timers)
    time_of = measured.of(built)
    assert [time_of(*tile) for tile in tiles(built)[:2]] == [10, 20]
    assert len(timers[0].seen) == 1 and measured.hits == 1
    measured.prefetch(built, tiles(built), 60)
    assert [len(timer.seen) for timer in timers] == [1 + 6, 5]


def breaking(after: int, seconds: float = 0.0) -> Fake:
    """A device that fails after a number of tiles."""
    calls = iter([None] * after)
    return Fake(lambda: fails() if next(calls, fails) is fails else time.sleep(seconds))


def test_a_device_that_fails_leaves_its_tiles_to_the_others(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    built = graph(20)
    timers = [Fake(lambda: time.sleep(0.001)), breaking(3), breaking(9), Fake()]
    measured = MeasuredTiles(DEVICE, database, timers)
    progress_calls: list[tuple[int, int]] = []
    measured.prefetch(built, tiles(built), 60, lambda *done: progress_calls.append(done))
    seen = [tile for timer in timers for tile in timer.seen]
    assert sorted(seen, key=str) == sorted(((op.name, rows) for op, _, rows in tiles(built)), key=str)
    assert [len(timer.seen) for timer in timers[1:3]] == [3, 9]
    assert stored(database) == measured.measured == len(seen) and progress_calls[-1] == (len(seen), len(seen))
    assert sum("/dev/ttyACM1 closed the connection" in record.message for record in caplog.records) == 2
    measured.prefetch(graph(21), tiles(graph(21)), 60)  # those that are out stay out
    assert [len(timer.seen) for timer in timers[1:3]] == [3, 9]


def test_the_last_device_that_fails_ends_it_and_nothing_is_lost(database: Database) -> None:
    built, timers = graph(20), [breaking(3), breaking(9, 0.001)]
    measured = MeasuredTiles(DEVICE, database, timers)
    with pytest.raises(ProtocolError, match="ttyACM1"):
        measured.prefetch(built, tiles(built), 60)
    assert [len(timer.seen) for timer in timers] == [3, 9] and stored(database) == 12
    with pytest.raises(ProtocolError, match="ttyACM1"):
        measured.of(built)(*tiles(built)[-1])


def test_what_is_in_use_by_others_is_not_waited_for(database: Database) -> None:
    built, timers = graph(), [Fake(), Fake(free=False), Fake()]
    measured = MeasuredTiles(DEVICE, database, timers)
    measured.prefetch(built, tiles(built), 60)
    assert stored(database) == len(tiles(built)) and not timers[1].seen
    timers[0].free = False
    measured.of(graph(5))(*tiles(graph(5))[-1])
    assert not timers[1].seen and timers[2].seen[-1] == ("pool_4", Interval(8, 16))


def _measurer(path: Path, log: int) -> None:
    built = graph(20)
    with Database(path) as database:
        timers = [Fake(lambda: os.write(log, b".") and time.sleep(0.002)) for _ in range(3)]
        MeasuredTiles(DEVICE, database, timers).prefetch(built, tiles(built), 60)


def test_two_processes_measure_no_tile_twice(tmp_path: Path) -> None:
    path, log = tmp_path / "tiles.sqlite", tmp_path / "log"
    file = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=_measurer, args=(path, file)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    os.close(file)
    assert [process.exitcode for process in both] == [0, 0]
    with Database(path) as database:
        assert stored(database) == len(tiles(graph(20))) == log.stat().st_size


def test_every_time_is_stored_before_the_next_is_taken(database: Database) -> None:
    """Also while the command reports the first one."""
    built, counts = graph(), []

    def look() -> None:
        with Database(database.path) as other:
            counts.append(stored(other))

    measured = MeasuredTiles(DEVICE, database, [Fake(look)])
    measured.prefetch(built, tiles(built)[:5], 60, lambda *_: time.sleep(0.05))
    assert counts == [0, 1, 2, 3, 4]
    measured.of(built)(*tiles(built)[5])
    assert stored(database) == 6


def test_an_interrupt_keeps_what_was_timed_and_stops_the_devices(database: Database) -> None:
    built, timers = graph(), [Fake(lambda: time.sleep(0.002)) for _ in range(2)]

    def interrupt(done: int, _: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    measured = MeasuredTiles(DEVICE, database, timers)
    with pytest.raises(KeyboardInterrupt):
        measured.prefetch(built, tiles(built), 60, interrupt)
    count = sum(len(timer.seen) for timer in timers)
    assert 5 <= count < len(tiles(built)) and stored(database) == count


def test_the_time_limit_ends_it(database: Database) -> None:
    built, timer = graph(), Fake(lambda: time.sleep(0.02))
    measured = MeasuredTiles(DEVICE, database, [timer])
    measured.prefetch(built, tiles(built), 0.1)
    assert 0 < len(timer.seen) < 10 and stored(database) == len(timer.seen)


def test_a_tile_without_room_is_timed_in_part_and_one_row_without_room_is_an_error(
    database: Database,
) -> None:
    class Small(Fake):
        def time(self, graph: Graph, operator: Operator, call: KernelCall, rows: Interval) -> Ticks:
            if len(rows) > 2 or operator.name == "pool_3":
                raise ValueError("no room")
            return super().time(graph, operator, call, rows)

    built, timer = graph(), Small()
    measured = MeasuredTiles(DEVICE, database, [timer])
    time_of = measured.of(built)
    first, last = built.operators[0], built.operators[3]
    assert time_of(first, call_of(built, first), Interval(8, 16)) == 80
    assert timer.seen == [("pool_0", Interval(8, 10))]
    measured.prefetch(built, [(last, call_of(built, last), Interval(8, 16)), *tiles(built)[:6]], 60)
    assert measured.measured == len(ROWS)  # that one is passed over, the others are timed
    with pytest.raises(FitError, match=r"one row of pool_3 cannot be timed .*no room"):
        time_of(last, call_of(built, last), Interval(8, 16))
