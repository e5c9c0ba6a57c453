"""Tile times from devices, stored in the database: a tile that was measured once is never measured again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event, Lock
from typing import NamedTuple, Protocol

from mcudeploy.common.errors import FitError
from mcudeploy.costs.database import Database, TileKey, shape_key
from mcudeploy.costs.tiles import CallTile, CallTime, KnownTime
from mcudeploy.device.fleet import LOST, POLL_S, WorkingBoards, WorkShares
from mcudeploy.device.lease import Claims
from mcudeploy.device.replies import Ticks
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall

Advance = Callable[[int, int], None]
"""Receives the number of timed tiles, and the total."""


class TileClock(Protocol):
    """A clock that times tiles on one device; see `BoardTimer`."""

    def ready(self) -> bool:
        """Whether the clock can time a tile now; otherwise another run has the device for a while."""

    def time(self, graph: Graph, operator: Operator, call: KernelCall, rows: Interval) -> Ticks:
        """Return the ticks of a tile. Raises ValueError if it does not fit the arena for timing."""


class _Tile(NamedTuple):
    graph: Graph
    operator: Operator
    call: KernelCall
    rows: Interval


_Keyed = tuple[TileKey, _Tile]


class _Keys:
    """The keys of a graph's tiles. Digests of shapes are cached: they are few, and used often."""

    def __init__(self, board: str, kernels: str, graph: Graph) -> None:
        self._board, self._kernels, self._graph = board, kernels, graph
        self._shapes: dict[tuple[str, str], str] = {}

    def of(self, operator: Operator, call: KernelCall, rows: Interval) -> TileKey:
        """Return the key of a tile of the graph."""
        name = operator.name, call.variant
        if name not in self._shapes:
            tensors = (*self._graph.input_tensors(operator), self._graph.tensors[operator.output])
            self._shapes[name] = shape_key(call, [tensor.shape for tensor in tensors])
        return TileKey(self._board, self._kernels, call.kernel, self._shapes[name], str(rows))


def times_of_graph(times: Mapping[TileKey, int], board: str, kernels: str, graph: Graph) -> KnownTime:
    """Return earlier times of a graph's tiles, by a board with kernels of this digest."""
    keys = _Keys(board, kernels, graph)
    return lambda operator, call, rows: times.get(keys.of(operator, call, rows))


class MeasuredTiles:
    """Times of tiles on devices of one kind. Each is stored as soon as a device has reported it.

    `measured` tiles ran on a device, `hits` were stored before. If a tile does not fit the arena for timing,
    a part of it is timed and scaled by its rows. `device`: the board and the digest of its kernels. While
    another process measures a tile, this one waits for the result. A device that fails leaves its tiles to
    the others in `working`. The error of the last device is raised.
    """

    def __init__(
        self,
        device: tuple[str, str],
        database: Database,
        timers: Sequence[TileClock],
        working: WorkingBoards | None = None,
    ) -> None:
        self._timers, self._database = timers, database
        self._device = device
        self._known = database.tiles(*device)
        self._working = working or WorkingBoards(len(timers))
        self._storing = Lock()
        self._claims = Claims(database.path.with_name("claims"))
        self.measured = self.hits = 0

    def close(self) -> None:
        """Stop measuring."""
        self._claims.close()

    def of(self, graph: Graph) -> CallTime:
        """Return the times of a graph's tiles. Unknown ones are measured on demand, on the first free device.

        Raises FitError for a tile of which not even a row can be timed.
        """
        keys = _Keys(*self._device, graph)

        def ticks(operator: Operator, call: KernelCall, rows: Interval) -> float:
            if not operator.inputs:
                return 0.0  # a feed: the application's time
            key = keys.of(operator, call, rows)
            if key in self._known:
                self.hits += 1
            else:
                self._time_now(key, _Tile(graph, operator, call, rows))
            return float(self._known[key])

        return ticks

    def prefetch(
        self,
        graph: Graph,
        tiles: Iterable[CallTile],
        seconds: float,
        advance: Advance = lambda *_: None,
    ) -> None:
        """Time unknown tiles on all devices at once, for `seconds` at most.

        They are dealt out one by one, and every device takes its own in order. So the device of a tile
        depends on the number of devices and on the stored times, not on speed, unless one fails or another
        run uses it. A tile of which not even a row can be timed is skipped: it may never be needed. No
        measurement is lost by an error or an interrupt.
        """
        missing: dict[TileKey, _Tile] = {}
        keys = _Keys(*self._device, graph)
        for operator, call, rows in tiles:
            key = keys.of(operator, call, rows)
            if operator.inputs and key not in self._known:
                missing.setdefault(key, _Tile(graph, operator, call, rows))
        if missing:
            self._time(list(missing.items()), time.monotonic() + seconds, advance)

    def _time(self, tiles: Sequence[_Keyed], deadline: float, advance: Advance) -> None:
        """Run a thread for each device. It stores a time before it takes the next tile.

        A killed process loses only the tiles under way.
        """
        reports: SimpleQueue[bool] = SimpleQueue()  # True: a tile is done, False: a thread has ended
        stop, numbers = Event(), self._working.numbers()
        shares = WorkShares(tiles, numbers)

        def work(number: int) -> None:
            try:
                while not (shares.is_over or stop.is_set() or time.monotonic() > deadline):
                    if self._step(number, shares):
                        reports.put(True)
                    else:
                        stop.wait(POLL_S)
            except LOST as error:
                shares.mark_away(number)
                self._working.lose(number, error)
            finally:
                reports.put(False)

        finished, running = 0, len(numbers)
        with ThreadPoolExecutor(running) as pool:
            workers = [pool.submit(work, number) for number in numbers]
            try:
                while running:
                    if not reports.get():
                        running -= 1
                        continue
                    finished += 1
                    advance(finished, len(tiles))
            finally:
                stop.set()
        for worker in workers:
            worker.result()

    def _step(self, number: int, shares: WorkShares[_Keyed]) -> bool:
        """Time the next tile on a device; return whether that was possible.

        It is not if no tile is left, or another run measures those that are, or has the device.
        """
        timer = self._timers[number]
        if not timer.ready():
            shares.mark_away(number)
            return False
        claimed = set[TileKey]()
        while (piece := shares.take(number)) is not None:
            try:
                if self._time_one(timer, *piece):
                    shares.done()
                    return True
            except FitError:
                shares.done()
                continue
            except BaseException:
                shares.put_back(number, piece)
                raise
            shares.put_back(number, piece)
            if piece[0] in claimed:  # other processes measure all that are left
                return False
            claimed.add(piece[0])
        return False

    def _time_now(self, key: TileKey, tile: _Tile) -> None:
        while True:
            for number in self._working.numbers():
                timer = self._timers[number]
                try:
                    if timer.ready() and self._time_one(timer, key, tile):
                        return
                except LOST as error:
                    self._working.lose(number, error)
            time.sleep(POLL_S)

    def _time_one(self, timer: TileClock, key: TileKey, tile: _Tile) -> bool:
        """Time and store a tile; False if another process measures it at the moment."""
        with self._claims.of(str(key)) as ours:
            if not ours:
                return False
            with self._storing:
                ticks = self._database.tile(key)  # another process may have stored it
            if ticks is None:
                ticks = round(_measure(timer, tile))
                with self._storing:
                    self._database.add_tiles({key: ticks})
                    self.measured += 1
        self._known[key] = ticks
        return True


def _measure(timer: TileClock, tile: _Tile) -> float:
    graph, operator, call, rows = tile
    part = len(rows)
    while True:
        lo = rows.lo // part * part
        try:
            return timer.time(graph, operator, call, Interval(lo, lo + part)).ticks * len(rows) / part
        except ValueError as error:
            if part == 1:
                raise FitError(f"one row of {operator.name} cannot be timed on the board: {error}") from error
            part = -(-part // 2)
