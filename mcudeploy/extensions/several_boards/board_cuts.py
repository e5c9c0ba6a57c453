"""The boards of a chain as units of a pipeline: each gets a region of the model, for the best throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import FitError
from mcudeploy.extensions.several_boards.link import LINK_RAM_BYTES, UartLink
from mcudeploy.extensions.several_boards.pipeline.best import best_for_units
from mcudeploy.extensions.several_boards.pipeline.cost import OperatorTicks, UnitLink
from mcudeploy.extensions.several_boards.pipeline.division import UnitCosts, unit_costs
from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine, Units, line_of
from mcudeploy.extensions.several_boards.pipeline.groups import kinds_of_groups
from mcudeploy.extensions.several_boards.pipeline.unit_regions import Region
from mcudeploy.planner.model.model import Model


@dataclass(frozen=True, slots=True)
class BoardPartition:
    """The operators of each board, numbered without views; expected seconds of stages and transfers."""

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


def board_partition(
    model: Model, boards: Sequence[Board], link: UartLink, flash_percent: float
) -> BoardPartition:
    """Return the partition that fits and whose longest stage or transfer is shortest, then the least latency.

    `flash_percent`: as in `Options`. If no partition of unsplit stages fits, RAM is left to the planner,
    which cuts operators into rows. Raises FitError for fewer operators than boards, or if the weights fit no
    partition.
    """
    costs = [costs_on_board(model, board, flash_percent) for board in boards]
    graph = costs[0].graph
    if len(graph.names) < len(boards):
        raise FitError(f"{len(graph.names)} operators cannot be cut for {len(boards)} boards")
    unit_link = UnitLink(link.bytes_per_second)
    rooms = [sum(map(board.room, board.memories)) - LINK_RAM_BYTES for board in boards]
    for limits in (rooms, [inf] * len(boards)):
        units = [Units(1, room, it.constants_room) for room, it in zip(limits, boards, strict=True)]
        partitions = []
        for groups in kinds_of_groups(graph):
            lines = [
                line_of(graph, groups, unit, (_seconds(it, board), unit_link), it.needs)
                for unit, it, board in zip(units, costs, boards, strict=True)
            ]
            for group_line, board in zip(lines, boards, strict=True):
                _add_link_work(group_line, board, link)
            regions = best_for_units(lines)
            if regions is not None:
                partitions.append(_partition(lines, regions))
        if partitions:
            return min(partitions, key=lambda it: (it.frame_seconds, it.latency_seconds))
    raise FitError(
        f"the weights of {model.path.name} do not fit the flash of these boards in their order: add a board, "
        "or take one with more flash"
    )


def costs_on_board(model: Model, board: Board, flash_percent: float) -> UnitCosts:
    """Return the costs of a model's operators on a board, in ticks of its core."""
    model = model.of_graph(model.graph, model.sha256, isa=board.isa)
    return unit_costs(model, board.core, board.constants_room, flash_percent)


def _seconds(costs: UnitCosts, board: Board) -> OperatorTicks:
    return lambda operator, units: costs.ticks(operator, units) / board.clock_hz


def _add_link_work(groups: GroupLine, board: Board, link: UartLink) -> None:
    """Add to every stretch the seconds that its two links take from the board's core."""
    crossing = (0, *groups.crossing[1:-1], 0)
    received = np.array([link.core_seconds(board, size, 0) for size in crossing])
    sent = np.array([link.core_seconds(board, 0, size) for size in crossing])
    groups.stages[:] += (received[:, None] + sent[None, :])[:, :, None]


def _partition(lines: Sequence[GroupLine], regions: Sequence[Region]) -> BoardPartition:
    return BoardPartition(
        tuple(lines[0].operators(it.first, it.end) for it in regions),
        tuple(float(line.stages[it.first, it.end, 1]) for line, it in zip(lines, regions, strict=True)),
        tuple(float(lines[0].transfers[it.first]) for it in regions[1:]),
    )
