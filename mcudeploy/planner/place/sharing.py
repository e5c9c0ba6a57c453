"""The RAM that sharing memory saves, compared with one arena per compute unit and buffers between them."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from mcudeploy.boards.board import Board, Unit
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import PlacementProblem, Rectangle
from mcudeploy.planner.cores.requirements import unit_names, users
from mcudeploy.planner.place.arena import pack
from mcudeploy.planner.place.residences import input_stacks
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.blocks import BlockId
from mcudeploy.tiling.live import Buffer, buffers, joined


@dataclass(frozen=True, slots=True)
class Sharing:
    """Comparison of a plan with separate arenas; `copies` operators copy between memories.

    A border tensor is one that several units access. `separate_bytes`: each unit has its own arena for all
    that it accesses. A border tensor then exists on both sides during its life, and needs a buffer for the
    copy between them. `saved_bytes`: those less the plan's arenas.
    """

    border_tensors: int
    border_bytes: int
    separate_bytes: int
    saved_bytes: int
    copies: int


def sharing(view: PlanView, board: Board) -> Sharing:
    """Return the saving of a plan with functions."""
    plan, separate_arenas = view.plan, _SeparateArenas(view, board)
    borders = [name for name, units in separate_arenas.users.items() if len(units) > 1]
    border_bytes = sum(plan.graph.tensors[name].size_bytes for name in borders)
    separate = border_bytes + sum(separate_arenas.arena_bytes(unit) for unit in board.units)
    return Sharing(
        border_tensors=len(borders),
        border_bytes=border_bytes,
        separate_bytes=separate,
        saved_bytes=separate - plan.layout.arena_bytes,
        copies=sum(operator.op.copies for operator in plan.graph.operators),
    )


class _SeparateArenas:
    """The buffers of a plan, to be packed for each unit separately in the order of the plan.

    `users`: the units that access each tensor that owns memory.
    """

    def __init__(self, view: PlanView, board: Board) -> None:
        plan, self._board = view.plan, board
        self._tiled, self._lives = view.tiled, view.lives
        self._buffers = buffers(self._tiled, plan.schedule.steps, view.work)
        self._unit_of = unit_names(plan.graph, board, plan.functions)
        self.users = users(plan.graph, self._unit_of, board.units[0].name)

    def arena_bytes(self, unit: Unit) -> int:
        """Return the bytes of an arena for all that one unit accesses."""
        alignment = lcm(unit.alignment, *(memory.alignment for memory in self._board.memories))
        rectangles: list[Rectangle] = []
        index_of: dict[BlockId, int] = {}
        in_turn: dict[object, list[int]] = {}
        for item in self._buffers:
            for span in self._spans(item, unit.name):
                index_of |= dict.fromkeys(item.members, len(rectangles))
                in_turn.setdefault(item.key, []).append(len(rectangles))
                rectangles.append(Rectangle(item.size_bytes, span, alignment))
        stacks = input_stacks(self._tiled, index_of)
        repeated = tuple(tuple(lives) for lives in in_turn.values() if len(lives) > 1)
        return pack(PlacementProblem(tuple(rectangles), stacks, repeated), {}, None).used_bytes

    def _spans(self, item: Buffer, unit: str) -> tuple[Interval, ...]:
        """Return the live ranges of those of a buffer's blocks that the unit accesses."""
        if item.scratch_of is not None:
            return (item.life,) if self._unit_of[item.scratch_of[0]] == unit else ()
        first = self._tiled.first_block
        mine = [first[name] + block for name, block in item.members if unit in self.users[name]]
        spans = (span for number in mine for span in self._lives.of(number))
        return joined(span for span in spans if len(span) and item.life.covers(span))
