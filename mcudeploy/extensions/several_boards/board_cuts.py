"""Cuts of a model for boards in a row that minimise the longest stage or transfer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import FitError
from mcudeploy.costs.estimate import estimated, load_costs
from mcudeploy.costs.tiles import by_calls, nothing_known
from mcudeploy.extensions.several_boards.link import LINK_RAM_BYTES, UartLink
from mcudeploy.extensions.several_boards.pipeline.cost import UnitLink, core_operators
from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine, OperatorBytes, Units, line_of
from mcudeploy.extensions.several_boards.pipeline.groups import single_groups
from mcudeploy.extensions.several_boards.pipeline.workgraph import work_graph
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.search.kernels import alternatives, fastest
from mcudeploy.planner.tape.footprint import weights_bytes
from mcudeploy.tiling.dataflow import Dataflow

Bounds = tuple[tuple[int, int], ...]
"""The stretch of operators of each board, [first, end)."""


def cuts_of(model: Model, boards: Sequence[Board], line: UartLink, flash_percent: float) -> Bounds:
    """Return the cuts with the least longest stage or transfer, by estimates, for unsplit stages that fit.

    `flash_percent`: the percentage of the program that 1 % of the time is worth, as of `Options`. If no
    unsplit stages fit, RAM is left to the planner, which cuts operators into rows. Raises FitError for
    fewer operators than boards, or if the weights fit no stretches.
    """
    lines = [_line(model, board, flash_percent) for board in boards]
    if len(lines[0].groups) < len(boards):
        raise FitError(f"{len(lines[0].groups)} operators cannot be cut for {len(boards)} boards")
    seconds = [cut / line.bytes_per_second for cut in lines[0].crossing]
    rooms = [sum(map(board.room, board.memories)) - LINK_RAM_BYTES for board in boards]
    for limits in (rooms, [inf] * len(boards)):
        partition = _least(lines, boards, seconds, limits)
        if partition is not None:
            return partition
    raise FitError(
        f"the weights of {model.path.name} do not fit the flash of these boards in their order: add a board, "
        "or one with more flash"
    )


def _line(model: Model, board: Board, flash_percent: float) -> GroupLine:
    """Return the operators as single groups, with their ticks and bytes on a board."""
    model = model.of_graph(model.graph, model.sha256, isa=board.isa)
    flow = Dataflow.of(model.graph)
    graph, positions = work_graph(flow)
    source = estimated(load_costs(board.core))
    times, known = source(model.graph, alternatives(model)), nothing_known(model.graph)
    chosen = fastest(model, times, known, board.constants_room, flash_percent)
    ticks = core_operators(flow, positions, by_calls(source(model.graph, ()), chosen.calls))
    calls = [chosen.calls[name] for name in graph.names]
    needs = OperatorBytes(
        tuple(weights_bytes({"": call}) for call in calls),
        tuple(call.scratch_bytes + call.state_bytes for call in calls),
    )
    return line_of(graph, single_groups(graph), Units(1), (ticks, UnitLink(inf)), needs)


def _least(
    lines: Sequence[GroupLine], boards: Sequence[Board], transfers: Sequence[float], rooms: Sequence[float]
) -> Bounds | None:
    """Return the bounds with the least longest stage or transfer; among equals the least sum of transfers.

    By dynamic programming: `found[j]` is the best for the first j operators on the boards so far: its longest
    time, the sum of its transfers, and the ends of its stretches. None if nothing fits.
    """
    least: dict[int, tuple[float, float, tuple[int, ...]]] = {0: (0.0, 0.0, (0,))}
    for line, board, room in zip(lines, boards, rooms, strict=True):
        following: dict[int, tuple[float, float, tuple[int, ...]]] = {}
        for first, (longest, carried, ends) in least.items():
            transfer = transfers[first] if first else 0.0
            for end in range(first + 1, len(line.groups) + 1):
                if line.flash_bytes(first, end) > board.constants_room:
                    break
                if line.ram_bytes(first, end) <= room:
                    seconds = max(longest, transfer, line.work(first, end) / board.clock_hz)
                    one = seconds, carried + transfer, (*ends, end)
                    following[end] = min(one, following.get(end, one))
        least = following
    best = least.get(len(lines[0].groups))
    return tuple(pairwise(best[2])) if best else None
