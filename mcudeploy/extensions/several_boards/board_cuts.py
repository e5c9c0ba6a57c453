"""Boards in a row as the units of a pipeline: a region of the model for each, the best for throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import FitError
from mcudeploy.extensions.several_boards.link import LINK_RAM_BYTES, UartLink
from mcudeploy.extensions.several_boards.pipeline.best import best_row
from mcudeploy.extensions.several_boards.pipeline.cost import OperatorTicks, UnitLink
from mcudeploy.extensions.several_boards.pipeline.division import UnitCosts, unit_costs
from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine, Units, line_of
from mcudeploy.extensions.several_boards.pipeline.groups import kinds_of_groups
from mcudeploy.extensions.several_boards.pipeline.unit_regions import Region
from mcudeploy.planner.model.model import Model


@dataclass(frozen=True, slots=True)
class BoardRow:
    """The operators of each board, by their numbers without views, and expected seconds."""

    operators: tuple[tuple[int, ...], ...]
    stages: tuple[float, ...]
    transfers: tuple[float, ...]

    @property
    def frame_seconds(self) -> float:
        """The seconds between two frames: the longest stage or transfer."""
        return max(*self.stages, *self.transfers)

    @property
    def latency_seconds(self) -> float:
        """The seconds of one frame."""
        return sum(self.stages) + sum(self.transfers)


def row_of(model: Model, boards: Sequence[Board], line: UartLink, flash_percent: float) -> BoardRow:
    """Return the partition with the least longest stage or transfer, of all kinds of groups, that fits.

    Of equal ones it is the one with the least latency. `flash_percent`: the percentage of the program that
    1 % of the time is worth, as of `Options`. If no unsplit stages fit, RAM is left to the planner, which
    cuts operators into rows. Raises FitError for fewer operators than boards, or if the weights fit no
    regions.
    """
    costs = [row_costs(model, board, flash_percent) for board in boards]
    graph = costs[0].graph
    if len(graph.names) < len(boards):
        raise FitError(f"{len(graph.names)} operators cannot be cut for {len(boards)} boards")
    link = UnitLink(line.bytes_per_second)
    rooms = [sum(map(board.room, board.memories)) - LINK_RAM_BYTES for board in boards]
    for limits in (rooms, [inf] * len(boards)):
        units = [Units(1, room, it.constants_room) for room, it in zip(limits, boards, strict=True)]
        rows = []
        for groups in kinds_of_groups(graph):
            lines = [
                line_of(graph, groups, unit, (_seconds(it, board), link), it.needs)
                for unit, it, board in zip(units, costs, boards, strict=True)
            ]
            for one, board in zip(lines, boards, strict=True):
                _add_line_work(one, board, line)
            regions = best_row(lines)
            if regions is not None:
                rows.append(_row(lines, regions))
        if rows:
            return min(rows, key=lambda row: (row.frame_seconds, row.latency_seconds))
    raise FitError(
        f"the weights of {model.path.name} do not fit the flash of these boards in their order: add a board, "
        "or one with more flash"
    )


def row_costs(model: Model, board: Board, flash_percent: float) -> UnitCosts:
    """Return the costs of a model's operators on a board, in ticks of its core."""
    model = model.of_graph(model.graph, model.sha256, isa=board.isa)
    return unit_costs(model, board.core, board.constants_room, flash_percent)


def _seconds(costs: UnitCosts, board: Board) -> OperatorTicks:
    return lambda operator, units: costs.ticks(operator, units) / board.clock_hz


def _add_line_work(groups: GroupLine, board: Board, line: UartLink) -> None:
    """Add the seconds that the lines take from a board's core to every stretch."""
    crossing = (0, *groups.crossing[1:-1], 0)
    received = np.array([line.core_seconds(board, size, 0) for size in crossing])
    sent = np.array([line.core_seconds(board, 0, size) for size in crossing])
    groups.stages[:] += (received[:, None] + sent[None, :])[:, :, None]


def _row(lines: Sequence[GroupLine], regions: Sequence[Region]) -> BoardRow:
    return BoardRow(
        tuple(lines[0].operators(it.first, it.end) for it in regions),
        tuple(float(line.stages[it.first, it.end, 1]) for line, it in zip(lines, regions, strict=True)),
        tuple(float(lines[0].transfers[it.first]) for it in regions[1:]),
    )
