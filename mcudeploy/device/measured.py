"""Tile times from devices, kept in the database: what was measured once is never measured again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Lock
from typing import NamedTuple, Protocol

from mcudeploy.common.errors import FitError
from mcudeploy.cost.database import Database, TileKey, shape_key
from mcudeploy.cost.tiles import CallTile, CallTime, KnownTime
from mcudeploy.device.replies import Ticks
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall

Advance = Callable[[int, int], None]
"""Told how many tiles of how many are timed."""


class Timer(Protocol):
    """Times tiles on one device; see `TileTimer`."""

    def time(self, graph: Graph, operator: Operator, call: KernelCall, rows: Interval) -> Ticks:
        """The ticks of a tile. Raises ValueError where it does not fit the arena for timing."""


class _Tile(NamedTuple):
    graph: Graph
    operator: Operator
    call: KernelCall
    rows: Interval


class _Keys:
    """The keys of a graph's tiles. Digests of shapes are remembered: there are few, asked for often."""

    def __init__(self, board: str, firmware: int, graph: Graph) -> None:
        self._device, self._graph = (board, f"{firmware:08x}"), graph
        self._shapes: dict[tuple[str, str], str] = {}

    def of(self, operator: Operator, call: KernelCall, rows: Interval) -> TileKey:
        """The key of a tile of the graph."""
        name = operator.name, call.variant
        if name not in self._shapes:
            tensors = (*self._graph.input_tensors(operator), self._graph.tensors[operator.output])
            self._shapes[name] = shape_key(call, [tensor.shape for tensor in tensors])
        return TileKey(*self._device, call.kernel, self._shapes[name], str(rows))


def stored(times: Mapping[TileKey, int], board: str, firmware: int, graph: Graph) -> KnownTime:
    """Times of a graph's tiles that were measured before, by a board with a firmware of this hash."""
    keys = _Keys(board, firmware, graph)
    return lambda operator, call, rows: times.get(keys.of(operator, call, rows))


class MeasuredTiles:
    """Times of tiles on devices of one kind. Each is in the database as soon as a device has reported it.

    `measured` tiles ran on a device, `hits` were known when they were asked for. Where a tile does not fit
    the arena for timing, a part of it is timed and scaled by its rows. `device`: the board and its firmware's
    hash.
    """

    def __init__(self, device: tuple[str, int], database: Database, timers: Sequence[Timer]) -> None:
        self._timers, self._database = timers, database
        self._device = device
        self._known = database.tiles(device[0], f"{device[1]:08x}")
        self.measured = self.hits = 0

    def of(self, graph: Graph) -> CallTime:
        """The times of a graph's tiles; what is not known is measured on the first device when asked for.

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
                self._add(key, _measure(self._timers[0], _Tile(graph, operator, call, rows)))
            return float(self._known[key])

        return ticks

    def prefetch(
        self,
        graph: Graph,
        tiles: Iterable[CallTile],
        seconds: float,
        advance: Advance = lambda *_: None,
    ) -> None:
        """Time tiles that are not known on all devices at once, for so many seconds at most.

        They are dealt out one by one, and every device takes its own in order: which device times a tile
        depends on the number of devices and on what is known, not on their speed. A tile of which not even a
        row can be timed is passed over: nobody may ask for it. An error of one device ends it for all; no
        measurement is lost by that, or by an interrupt.
        """
        missing: dict[TileKey, _Tile] = {}
        keys = _Keys(*self._device, graph)
        for operator, call, rows in tiles:
            key = keys.of(operator, call, rows)
            if operator.inputs and key not in self._known:
                missing.setdefault(key, _Tile(graph, operator, call, rows))
        dealt = list(missing.items())
        shares = [dealt[first :: len(self._timers)] for first in range(min(len(self._timers), len(dealt)))]
        if shares:
            self._time(shares, time.monotonic() + seconds, advance)

    def _time(
        self, shares: Sequence[Sequence[tuple[TileKey, _Tile]]], deadline: float, advance: Advance
    ) -> None:
        """A thread for each device and its share. It stores a time before it takes the next one: a process
        that is killed loses the one that is on its way.
        """
        done: SimpleQueue[bool] = SimpleQueue()  # False: a thread has ended
        stop, storing = Event(), Lock()

        def work(timer: Timer, share: Sequence[tuple[TileKey, _Tile]]) -> None:
            try:
                for key, tile in share:
                    if stop.is_set() or time.monotonic() > deadline:
                        break
                    with suppress(FitError):
                        ticks = _measure(timer, tile)
                        with storing:
                            self._add(key, ticks)
                        done.put(True)
            except BaseException:
                stop.set()
                raise
            finally:
                done.put(False)

        total, told, running = sum(map(len, shares)), 0, len(shares)
        with ThreadPoolExecutor(running) as pool:
            workers = [pool.submit(work, *each) for each in zip(self._timers, shares, strict=False)]
            try:
                while running:
                    if not done.get():
                        running -= 1
                        continue
                    told += 1
                    advance(told, total)
            finally:
                stop.set()
        for worker in workers:
            worker.result()

    def _add(self, key: TileKey, ticks: float) -> None:
        self._known[key] = round(ticks)
        self._database.add_tiles({key: self._known[key]})
        self.measured += 1


def _measure(timer: Timer, tile: _Tile) -> float:
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
