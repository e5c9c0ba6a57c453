"""Calibration of a board: times of kernels on the chip, kept in the database, divided by their estimates."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import geometric_mean

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import BuildError, ConfigError, DeployError, UsageError
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.costs.database import Database, default_path, warn_of_database
from mcudeploy.costs.factors import KernelFactors, Kind
from mcudeploy.device.image import build_bench, digest_of
from mcudeploy.device.target import Device, Target, open_device, require_port
from mcudeploy.device.tile import FlashRegion, KernelTable, TileTimer
from mcudeploy.extensions.calibration.factors_file import MOST_FACTOR, factors_of_file
from mcudeploy.extensions.calibration.kernel_tiles import KernelTile, kernel_tiles

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TileTime:
    """A tile, and the cycles that it takes on the chip."""

    tile: KernelTile
    cycles: int

    @property
    def factor(self) -> float:
        """Cycles on the chip for each estimated cycle."""
        return self.cycles / self.tile.estimate


@dataclass(frozen=True)
class Calibrated:
    """Times of tiles on a board, by kind."""

    board: Board
    times: Mapping[Kind, tuple[TileTime, ...]]

    @cached_property
    def factors(self) -> KernelFactors:
        """The factors: of a kind the geometric mean over its tiles; `whole` the geometric mean of these."""
        kinds = {kind: geometric_mean(it.factor for it in times) for kind, times in self.times.items()}
        return KernelFactors(kinds, geometric_mean(kinds.values()))

    @classmethod
    def of(cls, board: Board, times: Sequence[TileTime]) -> Calibrated:
        """Return times sorted into kinds."""
        kinds = dict.fromkeys(it.tile.kind for it in times)
        return cls(board, {kind: tuple(it for it in times if it.tile.kind == kind) for kind in kinds})


def calibrate(target: Target, progress: Progress = SILENT) -> Calibrated:
    """Time kernels on a chip, and store their cycles: estimates for the board then contain its factors.

    Raises UsageError for a target that is not a chip.
    """
    _require_chip(target)
    require_port(target)
    board, tiles = target.board, kernel_tiles(target.board)
    progress.stage(f"building kernels for {board.name}")
    kernels = _kernels(tiles)
    firmware = build_bench(target, kernels)
    progress.stage(f"timing kernels on {target.title}")
    with open_device(target, firmware) as device:
        times = _timed(device, tiles, kernels, board)
    digest = _digest(board, tiles)
    with Database() as database:
        database.add_tiles({it.tile.key(_database_name(board), digest): it.cycles for it in times})
    _stored.cache_clear()
    return Calibrated.of(board, times)


def _require_chip(target: Target) -> None:
    board = target.board
    if board.is_host:
        raise UsageError(f"{board.name} is this computer, for which nothing is estimated: name a board")
    if target.emulated:
        raise UsageError(
            f"the emulator of {board.name} counts instructions and has no clock of a chip: the model makes "
            "cycles of these counts, so every factor would be 1. Connect a board, and leave --emulate out"
        )
    if board.npu is not None:
        raise UsageError(f"{board.name} has a unit beside the core, whose times are estimated separately")


def _timed(
    device: Device, tiles: Sequence[KernelTile], kernels: Sequence[str], board: Board
) -> list[TileTime]:
    """Time tiles, except those that are too large for the board's memory.

    Raises DeployError if the board's counter stands still or is wrong, and if no tile fits.
    """
    table, times = KernelTable.of(device.session, kernels), list[TileTime]()
    timer = TileTimer(device.session, table, flash=FlashRegion.of(board))
    for tile in tiles:
        try:
            ticks = timer.time(tile.graph, tile.operator, tile.call, tile.rows).ticks
        except ValueError as error:
            _LOG.warning("warning: %s is not timed: %s", tile.call.kernel, error)
            continue
        cycles = round(ticks * board.clock_hz / device.session.info.ticks_hz)
        if cycles == 0:
            raise DeployError(
                f"{tile.call.kernel} took no time on {board.name}: its counter stands still. An emulator "
                "at --port may lack the counter; no factor is kept"
            )
        times.append(TileTime(tile, cycles))
        if times[-1].factor > MOST_FACTOR:
            raise DeployError(
                f"{tile.call.kernel} took {cycles:,} cycles on {board.name}, over {MOST_FACTOR} for each "
                "estimated one: its counter, or clock_hz of its board file, is wrong; no factor is kept"
            )
    if not times:
        raise DeployError(f"no kernel fits the memory of {board.name} for timing: no factor is kept")
    return times


def factors(board: Board) -> KernelFactors | None:
    """Return the factors of a board that this computer measured, else those of its file; else None."""
    if board.is_host or board.emulated_only or board.npu is not None:
        return None
    measured = _stored(default_path(), board) if default_path().is_file() else None
    return measured or factors_of_file(board)


@cache
def _stored(path: Path, board: Board) -> KernelFactors | None:
    try:
        with Database(path) as database:
            if not database.has_tiles(_database_name(board)):
                return None
            tiles = kernel_tiles(board)
            known = database.tiles(_database_name(board), digest := _digest(board, tiles))
    except ConfigError as error:
        warn_of_database("estimates are not calibrated", str(error))
        return None
    except BuildError:  # without its compiler there are no measurements
        return None
    keyed = [(tile, known.get(tile.key(_database_name(board), digest))) for tile in tiles]
    times = [TileTime(tile, cycles) for tile, cycles in keyed if cycles]
    if not times:
        _warn_of_other_kernels(board.name)
        return None
    return Calibrated.of(board, times).factors


@cache
def _warn_of_other_kernels(board: str) -> None:
    _LOG.warning(
        "warning: %s was calibrated with other kernels, another compiler or clock: estimates are those of "
        "the model until `mcudeploy calibrate` runs again",
        board,
    )


def _kernels(tiles: Sequence[KernelTile]) -> tuple[str, ...]:
    return tuple(sorted({tile.call.kernel for tile in tiles}))


def _digest(board: Board, tiles: Sequence[KernelTile]) -> str:
    """Return the digest of all that decides the time of the kernels."""
    flash = board.flash
    facts = board.core, board.clock_hz, board.cpu_flags, flash.read_cost, flash.cache_bytes
    return digest_of(board, _kernels(tiles), repr(facts))


def _database_name(board: Board) -> str:
    """Return the board's name in the database for tiles of a calibration; tiles of plans have another."""
    return f"{board.name}, calibrated"
