"""Times tiles on one board of a fleet, which may be shared with other runs."""

from __future__ import annotations

import time
from contextlib import ExitStack
from threading import Lock

from mcudeploy.codegen.bench import kernels_for
from mcudeploy.device.fleet import LOST, POLL_S
from mcudeploy.device.lease import Lease
from mcudeploy.device.replies import Ticks
from mcudeploy.device.target import Target, open_board, open_device, require_port
from mcudeploy.device.tile import FlashRegion, KernelTable, TileTimer
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.toolchain import Firmware

_SLICE_S = 2.0
"""Seconds that a run keeps a board for which another run waits: each handover takes time."""


class BoardTimer:
    """A board that times tiles, opened with the firmware for timing on first use. Thread-safe.

    A real board is leased; from time to time it goes to another run that waits for it. If `open_device`
    raises in `ready` or `time`, the board is closed.
    """

    def __init__(self, target: Target, bench: Firmware) -> None:
        self._target, self._bench = target, bench
        self._using = Lock()
        self._port: str | None = None
        self._lease: Lease | None = None
        self._open = ExitStack()
        self._timer: TileTimer | None = None
        self._kernels: KernelTable | None = None
        self._since = 0.0

    def ready(self) -> bool:
        """Whether the board can time a tile now; if another run has it, this run asks for it."""
        with self._using:
            return self._started() is not None

    def time(self, graph: Graph, operator: Operator, call: KernelCall, rows: Interval) -> Ticks:
        """Time a tile as `TileTimer` does. Waits for the board if another run has it."""
        while True:
            with self._using:
                timer = self._started()
                if timer is not None:
                    try:
                        return timer.time(graph, operator, call, rows)
                    except LOST:
                        self._stop()
                        raise
                    finally:
                        self._give_way()
            time.sleep(POLL_S)

    def give_way(self) -> None:
        """Lend the board to a waiting run, if we have had it for some time and are not using it."""
        if self._using.acquire(blocking=False):
            try:
                self._give_way()
            finally:
                self._using.release()

    def close(self) -> None:
        """Release the board."""
        with self._using:
            self._stop()

    def _started(self) -> TileTimer | None:
        if self._timer is None and self._ours():
            try:
                self._timer = self._start()
            except BaseException:
                self._stop()
                raise
        return self._timer

    def _ours(self) -> bool:
        if not self._target.is_real:
            return True
        if self._lease is None:
            self._port = require_port(self._target)
            self._lease = Lease(str(self._port))
        return self._lease.take()

    def _start(self) -> TileTimer:
        if self._port is None:
            device = self._open.enter_context(open_device(self._target, self._bench))
        else:
            device = self._open.enter_context(open_board(self._target, self._port, self._bench, reuse=True))
        self._since = time.monotonic()
        if self._kernels is None:
            self._kernels = KernelTable.of(device.session, kernels_for(self._target.board.isa))
        return TileTimer(device.session, self._kernels, flash=FlashRegion.of(self._target.board))

    def _give_way(self) -> None:
        if self._timer is None or self._lease is None or time.monotonic() - self._since < _SLICE_S:
            return
        if self._lease.wanted():
            self._stop()

    def _stop(self) -> None:
        self._timer = None
        self._open.close()
        if self._lease is not None:
            self._lease.give_back()
