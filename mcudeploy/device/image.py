"""The measurer without a model: firmware with all kernels, for timing tiles, and earlier times of tiles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from threading import Event, Thread

from mcudeploy.boards.board import Board
from mcudeploy.codegen.bench import bench_sources, kernels_for
from mcudeploy.codegen.kernelfiles import kernel_files
from mcudeploy.common.errors import BuildError
from mcudeploy.costs.database import Database
from mcudeploy.costs.estimate import TimeUnit
from mcudeploy.costs.tiles import KnownSource, nothing_known
from mcudeploy.device.fleet import Fleet
from mcudeploy.device.measured import MeasuredTiles, times_of_graph
from mcudeploy.device.target import Target
from mcudeploy.device.timer import BoardTimer
from mcudeploy.toolchain import Firmware, build_firmware
from mcudeploy.toolchain.firmware_build import compiler_facts

_LOOK_S = 0.2
"""Seconds between two checks whether other runs wait for a board."""


def build_bench(target: Target, kernels: Sequence[str] = ()) -> Firmware:
    """Build the measurer with some or all kernels of the core and no model; half of the memory is arena."""
    board = target.board
    kernels = kernels or kernels_for(board.isa)
    sources = bench_sources(
        kernels, board.ram_bytes // 2, fuses_products=board.fuses_products, pairs_loads=board.pairs_loads
    )
    return build_firmware(board, sources, kernels, emulate=target.emulated)


def kernels_digest(target: Target) -> str:
    """Return the digest of what decides how long kernels take: sources, compiler, board, emulated or not.

    Raises BuildError without the compiler.
    """
    board = target.board
    return digest_of(board, kernels_for(board.isa), board.model_dump_json(), str(target.emulated))


def digest_of(board: Board, kernels: Sequence[str], *facts: str) -> str:
    """Return the digest of sources of kernels, a board's compiler, and other facts.

    Raises BuildError without the compiler.
    """
    sources = (f"{it.name}\0{it.text}" for it in kernel_files(kernels))
    parts = compiler_facts(board), *facts, *sources
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


@contextmanager
def measured_tiles(fleet: Fleet) -> Iterator[MeasuredTiles]:
    """Yield tile times, from the database or from the fleet's devices, which share the work.

    From time to time a real board is lent to another run that waits for it.
    """
    board, bench = fleet.first.board, build_bench(fleet.first)
    with ExitStack() as stack:
        timers = [stack.enter_context(closing(BoardTimer(target, bench))) for target in fleet.targets]
        database = stack.enter_context(Database())
        stack.enter_context(_giving_way(timers))
        tiles = MeasuredTiles((board.name, kernels_digest(fleet.first)), database, timers, fleet.working)
        yield stack.enter_context(closing(tiles))


@contextmanager
def _giving_way(timers: Sequence[BoardTimer]) -> Iterator[None]:
    """Lend boards without work to other runs while the search computes."""
    end = Event()

    def watch() -> None:
        while not end.wait(_LOOK_S):
            for timer in timers:
                timer.give_way()

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def stored_times(database: Database, board: Board, objective: TimeUnit) -> KnownSource:
    """Return stored times of tiles by the current kernels: on hardware, or else in the emulator.

    An emulator has no times in cycles.
    """
    emulations = (False,) if objective == "cycles" else (False, True)
    ways = [emulate for emulate in emulations if board.has_firmware(emulate)]
    try:
        digests = [kernels_digest(Target(board, emulate=emulate)) for emulate in ways]
    except BuildError:  # without its compiler there are no measurements
        return nothing_known
    for each in digests:
        times = database.tiles(board.name, each)
        if times:
            return lambda graph: times_of_graph(times, board.name, each, graph)
    return nothing_known
