"""Tile times from the device, kept in the database: what was measured once is never measured again."""

from __future__ import annotations

from types import TracebackType

from mcudeploy.graph import Operator
from mcudeploy.interval import Interval
from mcudeploy.measurer.database import Database, TileKey, shape_key
from mcudeploy.measurer.tile import TileTimer
from mcudeploy.simulator.flow import Flow

_BATCH = 64
"""New measurements are written to the database in batches of this many."""


class MeasuredTiles:
    """Times of the tiles of one flow. Use as a context manager: leaving it stores what is new.

    `measured` tiles ran on the device, `hits` were in the database. Where a tile does not fit the arena for
    timing, a part of it is timed and scaled by its rows. `device`: the board and its firmware's hash.
    """

    def __init__(self, flow: Flow, device: tuple[str, int], database: Database, timer: TileTimer) -> None:
        self._flow, self._timer, self._database = flow, timer, database
        self._board, self._firmware = device[0], f"{device[1]:08x}"
        self._known = database.tiles(self._board, self._firmware)
        self._new: dict[TileKey, int] = {}
        self._shapes: dict[str, tuple[str, str]] = {}
        self.measured = self.hits = 0

    def __enter__(self) -> MeasuredTiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.store()

    def store(self) -> None:
        """Write what is new to the database."""
        if self._new:
            self._database.add_tiles(self._new)
            self._new = {}

    def __call__(self, operator: Operator, rows: Interval) -> float:
        """Ticks of a tile."""
        if not operator.inputs:
            return 0.0  # a feed: the application's time
        kernel, shape = self._shape(operator)
        key = TileKey(self._board, self._firmware, kernel, shape, str(rows))
        if key in self._known:
            self.hits += 1
            return float(self._known[key])
        ticks = self._measure(operator, rows)
        self.measured += 1
        self._known[key] = self._new[key] = round(ticks)
        if len(self._new) >= _BATCH:
            self.store()
        return ticks

    def _measure(self, operator: Operator, rows: Interval) -> float:
        part = len(rows)
        while True:
            try:
                lo = rows.lo // part * part
                ticks = self._timer.time(self._flow.graph, operator, Interval(lo, lo + part)).ticks
                return ticks * len(rows) / part
            except ValueError:
                if part == 1:
                    raise
                part = -(-part // 2)

    def _shape(self, operator: Operator) -> tuple[str, str]:
        if operator.name not in self._shapes:
            graph = self._flow.graph
            inputs, output = graph.input_tensors(operator), graph.tensors[operator.output]
            call = operator.op.kernel(operator, inputs, output).on(vectors=self._timer.vectors)
            shapes = [tensor.shape for tensor in (*inputs, output)]
            self._shapes[operator.name] = (call.kernel, shape_key(call, shapes))
        return self._shapes[operator.name]
