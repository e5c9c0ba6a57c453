"""Plans for one memory, as most tests want them."""

from __future__ import annotations

from mcudeploy.boards.board import Board, Memory
from mcudeploy.boards.catalogue import load_board
from mcudeploy.ir.plan import Estimate, Layout, Schedule
from mcudeploy.planner.place.solve import spread
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import WorkBytes


def one_memory(name: str, alignment: int) -> Board:
    """The host with a memory of this name and alignment (bytes) only."""
    memory = Memory(name=name, origin=0x20000000, bytes=1 << 26, alignment=alignment)
    return load_board("host").model_copy(update={"memories": (memory,)})


def lay_out(
    tiled: TiledGraph, schedule: Schedule, work: WorkBytes, name: str, alignment: int
) -> tuple[Layout, Estimate]:
    """`spread` on a board with one memory, in which nothing moves."""
    return spread(tiled, schedule, work, one_memory(name, alignment))
