"""Plans for one memory, as most tests want them."""

from __future__ import annotations

from collections.abc import Sequence

from mcudeploy.boards.board import Board, Memory
from mcudeploy.boards.catalogue import load_board
from mcudeploy.ir.plan import Estimate, Function, Layout, Schedule
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.place.solve import estimate, spread
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes


def one_memory(name: str, alignment: int) -> Board:
    """The host with a memory of this name and alignment (bytes) only."""
    memory = Memory(name=name, origin=0x20000000, bytes=1 << 26, alignment=alignment)
    return load_board("host").model_copy(update={"memories": (memory,)})


def lay_out(
    tiled: TiledGraph, schedule: Schedule, work: WorkBytes, name: str, alignment: int
) -> tuple[Layout, Estimate]:
    """The layout on a board with one memory, in which nothing moves."""
    return laid_out(tiled, schedule, work, one_memory(name, alignment))


def laid_out(
    tiled: TiledGraph,
    schedule: Schedule,
    work: WorkBytes,
    board: Board,
    functions: Sequence[Function] = (),
    budget: Budget | None = None,
) -> tuple[Layout, Estimate]:
    """`spread`, and the figures of its layout without time."""
    layout = spread(tiled, schedule, work, board, functions, budget)
    return layout, estimate(tiled, schedule.steps, work, layout)
